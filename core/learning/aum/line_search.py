"""AUM along a line of predictions, exactly: the line search of Fowler & Hocking, as in the R package aum.

As predictions move by s times a direction, each threshold t_b - s d_b is a line in s. Between two crossings
of lines the order of thresholds stays, and AUM is linear in s. AUM is the sum over neighbours r, r + 1 in
that order of (t_{r+1} - t_r) m_{r+1}, where m is min(FP, FN) between both. So the slope of AUM is a sum over
lines of -d_r (m_r - m_{r+1}). Where neighbours cross, a single m changes.

Invariant
    Lines are in the order of their thresholds right after the step reached. A tournament over neighbours
    holds the next crossing of each pair (inf if the pair never crosses). So the least crossing is found in
    O(1) and replaced in O(log B). A pair that has crossed never crosses again. If several lines meet in one
    point, their order is reversed at once. Equal lines are merged into one line.

AUC is computed, too. AUC is constant between crossings, since a crossing changes one point of the ROC curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray
from ...kernels.compile import entry
from ..learner_settings import check_whole
from .aum import Breakpoints, as_breakpoints, check_finite, check_lengths, numbers_of


@dataclass(frozen=True, eq=False, repr=False)
class LineSearch:
    """AUM along a line: linear between the steps given.

    steps  float64[k], ascending from 0: the steps at which thresholds cross
    aum    float64[k], at each step
    slope  float64[k], the slope of AUM right after each step
    auc    float64[k], AUC from each step to the next; NaN if FP or FN is missing
    is_complete  no thresholds cross after the last step, so that the last slope holds for all larger steps

    >>> line = aum_line_search([1.0, -1.0], [-1.0, 1.0], [0, 1], [0, 0], [1, 0], [0, -1])
    >>> line.steps.tolist(), line.aum.tolist(), line.slope.tolist(), line.auc.tolist()
    ([0.0, 1.0], [2.0, 0.0], [-2.0, 0.0], [0.0, 1.0])
    >>> line.best_step, line.best_aum
    (2.0, 0.0)
    """

    steps: FloatArray
    aum: FloatArray
    slope: FloatArray
    auc: FloatArray
    is_complete: bool

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.steps)

    def __repr__(self) -> str:
        return f"<LineSearch: {len(self):,} steps to {self.steps[-1]:g}, best AUM {self.best_aum:g}>"

    @property
    def best_aum(self) -> float:
        """The least AUM."""
        return float(self.aum.min())

    @property
    def best_step(self) -> float:
        """The step of the least AUM: the middle of the first interval of steps with the least AUM.

        At a crossing thresholds are tied; if AUM stays as small beyond the crossing, the middle of the
        interval is better. If AUM does not rise after the last crossing, this is twice the last step.
        """
        at = int(np.argmin(self.aum))
        end = at
        while end + 1 < len(self.steps) and self.aum[end + 1] <= self.aum[at]:
            end += 1
        begin, stop = float(self.steps[at]), float(self.steps[end])
        if end + 1 == len(self.steps) and self.is_complete and self.slope[end] <= 0.0:
            return 2.0 * stop
        return (begin + stop) / 2.0

    @property
    def best_auc_step(self) -> float:
        """The middle of the first interval of steps with the greatest AUC.

        If this interval has no end, it is twice the last step.
        """
        at = int(np.nanargmax(self.auc)) if not np.isnan(self.auc).all() else 0
        begin = float(self.steps[at])
        return (begin + float(self.steps[at + 1])) / 2.0 if at + 1 < len(self.steps) else 2.0 * begin


def aum_line_search(
    predictions: npt.ArrayLike,
    direction: npt.ArrayLike,
    example: npt.ArrayLike,
    breakpoint: npt.ArrayLike,  # noqa: A002
    fp_diff: npt.ArrayLike,
    fn_diff: npt.ArrayLike,
    *,
    rate: bool = False,
    max_crossings: int | None = None,
) -> LineSearch:
    """Return AUM of predictions + s * direction for s >= 0, up to `max_crossings` crossings of thresholds.

    direction      n numbers: for descent, minus the gradient
    max_crossings  greatest number of crossings, B by default; there are up to B (B - 1) / 2
    predictions, example, breakpoint, fp_diff, fn_diff, rate
                   as in `aum`

    Raises InputError, as `aum` does. O((B + crossings) log B).

    >>> line = aum_line_search([1.0, -1.0], [-1.0, 1.0], [0, 1], [0, 0], [1, 0], [0, -1])
    >>> line.best_step, line.best_aum
    (2.0, 0.0)
    """
    given = as_breakpoints(predictions, example, breakpoint, fp_diff, fn_diff, rate)
    d = numbers_of("direction", direction)
    check_lengths(predictions=given.predictions, direction=d)
    check_finite("direction", d)
    if max_crossings is not None:
        check_whole("max_crossings", max_crossings, 0)
    return search_line(given, d, max_crossings)


def search_line(given: Breakpoints, direction: FloatArray, max_crossings: int | None = None) -> LineSearch:
    """Return the line search for arrays of the right kinds, without checks.

    Learners call it at every step.
    """
    given.aum()  # raises InputError for totals that are negative
    slopes = -direction[given.example]
    at = given.breakpoint - given.predictions[given.example]
    order = np.lexsort((slopes, at))
    lines = np.stack([each[order] for each in (at, slopes, given.fp_diff, given.fn_diff)])
    # Equal lines are merged into one line.
    first = np.flatnonzero((np.diff(lines[:2], prepend=-np.inf) > 0).any(axis=0))
    lines = np.concatenate([lines[:2, first], np.add.reduceat(lines[2:], first, axis=1)])
    count = lines.shape[1]
    totals = np.zeros((2, count + 1))
    totals[0, 1:] = np.cumsum(lines[2])
    totals[1, :-1] = np.cumsum(-lines[3, ::-1])[::-1]
    limit = len(given.example) if max_crossings is None else max_crossings
    leaves = 1 << max(count - 1, 1).bit_length()
    found = np.zeros((4, min(limit, count * (count - 1) // 2) + 1))
    size, is_complete = walk(lines, totals, np.full(2 * leaves, np.inf), limit, found)
    steps, aum, slope, auc = found[:, :size]
    return LineSearch(steps, aum, slope, auc, bool(is_complete))


@entry
def walk(
    lines: FloatArray, totals: FloatArray, tournament: FloatArray, limit: int, found: FloatArray
) -> tuple[int, bool]:
    """Go from crossing to crossing; return the number of steps written, and whether no crossing is left.

    lines       float64[4, B], in the order of thresholds: threshold, slope and differences of FP and
                FN; the columns are permuted
    totals      float64[2, B + 1]: FP and FN below line r; they are updated
    tournament  float64[2 * leaves], inf: leaf r says where the lines r and r + 1 cross
    found       float64[4, k], written: step, AUM, slope and AUC
    """
    at, slopes, fp_diff, fn_diff = lines[0], lines[1], lines[2], lines[3]
    fp, fn = totals[0], totals[1]
    steps, aum, slope, auc = found[0], found[1], found[2], found[3]
    count = len(at)
    leaves = len(tournament) // 2
    fp_all, fn_all = fp[count], fn[0]
    area = rise = curve = 0.0
    for r in range(count):
        below, above = max(min(fp[r], fn[r]), 0.0), max(min(fp[r + 1], fn[r + 1]), 0.0)
        if r:
            area += (at[r] - at[r - 1]) * below
        rise += slopes[r] * (below - above)
        curve += (fp[r + 1] - fp[r]) * (2.0 * fn_all - fn[r] - fn[r + 1])
    scale = 2.0 * fp_all * fn_all if fp_all > 0.0 and fn_all > 0.0 else np.nan
    steps[0], aum[0], slope[0], auc[0] = 0.0, area, rise, curve / scale
    for r in range(count - 1):
        if slopes[r] > slopes[r + 1]:
            tournament[leaves + r] = (at[r + 1] - at[r]) / (slopes[r] - slopes[r + 1])
    for node in range(leaves - 1, 0, -1):
        tournament[node] = min(tournament[2 * node], tournament[2 * node + 1])
    step = 0.0
    written, crossings = 1, 0
    while crossings < limit and tournament[1] < np.inf:
        now = max(tournament[1], step)
        area = max(area + rise * (now - step), 0.0)
        is_new = now > step
        step = now
        near = step * (1.0 + 4e-16)
        while tournament[1] <= near and crossings < limit:
            node = 1
            while node < leaves:
                node *= 2
                if tournament[node] != tournament[node // 2]:
                    node += 1
            first = node - leaves
            while first and tournament[leaves + first - 1] <= near:
                first -= 1
            last = node - leaves + 1
            while last + 1 < count and tournament[leaves + last] <= near:
                last += 1
            # lines first..last meet: subtract each from the sums, reverse their order, and add each again
            for turn in range(2):
                sign = 2.0 * turn - 1.0
                for r in range(first, last + 1):
                    below, above = max(min(fp[r], fn[r]), 0.0), max(min(fp[r + 1], fn[r + 1]), 0.0)
                    rise += sign * slopes[r] * (below - above)
                    curve += sign * (fp[r + 1] - fp[r]) * (2.0 * fn_all - fn[r] - fn[r + 1])
                if turn == 0:
                    i, j = first, last
                    while i < j:
                        for row in range(4):
                            lines[row, i], lines[row, j] = lines[row, j], lines[row, i]
                        i += 1
                        j -= 1
                    for r in range(first, last):
                        fp[r + 1] = fp[r] + fp_diff[r]
                    for r in range(last, first, -1):
                        fn[r] = fn[r + 1] - fn_diff[r]
            crossings += last - first
            for r in range(max(first - 1, 0), min(last + 1, count - 1)):
                next_step = np.inf
                if slopes[r] > slopes[r + 1]:
                    next_step = max((at[r + 1] - at[r]) / (slopes[r] - slopes[r + 1]), step)
                node = leaves + r
                tournament[node] = next_step
                while node > 1:
                    node //= 2
                    tournament[node] = min(tournament[2 * node], tournament[2 * node + 1])
        written += is_new
        place = written - 1
        steps[place], aum[place], slope[place], auc[place] = step, area, rise, curve / scale
    return written, tournament[1] == np.inf
