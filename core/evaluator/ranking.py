"""The window's events in score order, and the ranking measures of a row. Two implementations make equal rows.

`SortedRanking` (sorted_ranking.py) keeps sorted arrays and scans them at a row. It does no work between rows,
and holds any number of events. `TreeRanking` (tree_ranking.py) keeps a ScoreTree, in which nearly every
measure is current after every event, so that a whole batch with its rows is one call. Other measures are made
at the row from the tree's hull or its entries (measures/at_row.py). Both classes make a row from the same
whole numbers and exact sums: rows are equal to the last bit, also when one of the classes replaces the other.

`tree_sizes` chooses the class: a pure function of the settings and the number of events held.
"""

from __future__ import annotations

import functools
import math
import sys

import numpy as np
from scipy.special import ndtri

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.rings import FIRST_CAPACITY
from ..measures.at_row import curvature_of, made_at_row
from ..measures.scan import EXACT_EVENTS
from ..measures.sorted import place
from ..rows import slots
from ..rows.columns import OUT_OF_RANGE
from ..settings.evaluator import EvaluatorSettings
from ..settings.measure_names import MEASURES

_STRIDE_OF_GRID = 100


def tree_sizes(settings: EvaluatorSettings) -> range:
    """Return the numbers of held events at which a tree is faster than scans; an empty range if none is.

    A pure function. It decides speed and memory only: rows are the same. A tree pays off once it makes
    several rows. A scan takes some 60 us a row and .02 us per event held; a tree takes .3 us an event, and
    a millisecond to be built (docs/benchmarks/core.md). A tree does not hold EXACT_EVENTS or more.

    At a row with measures that a tree does not keep (`AtRow`), the tree lists its hull or its entries: 50 to
    90 us. Microseconds a row, scan / tree, for all measures of probabilities with 1,000 and with 10,000
    events: 120 / 90 and 1,110 / 400 with a row per event. 160 / 180 and 1,180 / 620 with a row per 100
    events. 85 / 430 and 1,220 / 1,090 with a row per 1,000 events. The area under the cost curve alone, with
    10,000 events and a row per 1, 100 and 1,000 events: 380 / 50, 480 / 190 and 480 / 700.
    """
    limit = settings.window.size
    end = EXACT_EVENTS if limit is None else 0 if limit >= EXACT_EVENTS else limit + 1
    stride = stride_of(settings)
    start = max(1_000, 20 * stride) if made_at_row(settings).anything else max(64, 2 * stride)
    if settings.window.signal == "placement":
        start = FIRST_CAPACITY  # every event needs its placement, which costs O(k) by a scan
    return range(start, end)


def stride_of(settings: EvaluatorSettings) -> int:
    """Return the number of events between rows; for rows on a grid of times, a guess."""
    return settings.every.events or _STRIDE_OF_GRID


def steps_until_switch(sizes: range, held: int, has_tree: bool) -> int:
    """Return the number of steps after which to check again whether a tree or scans suit the window."""
    if has_tree:  # a window of the last n events never grows too large for its tree
        return sizes.stop - held if sizes.stop == EXACT_EVENTS else sys.maxsize
    return max(1_024, sizes.start - held) if sizes else sys.maxsize


def keeps_form(sizes: range, held: int, has_tree: bool) -> bool:
    """Return whether a window keeps its form, tree or scans.

    A switch costs O(k), so the thresholds differ: the number of events must change much to switch back.
    """
    if has_tree:
        return sizes.start // 4 <= held < sizes.stop
    return not (sizes.start <= held < sizes.stop - sizes.stop // 10 * (sizes.stop == EXACT_EVENTS))


def z_of(settings: EvaluatorSettings) -> float:
    """Return the normal quantile of the AUC interval: its half-width in standard errors."""
    return float(ndtri(0.5 + settings.confidence / 2.0))


@functools.lru_cache(maxsize=64)
def asked_of_rows(settings: EvaluatorSettings) -> tuple[Int8Array, float, float | None]:
    """Return flags of the measures asked for, `z_of` and `curvature_of`; cached, for models to share."""
    asked = np.array([name in (settings.measures or ()) for name in MEASURES], np.int8)
    return asked, z_of(settings), curvature_of(settings)


def placed(
    labels: Int8Array,
    scores: FloatArray,
    chosen: Int64Array,
    ranks: Int64Array,
    negatives: int,
    positives: int,
) -> FloatArray:
    """Return placement values of the chosen events, given their ranks in the window (`ScoreTree.ranks`)."""
    values = np.empty(len(chosen))
    place(labels, scores, chosen, ranks, negatives, positives, values)
    return values


def refuse_infinite(numbers: FloatArray, reasons: Int8Array) -> None:
    """Make measures null, with the reason, that extreme costs, priors or scores have made infinite."""
    measures = numbers[:, slots.MEASURES :]
    for measure in (slots.H, slots.AUM):
        bad = np.isinf(measures[:, measure])
        if measure == slots.H:
            bad |= np.isnan(measures[:, slots.H]) & ~np.isnan(measures[:, slots.AUC])
        if bad.any():
            measures[bad, measure] = math.nan
            reasons[bad, measure] = OUT_OF_RANGE
