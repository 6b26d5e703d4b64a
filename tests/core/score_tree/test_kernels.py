"""What surrounds the kernels: their cache, their flags, one specialisation each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rocsteady.core.kernels import cache_folder as kernels
from rocsteady.core.kernels import compile as compilation
from rocsteady.core.kernels import linking
from rocsteady.core.score_tree import build as score_tree_build
from rocsteady.core.score_tree import query as score_tree_query
from rocsteady.core.score_tree import slide as score_tree_slide
from rocsteady.core.score_tree import subset as score_tree_subset
from rocsteady.core.score_tree import sums as score_tree_sums
from rocsteady.core.score_tree import tree_rows as score_tree_rows
from rocsteady.core.score_tree.tree import ScoreTree
from rocsteady.core.score_tree.window import warm_up

from tests.support.invariants.sliding_window import SlidingWindow

ENTRIES = {
    score_tree_build: ["build", "list_entries"],
    score_tree_query: ["list_hull", "rank_scores", "select_scores", "roc_point"],
    score_tree_rows: ["read_row", "scan_hull"],
    score_tree_slide: ["slide"],
    score_tree_subset: ["list_subset", "thin_hull"],
    score_tree_sums: ["begin_sums"],
}
compiled_only = pytest.mark.skipif(not kernels.COMPILED, reason="interpreted")


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@compiled_only
def test_every_entry_has_one_specialisation_whatever_it_is_called_with() -> None:
    warm_up()
    tree = ScoreTree()
    packed = np.frombuffer(bytes(16), np.float64)  # read-only
    labels: list[Any] = [[0, 1], np.array([True, False]), np.array([0, 1], np.uint8), packed > 0]
    scores: list[Any] = [[1, 2], np.array([1, 2], np.float32), np.arange(4.0)[::2], packed]
    for y, s in zip(labels, scores, strict=True):
        tree.insert(y, s)
        tree.calibrated(s)
        tree.rank(s)
        tree.select(np.array([0], np.int32))
        tree.tpr_at_fpr(1)
        tree.hull_subset(2)
        without_bridges = ScoreTree(keeps_hull=False)
        without_bridges.insert(y, s)
        without_bridges.hull_subset(1.5)
        SlidingWindow(None).slide(y, s, np.zeros(2))
        SlidingWindow(2, stride=2, keeps_hull=False).slide(y, s)
    for module, names in ENTRIES.items():
        for name in names:
            assert len(getattr(module, name).signatures) == 1, name


def test_an_unwritable_cache_folder_is_one_warning_and_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = "import rocsteady.core.kernels.cache_folder as k; print(k.CACHE_FOLDER)"
    result = run(code, ROCSTEADY_CACHE_DIR=str(blocked))
    assert result.returncode == 0
    assert result.stdout.strip() == "None"
    assert len(re.findall("folder for compiled kernels cannot be written", result.stderr)) == 1


def test_the_cache_folder_is_named_after_what_the_code_depends_on(tmp_path: Path) -> None:
    code = "import rocsteady.core.kernels.cache_folder as k; print(k.CACHE_FOLDER)"
    folders = {
        run(code, ROCSTEADY_CACHE_DIR=str(tmp_path), **other).stdout.strip()
        for other in ({}, {"ROCSTEADY_BUCKET_SLOTS": "16"}, {"NUMBA_BOUNDSCHECK": "1"})
    }
    if kernels.COMPILED:
        assert len(folders) == 3
        assert all(Path(folder).parent == tmp_path for folder in folders)


def test_a_changed_source_changes_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernels.source_fingerprint()
    core = tmp_path / "core"
    shutil.copytree(kernels.CORE, core, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(kernels, "CORE", core)
    assert kernels.source_fingerprint() == before
    found = {before}
    room = core / "room"
    room.mkdir()
    # times.py has no kernel; its NO_TIME is compiled into those of others
    for source in (core / "score_tree" / "bridge.py", core / "events" / "times.py", room / "new.py"):
        with source.open("a") as file:
            file.write("# another\n")
        found.add(kernels.source_fingerprint())
    assert len(found) == 4


@pytest.mark.slow
@compiled_only
def test_installations_of_one_version_share_what_is_compiled(tmp_path: Path) -> None:
    here = kernels.CORE.parent
    program = (
        "import numpy as np; from rocsteady.core.ids.index import hash_all as kernel; key = np.uint64(7);"
        "kernel(np.zeros(3, np.uint8), np.array([0, 3], np.int64), key, key, np.empty(1, np.uint64));"
        "print(kernel._cache.cache_path, sum(kernel.stats.cache_hits.values()))"
    )
    said = []
    for name in ("one", "other"):
        folder = tmp_path / name / "rocsteady"
        shutil.copytree(here / "core", folder / "core", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "__init__.py").touch()
        ran = run(program, PYTHONPATH=str(tmp_path / name), ROCSTEADY_CACHE_DIR=str(tmp_path / "cache"))
        said.append(ran.stdout.split())
    place = str(tmp_path / "cache" / kernels.source_fingerprint() / "core" / "ids")
    assert said == [[place, "0"], [place, "1"]]


@compiled_only
def test_without_the_undocumented_flag_kernels_are_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = compilation.njit

    def older(*arguments: Any, **flags: Any) -> Any:
        if "_nrt" in flags:
            raise KeyError("Unrecognized options")
        return real(*arguments, **flags)

    assert compilation._without_references({"error_model": "numpy"}) == {
        "error_model": "numpy",
        "_nrt": False,
    }
    monkeypatch.setattr(compilation, "njit", older)
    assert compilation._without_references({"error_model": "numpy"}) == {"error_model": "numpy"}


@compiled_only
def test_a_numba_without_what_the_compilers_build_on_compiles_as_it_is_used_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = {"error_model": "numpy"}
    of_kernels, of_helpers = compilation._with_compilers(flags)
    assert of_kernels == {**flags, "pipeline_class": linking.KernelCompiler}
    assert of_helpers == {**flags, "no_cpython_wrapper": True, "pipeline_class": linking.HelperCompiler}
    monkeypatch.setitem(sys.modules, linking.__name__, None)
    assert compilation._with_compilers(flags) == (flags, {**flags, "no_cpython_wrapper": True})


def test_a_bucket_size_that_does_not_fit_is_refused() -> None:
    result = run("import rocsteady.core.score_tree.layout", ROCSTEADY_BUCKET_SLOTS="12")
    assert "use a multiple of 8 from 8 to 64" in result.stderr
