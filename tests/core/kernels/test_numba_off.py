"""The kernels say the same as plain Python, never reach beyond an array, and compile once for each kind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.evaluator.ranking import TreeRanking
from rocsteady.core.measures import at_row as row_measures
from rocsteady.core.measures import curve as roc_curve
from rocsteady.core.measures import decisions
from rocsteady.core.measures import scan as window_scan
from rocsteady.core.measures import sorted as sorted_window

from tests.support.invariants.kernel_modes import ROOT

NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")

PROGRAM = """
import numpy as np
import rocsteady as rs
from tests.support.invariants.helpers_called import called
from rocsteady.core.measures import decisions, scan as window_scan
from rocsteady.core.arena.arena import Arena
from rocsteady.core.evaluator.adwin import Adwin
from rocsteady.core.sketches.auc_sketch import AucSketch
from rocsteady.core.measures.polynomial_auc import PolynomialAuc

compiled = hasattr(window_scan.scan_windows, "signatures")
rng = np.random.default_rng(8)
labels, scores = rng.integers(0, 2, 400), rng.integers(0, 40, 400) / 40
named = np.array(["up", "down", "flat"])
for k in (1, 2, 7, 100, None):
    for flip in (False, True):
        window = rs.AllEvents() if k is None else rs.LastEvents(k)
        ev = rs.ModelEvaluator(
            window=window, every=rs.EveryEvents(19), measures="all", probabilities=True,
            flip_if_below_half=flip, cost=rs.SeverityCost(),
        )
        rows = []
        for start in range(0, 400, 37):
            rows += ev.update(labels[start : start + 37], scores[start : start + 37])
            ev = rs.ModelEvaluator.from_bytes(ev.to_bytes())
        for row in [*rows, *ev.finish()]:
            print(tuple(row))
        curve = ev.curve()
        for column in (curve.threshold, curve.tp, curve.fp, curve.on_hull, curve.block_score):
            print("Curve", column.tolist())
    if k == 100:  # a tree
        ev = rs.ModelEvaluator(window=window, every=rs.EveryEvents(7), probabilities=True)
        for row in ev.update(labels, scores):
            print(tuple(row))
    ev = rs.ModelEvaluator(window=window, every=rs.EveryEvents(31), positive="up")
    for row in ev.update(named[labels * 2], scores, predicted=named[rng.integers(0, 3, 400)]):
        print(tuple(row))
for window, every in ((rs.LastEvents(9), rs.EverySeconds(8)), (rs.LastDuration(40), rs.EveryEvents(11))):
    arena = Arena(rs.EvaluatorSettings(window=window, every=every, probabilities=True), (7, 9))
    for number in range(3):
        arena.begin(number, f"arena {number}", "s=1")
    rows = []
    for start in range(0, 400, 37):
        part = slice(start, start + 37)
        times = (np.arange(400)[part] - rng.integers(0, 9, len(scores[part]))) * 1_000_000
        numbers = rng.integers(0, 3, len(times))
        rows += arena.apply(arena.runs(numbers, scores[part], labels[part].astype(np.int8), times))
        rows += arena.advance(start * 1_000_000)
        print("Arena", arena.pack().hex())
        arena.load(2, arena.remove(2))
    for row in [*rows, *arena.finish(600_000_000)]:
        print(tuple(row))
for spread in (0.0, 1.0, 9.0):
    sketch = AucSketch(1024)
    for _ in range(2):
        part = AucSketch(1024)
        y = rng.integers(0, 2, 700)
        part.add(y, 1 / (1 + np.exp(-spread * rng.normal(size=700))) - y)
        sketch.merge(AucSketch.from_bytes(part.to_bytes()))
    print("Sketch", sketch.to_bytes().hex(), sketch.bounds(), sketch.h_bounds())
