"""The public face: every name of `__init__.pyi` is handed on lazily, and type checkers know its type."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import rocsteady as rs

from tests.support import ROOT

OPTIONAL = {"AumLinearClassifier", "AumPenaltyLearner", "PolynomialAucClassifier", "river"}
"""Names whose packages may be missing."""


def stub_imports() -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each import of the stub, as Python reads them."""
    for node in ast.walk(ast.parse((ROOT / "__init__.pyi").read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1
            for name in node.names:
                assert name.asname == name.name, "type checkers hand on no other import of a stub"
                yield f"rocsteady.{node.module}", name.name


NAMES = {name: module for module, name in stub_imports() if name != "__version__"}


def test_the_face_hands_on_each_name_of_the_stub_and_no_other() -> None:
    assert dir(rs) == sorted(NAMES)
    assert rs.__all__ == sorted({*NAMES} - OPTIONAL)
    with pytest.raises(AttributeError, match="module 'rocsteady' has no attribute 'EvaluateModel'"):
        rs.EvaluateModel  # noqa: B018


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_that_of_its_module(name: str) -> None:
    assert getattr(rs, name) is getattr(import_module(NAMES[name]), name)


def test_the_package_imports_the_home_of_a_name_when_the_name_is_used() -> None:
    script = (
        "import sys\nimport rocsteady\nfrom rocsteady import InputError\n"
        "assert not {'apache_beam', 'numba', 'numpy', 'pyarrow'} & {*sys.modules}\n"
        "rocsteady.ScoreTree\nassert 'numba' in sys.modules and 'apache_beam' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def skeleton(folder: Path) -> Path:
    """Copy the face and the modules that its names live in; mypy reads the whole package for a minute."""
    package = folder / "rocsteady"
    homes = [path for module in NAMES.values() if (path := _file_of(module)).name != "__init__.py"]
    for path in [ROOT / "__init__.py", ROOT / "__init__.pyi", ROOT / "py.typed", *homes]:
        copy = package / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    shutil.copytree(ROOT / "core" / "river", package / "core" / "river")
    return package


def _file_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def test_a_type_checker_knows_the_type_of_each_name_and_refuses_others(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    skeleton(tmp_path)
    lines = ["import rocsteady as rs", *(f"reveal_type(rs.{name})" for name in NAMES), "rs.EvaluateModel"]
    (tmp_path / "user.py").write_text("\n".join([*lines, "reveal_type(rs.river.RollingAUC)"]))
    options = ["--strict", "--ignore-missing-imports", "--no-site-packages", "--namespace-packages"]
    words = [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir", os.devnull, *options]
    done = subprocess.run([*words, "user.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith("user.py:")]
    errors = [line for line in said if ": error: " in line]
    assert len(errors) == 1, done.stdout
    assert 'Module has no attribute "EvaluateModel"' in errors[0]
    types = re.findall(r'Revealed type is "(.*)"', "\n".join(said))
    assert len(types) == len(NAMES) + 1, done.stdout
    assert [(name, type_) for name, type_ in zip(NAMES, types, strict=False) if type_ == "Any"] == []
    assert types[-1].endswith("rocsteady.core.river.metrics.RollingAUC")
