"""Compiles every kernel ahead of time, for images of workers and for machines that must not wait.

A worker compiles the kernels of its job when it starts, which takes seconds for each kind of window, unless
the machine code is in the cache folder (`kernels`). The code is in the folder after one run of `compile_all`
in the same place, by the same versions of Python, numba and rocsteady, on the same kind of processor. An
image for many kinds of processors sets NUMBA_CPU_NAME=generic, both when it is built and when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ..evaluator.evaluator import ModelEvaluator
from ..join.join_settings import JoinSettings
from ..kernels.cache_folder import CACHE_FOLDER
from ..rows.measure_table import MEASURES
from ..settings.evaluator import EvaluatorSettings
from ..settings.table import SPANS, TableSettings
from ..settings.windows import Adaptive, AllEvents, EveryEvents, Fading, LastDuration, LastEvents, Window
from .compile_ahead import warm_up

_DAY = 86_400_000_000
_MANY = 400
"""The number of events that are applied: more than the scan of a small window can hold, so that the window
builds a tree.
"""

_WINDOWS: tuple[Window, ...] = (
    LastEvents(300),
    LastDuration("1d"),
    Fading(100),
    Fading("1d"),
    Adaptive(),
    Adaptive(signal="error"),
    Adaptive(signal="brier"),
    AllEvents(),
)


def compile_all(say: Callable[[str], None] = lambda _: None) -> None:
    """Compile every kernel into the cache folder.

    The first time takes some minutes of one core; with a full cache it takes seconds. `say` is called with
    the name of each step before the step begins.
    """
    for second in ("first", "last", "dead-letter"):
        say(f"joins of labels, {second}")
        warm_up(JoinSettings(_DAY, second=second, deduplicate=_DAY))
    for window, measures in product(_WINDOWS, (None, MEASURES)):
        say(f"window {window}, {'all' if measures else 'the usual'} measures")
        settings = EvaluatorSettings(
            window=window,
            every=EveryEvents(7),
            measures=measures,
            probabilities=measures is not None or "brier" in str(window),
            curves="end" if measures is not None else None,
        )
        _compile(settings)


def compiled() -> int:
    """Return how many compiled kernels are in the cache folder; 0 if there is none, or no cache folder."""
    return 0 if CACHE_FOLDER is None else sum(1 for _ in CACHE_FOLDER.rglob("*.nbc"))


def _compile(settings: EvaluatorSettings) -> None:
    spans: Any = dict.fromkeys(SPANS, _DAY)
    warm_up(TableSettings(settings, **spans))
    rng = np.random.default_rng(1)
    labels, scores = (rng.random(_MANY) < 0.4).astype(np.int8), rng.random(_MANY).round(2)
    times, weights = np.arange(_MANY) * 1_000_000, rng.random(_MANY) + 0.5
    for weight in (None, weights):
        evaluator = ModelEvaluator(settings)
        for later in (0, 1):  # the first events build a tree, and the second events move the window over it
            evaluator.apply(scores, labels, times + later * _MANY * 1_000_000, weights=weight)
            evaluator = ModelEvaluator.from_bytes(evaluator.to_bytes(), settings)
        evaluator.finish()