polynomial = PolynomialAuc(7, (-9, 9))
polynomial.add(rng.integers(0, 2, 1_200), rng.normal(size=1_200), rng.exponential(size=1_200))
print("Polynomial", polynomial.to_bytes().hex(), polynomial.estimate())
negatives, positives = rng.integers(0, 3, (2, 20))
measures, reasons = np.zeros(40), np.zeros(40, np.int8)
called(window_scan.auc_interval)(
    negatives.astype(float), positives.astype(float), float(negatives.sum()), float(positives.sum()),
    1.96, measures, reasons,
)
print(measures.tolist())
adwin = Adwin(0.05)
print("Adwin", adwin.update(rng.random(2_000) < np.repeat([0.1, 0.9, 0.5, 0.2], 500)).tolist())
print("Adwin", adwin.update(np.full(200, 1e17 + 4.0)).tolist(), adwin.arrays[1].tolist())
assert compiled == @COMPILED@, "numba is on where it should be off, or the reverse"
"""


def printed(cache: Path, **switches: str) -> list[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **switches, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": path}
    program = PROGRAM.replace("@COMPILED@", str("NUMBA_DISABLE_JIT" not in switches))
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Rows of kernels that raise IndexError where an index lies outside."""
    return printed(tmp_path_factory.mktemp("checked"), NUMBA_BOUNDSCHECK="1")


@pytest.mark.slow
def test_kernels_stay_inside_their_arrays(checked: list[str]) -> None:
    assert sum(line.startswith("('', '', ") for line in checked) > 250
    assert sum(line.startswith("Curve [") for line in checked) == 50
    assert sum(line.startswith("('arena ") for line in checked) > 60


@pytest.mark.slow
def test_plain_python_gives_the_same_rows(checked: list[str], tmp_path: Path) -> None:
    plain = printed(tmp_path, NUMBA_DISABLE_JIT="1")
    assert [NUMBER.sub("", line) for line in plain] == [NUMBER.sub("", line) for line in checked]
    for line, other in zip(plain, checked, strict=True):
        # logarithms alone may differ, by the library that computes them
        values, others = ([float(text) for text in NUMBER.findall(given)] for given in (line, other))
        assert values == pytest.approx(others, rel=1e-14)


@pytest.mark.slow
def test_every_kernel_is_compiled_once_for_each_kind_of_event() -> None:
    if not hasattr(window_scan.scan_windows, "signatures"):
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT")
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 300), rng.random(300)
    frozen = scores.copy()
    frozen.flags.writeable = False
    for given in (labels, labels.astype(bool), labels.astype(np.float32), labels.tolist(), labels[::-1]):
        for values in (scores, frozen, scores[::-1], scores.astype(np.float32), scores.tolist()):
            ev = rs.ModelEvaluator(
                window=rs.LastEvents(50), every=rs.EveryEvents(40), measures="all", probabilities=True,
                flip_if_below_half=True,
            )  # fmt: skip
            ev.update(given, values, times=np.arange(300))
            again = rs.ModelEvaluator.from_bytes(ev.to_bytes())
            again.update(given, values)
            again.finish()
            again.measures()  # a kernel that others call is told only where Python calls it, too
            again.curve()
    for positive in (None, "1"):
        ev = rs.ModelEvaluator(window=rs.LastEvents(50), every=rs.EveryEvents(40), positive=positive)
        ev.update(labels, scores, predicted=labels)
        rs.ModelEvaluator.from_bytes(ev.to_bytes()).update(labels, scores, predicted=labels)
    for cost in (rs.BetaCost(), rs.SeverityCost()):
        tree = rs.ModelEvaluator(
            window=rs.LastEvents(1_000), every=rs.EveryEvents(1), measures="all", probabilities=True,
            flip_if_below_half=True, cost=cost,
        )  # fmt: skip
        tree.update(np.tile(labels, 4), np.tile(scores, 4))
        assert isinstance(tree._engine.window._ranking, TreeRanking)
        assert tree.curve().events == 1_000
    assert rs.ModelEvaluator().curve().events == 0
    kernels = {
        window_scan.scan_windows: 1,
        sorted_window.merge_sorted: 1,
        row_measures.write_measures: 1,
        decisions.write_decisions: 1,
        decisions.majority_class: 1,
        decisions.apply_decisions: 2,  # labels in bytes, and classes in 32 bits
    }
    for kernel, kinds in kernels.items():
        signatures = kernel.signatures  # type: ignore[attr-defined]
        assert len(signatures) == kinds, (kernel.__name__, signatures)
    given = [signature[1].dtype for signature in roc_curve.roc_points.signatures]
    # counts here; masses where another test of this process has drawn the curve of a window with weights
    assert sorted(map(str, given)) in (["int64"], ["float64", "int64"])
