"""The window's events in score order, and what a row says of their ranking. Two ways, the same rows.

`SortedRanking` (sorted_ranking.py) keeps sorted arrays and scans them at a row: nothing to keep between rows,
any number of events. `TreeRanking` (tree_ranking.py) keeps a ScoreTree, in which nearly everything is current
after every event: a whole batch with its rows is one call, and what is not kept is made at the row from its
hull or its entries (measures/at_row.py). Both make a row from the same whole numbers and exact sums, so that
rows do not tell, bit for bit, which of the two was at work, nor where one took over from the other.

`tree_sizes` says which to use: a pure function of the settings and of how many events are held.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from ..arrays import FloatArray, Int8Array, Int64Array
from ..kernels.rings import FIRST_CAPACITY
from ..measures.at_row import curvature_of, made_at_row
from ..measures.scan import EXACT_EVENTS
from ..measures.sorted import place
from ..measures.steps import Steps
from ..rows.columns import NUMBER_COLUMNS, OUT_OF_RANGE
from ..settings.evaluator import EvaluatorSettings
from ..settings.measures import MEASURES

_MEASURE = len(NUMBER_COLUMNS) - len(MEASURES)
_H, _AUM = MEASURES.index("h"), MEASURES.index("aum")
_STRIDE_OF_GRID = 100


def tree_sizes(settings: EvaluatorSettings) -> range:
    """Return the numbers of held events at which a tree serves a window better than scans; maybe none.

    Pure, and only of speed and memory: rows are the same. A tree pays off once it gives several rows: a
    scan takes some 60 us a row and .02 us per event held, a tree .3 us an event and a millisecond to
    begin with (docs/benchmarks/core.md). Where a row needs what a tree does not keep (`AtRow`) it stops
    there, 50 to 90 us, and lists its hull, or its entries: microseconds a row by scan / by tree, all
    measures of probabilities, 120 / 90 for 1,000 events and 1,110 / 400 for 10,000 with a row per event,
    160 / 180 and 1,180 / 620 with one per 100, 85 / 430 and 1,220 / 1,090 with one per 1,000; the area under
    the cost curve alone, at 10,000, 380 / 50, 480 / 190 and 480 / 700. It does not hold EXACT_EVENTS or more.
    """
    limit = settings.window.size
    end = EXACT_EVENTS if limit is None else 0 if limit >= EXACT_EVENTS else limit + 1
    stride = stride_of(settings)
    start = max(1_000, 20 * stride) if made_at_row(settings).anything else max(64, 2 * stride)
    if settings.window.signal == "placement":
        start = FIRST_CAPACITY  # every event is placed, O(k) by a scan
    return range(start, end)


def stride_of(settings: EvaluatorSettings) -> int:
    """Return about how many events there are between rows: for rows on a grid a guess."""
    return settings.every.events or _STRIDE_OF_GRID


def steps_until_switch(sizes: range, held: int, has_tree: bool) -> int:
    """Return how many steps may go by before it is to be asked anew which form suits a window."""
    if has_tree:  # of a size, it never grows beyond what suits it
        return sizes.stop - held if sizes.stop == EXACT_EVENTS else sys.maxsize
    return max(1_024, sizes.start - held) if sizes else sys.maxsize


def keeps_form(sizes: range, held: int, has_tree: bool) -> bool:
    """Return whether a window stays in its form. A switch costs O(k): going to and fro takes changes."""
    if has_tree:
        return sizes.start // 4 <= held < sizes.stop
    return not (sizes.start <= held < sizes.stop - sizes.stop // 10 * (sizes.stop == EXACT_EVENTS))


def z_of(settings: EvaluatorSettings) -> float:
    """Return the quantile of the normal distribution that the AUC interval reaches to."""
    return float(ndtri(0.5 + settings.confidence / 2.0))


class Ranking(Protocol):
    """The window in score order. Events come in order of arrival, the oldest go as the window says."""

    def take(
        self,
        labels: Int8Array,
        scores: FloatArray,
        steps: Steps,
        numbers: FloatArray,
        reasons: Int8Array,
    ) -> None:
        """Follow steps; write the rows that fall due, one of `numbers` and `reasons` each.

        labels, scores  one a step; without meaning where none enters
        """
        ...

    def placements_ahead(self, labels: Int8Array, scores: FloatArray, chosen: Int64Array) -> FloatArray:
        """Return the placement values of some of these events, if they come and none goes.

        docs/math.md, "Placement values", defines them.

        chosen  indices, ascending. NaN where the other class is empty.
        """
        ...

    def write_row(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """Write what the window says now into one row."""
        ...

    def to_arrays(self) -> tuple[Int8Array, FloatArray]:
        """Return labels and scores of the window, oldest first."""
        ...

    def to_entries(self) -> tuple[FloatArray, Int64Array, Int64Array]:
        """Return the window's distinct scores, ascending, with their negatives and positives."""
        ...

    def live_bytes(self) -> int:
        """Return about how much memory it takes."""
        ...


@functools.lru_cache(maxsize=64)
def asked_of_rows(settings: EvaluatorSettings) -> tuple[Int8Array, float, float | None]:
    """Return which measures are asked for, the quantile and the curvature: the same for many models."""
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
    """Return placements by the ranks that the chosen have among what is there (`ScoreTree.ranks`)."""
    values = np.empty(len(chosen))
    place(labels, scores, chosen, ranks, negatives, positives, values)
    return values


def refuse_infinite(numbers: FloatArray, reasons: Int8Array) -> None:
    """Make null, with the reason, what extreme costs, priors or scores have made of a measure."""
    for measure in (_H, _AUM):
        bad = np.isinf(numbers[:, _MEASURE + measure])
        if measure == _H:
            bad |= np.isnan(numbers[:, _MEASURE + measure]) & ~np.isnan(numbers[:, _MEASURE])
        if bad.any():
            numbers[bad, _MEASURE + measure] = math.nan
            reasons[bad, measure] = OUT_OF_RANGE
