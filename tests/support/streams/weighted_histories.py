"""Random streams of weighted and of fading events, hostile ones among them, cut and restarted anywhere.

A `History` is a pure function of its seed. `rows_of` evaluates it in one call, or in pieces with snapshots
between them; `turned` says where two such runs differ by more than 1e-12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import rocsteady as rs

MICROS = 1_000_000
TOLERANCE = 1e-12
LEAST = 1e-300
"""Masses and areas below it have lost digits already where they are given or written."""

WINDOWS: tuple[Any, ...] = (
    rs.LastEvents(3), rs.LastEvents(30), rs.LastEvents(150), rs.LastDuration(20), rs.LastDuration(300),
    rs.AllEvents(), rs.Fading(1), rs.Fading(7), rs.Fading(60), rs.Fading("2s"), rs.Fading("90s"),
    rs.Adaptive(), rs.Adaptive(0.3, "error"),
)  # fmt: skip
EMISSIONS: tuple[Any, ...] = (
    rs.EveryEvents(1), rs.EveryEvents(2), rs.EveryEvents(9), rs.EveryEvents(40), rs.EverySeconds(9),
)  # fmt: skip
SCORES = (
    "uniform", "normal", "hundredths", "few", "one", "perfect", "reversed", "huge", "ends", "mixed",
    "subnormal",
)  # fmt: skip
WEIGHTS = (
    "ones", "tenths", "of the class", "exponential", "wide", "wide by class", "one heavy", "faded", "powers",
    "nearly one", "giants",
)  # fmt: skip
LABELS = ("even", "rare", "alternating", "one class", "blocks")

EXACT = frozenset(
    ("model", "slice", "row", "seq", "time", "due", "window_events", "window_start", "window_end", "drift",
     "reason", "ks_threshold", "cost_threshold")
)  # fmt: skip
"""Columns that must be the same; all others are numbers."""

MASSES = frozenset(("weight", "positives", "negatives", "tp", "fp", "tn", "fn", "aum"))
"""Numbers of which 1e-12 is a share of themselves; all others lie between -1 and 1, but log loss and CMD."""


@dataclass(frozen=True)
class History:
    """A stream with its settings."""

    choices: dict[str, Any]
    labels: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    times: np.ndarray
    story: str


def history(seed: int, events: int | None = None) -> History:
    """Make the history of a seed."""
    rng = np.random.default_rng([seed, 19])
    window, every = _one(rng, WINDOWS), _one(rng, EMISSIONS)
    kinds = _one(rng, LABELS), _one(rng, SCORES), _one(rng, WEIGHTS)
    n = events or int(rng.choice([6, 25, 70, 200, 420]))
    labels = labels_of(kinds[0], n, rng)
    scores = scores_of(kinds[1], labels, rng)
    weights = weights_of(kinds[2], labels, rng)
    times = np.cumsum(rng.integers(0, 3, n) + (rng.random(n) < 0.01) * rng.integers(0, 90, n))
    if rng.random() < 0.4:
        times = times - (rng.random(n) < 0.2) * rng.integers(0, 25, n)
    choices: dict[str, Any] = {"window": window, "every": every, "measures": "all"}
    choices["probabilities"] = bool((scores >= 0.0).all() and (scores <= 1.0).all())
    if rng.random() < 0.2:
        choices |= {"flip_if_below_half": True}
    if rng.random() < 0.2:
        choices |= {"priors": 0.3}
    if isinstance(window, rs.Adaptive) and rng.random() < 0.5:
        scores = np.where(np.arange(n) > n // 2, scores[::-1], scores)
    story = f"{window}/{every}/{'/'.join(kinds)}/{n} events"
    return History(choices, labels, scores, weights, (times * MICROS).astype("datetime64[us]"), story)


def labels_of(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n labels."""
    if kind == "one class":
        return np.full(n, int(rng.integers(0, 2)))
    if kind == "alternating":
        return np.arange(n) % 2
    if kind == "blocks":
        return (np.arange(n) // int(rng.integers(1, 30))) % 2
    return (rng.random(n) < (0.5 if kind == "even" else 0.04)).astype(np.int64)


def scores_of(kind: str, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a score for each label."""
    n = len(labels)
    if kind == "uniform":
        return rng.random(n)
    if kind == "normal":
        return rng.normal(labels * 1.0)
    if kind == "hundredths":
        return (rng.integers(0, 60, n) / 100 + labels * 0.3).round(2)
    if kind == "few":
        return rng.choice([0.25, 0.5, 0.75], n)
    if kind == "one":
        return np.full(n, float(rng.choice([0.5, -1e308, 5e-324, 0.0])))
    if kind == "perfect":
        return rng.random(n) / 2 + labels * 0.5
    if kind == "reversed":
        return rng.random(n) / 2 + (1 - labels) * 0.5
    if kind == "huge":
        return np.clip(rng.normal(labels * 0.5), -4.0, 4.0) * 4e307
    if kind == "ends":
        return rng.choice([-1.7e308, -1e308, 1e308, 1.7e308], n) * (1 - rng.random(n) * 1e-3)
    if kind == "subnormal":
        return rng.integers(-40, 40, n) * 5e-324 * float(rng.choice([1.0, 1e5]))
    return np.where(
        rng.random(n) < 0.5, rng.choice([-1.7e308, 0.0, 5e-324, 1e-308, 1e-200, 1.7e308], n),
        rng.normal(size=n) * 10.0 ** rng.uniform(-307, 307, n),
    )  # fmt: skip


def weights_of(kind: str, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a weight for each event, of which the greatest is at most 1e100 times the least."""
    n = len(labels)
    t = np.arange(n)
    if kind == "ones":
        weights = np.ones(n)
    elif kind == "tenths":
        weights = rng.integers(1, 7, n) / 10
    elif kind == "of the class":
        weights = np.where(labels == 1, rng.random() + 0.1, rng.random() + 0.1)
    elif kind == "exponential":
        weights = rng.exponential(size=n) + 1e-9
    elif kind == "wide":
        weights = 10.0 ** rng.uniform(-50, 50, n)
    elif kind == "wide by class":
        weights = np.where(labels == 1, 1e45, 1e-45) * (rng.random(n) + 0.1)
    elif kind == "one heavy":
        weights = np.where(t == rng.integers(0, n), 10.0 ** rng.integers(1, 90), rng.random(n) + 0.1)
    elif kind == "faded":
        weights = np.exp2(np.where(t % 11 == 3, 0, -rng.integers(20, 40, n)))
    elif kind == "powers":
        weights = np.exp2(rng.integers(-160, 160, n))
    elif kind == "nearly one":
        weights = 1.0 + rng.integers(-60, 60, n) * 2.0 ** -rng.integers(44, 52)
    else:
        weights = np.where(t % 23 == 11, 1e40, 1.0 + rng.random(n))
    return np.asarray(weights * float(rng.choice([1.0, 1.0, 1.0, 1e-150, 1e150])))


def rows_of(made: History, rng: np.random.Generator | None = None, restarts: float = 0.5) -> list[Any]:
    """Return all rows: of one call, or of random pieces with snapshots between some of them."""
    ev = rs.ModelEvaluator(**made.choices)
    n = len(made.labels)
    ends = [n]
    if rng is not None:
        ends = sorted({*rng.integers(1, n + 1, int(rng.integers(1, 9))).tolist(), n})
    rows: list[Any] = []
    begin = 0
    for end in ends:
        at = slice(begin, end)
        rows += ev.update(made.labels[at], made.scores[at], times=made.times[at], weights=made.weights[at])
        begin = end
        if rng is not None and rng.random() < restarts:
            ev = rs.ModelEvaluator.from_bytes(ev.to_bytes())
    return [*rows, *ev.finish()]


def turned(rows: list[Any], others: list[Any]) -> list[str]:
    """Say where rows differ from others by more than 1e-12, or in what is no number."""
    if len(rows) != len(others):
        return [f"{len(rows)} rows, not {len(others)}"]
    found = []
    for row, other in zip(rows, others, strict=True):
        for name, a, b in zip(row._fields, row, other, strict=True):
            if not _is_same(name, a, b, other):
                found.append(f"row {row.row}: {name} is {a!r}, not {b!r}")
    return found


def _is_same(name: str, a: Any, b: Any, row: Any) -> bool:
    if a == b or name == "config":
        return True
    if name in EXACT or not (isinstance(a, float) and isinstance(b, float)):
        return False
    least = LEAST if name in MASSES else 1.0
    if name == "cmd":
        least = max(LEAST, row.tp * row.tn + row.fp * row.fn)
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE * least)


def _one(rng: np.random.Generator, choices: tuple[Any, ...]) -> Any:
    return choices[int(rng.integers(0, len(choices)))]
