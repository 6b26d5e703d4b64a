"""A second process compiles for a large input, and none for a small one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import run
from kernel_modes import with_cache
from rocsteady.core.kernels.cache import HAS_LOCKS
from rocsteady.core.kernels.cache_folder import COMPILED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (COMPILED and HAS_LOCKS), reason="kernels are not compiled and shared"),
]


def evaluated(cache: Path, events: int, window: str = "last:10000") -> tuple[bytes, bool]:
    """Return the rows of so many events, and whether a second process was started."""
    for lock in cache.rglob("ahead.lock"):
        lock.unlink()
    scores = np.random.default_rng(1).random(events)
    lines = (f"{score:.12f},{int(score > 0.4)}" for score in scores)
    Path("events.csv").write_text("\n".join(["score,label", *lines]))
    ran = run("evaluate", "events.csv", "--window", window, "--output", "rows.jsonl", env=with_cache(cache))
    assert ran.status == 0, ran
    return Path("rows.jsonl").read_bytes(), bool([*cache.rglob("ahead.lock")])


def test_a_second_process_compiles_for_a_large_input_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, had_second = evaluated(tmp_path, 20_000)
    assert had_second
    assert evaluated(tmp_path, 20_000)[0] == rows
    assert not evaluated(tmp_path, 10, "last:500")[1]
