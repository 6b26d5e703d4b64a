"""A second process compiles the kernels of a job that runs in this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rocsteady.core.kernels.cache import HAS_LOCKS
from rocsteady.core.kernels.cache_folder import COMPILED
from rocsteady.pipelines.commands import command_parser
from rocsteady.pipelines.evaluate.command import _planned, _settings_to_compile

from tests.support.invariants.kernel_modes import with_cache
from tests.support.processes.command import run

JOINED = ["--labels", "large.csv", "--id", "score", "--time", "label"]


def write_events(name: str, events: int) -> None:
    scores = np.random.default_rng(1).random(events)
    lines = (f"{score:.12f},{int(score > 0.4)}" for score in scores)
    Path(name).write_text("\n".join(["score,label", *lines]))


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_events("large.csv", 20_000)
    Path("arriving").mkdir()
    write_events("arriving/one.csv", 10)


@pytest.mark.slow
@pytest.mark.skipif(not (COMPILED and HAS_LOCKS), reason="kernels are not compiled and shared")
def test_a_second_process_compiles_beside_the_first(tmp_path):
    found = []
    for _ in range(2):
        ran = run("evaluate", "large.csv", "--output", "rows.jsonl", env=with_cache(tmp_path))
        assert ran.status == 0, ran
        found.append(Path("rows.jsonl").read_bytes())
    assert found[0] == found[1]
    assert [path.name[:7] for path in tmp_path.rglob("*.compiled")] == ["window-"]


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (["large.csv"], ["TableSettings"]),
        (["large.csv", *JOINED], ["TableSettings", "JoinSettings"]),
        (["arriving", "--follow"], ["TableSettings"]),
        (["large.csv", "--direct_running_mode=multi_processing", "--direct_num_workers=2"], []),
    ],
)
def test_which_kernels_are_compiled_ahead(words, kinds):
    options, beam_flags = command_parser()[0].parse_known_args(["evaluate", *words, "--output", "rows.jsonl"])
    job = _planned(options, beam_flags)
    assert [type(settings).__name__ for settings in _settings_to_compile(job)] == kinds
