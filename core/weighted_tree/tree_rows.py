"""Applies batches of weighted events, and writes the rows that fall due, in one compiled loop.

Answers single questions.

A row is written from the sums and the hull of the root, and by one or two descents. O(hull + log k), after
the stale part of the tree has been summed again.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..arrays import NO_FLOATS, NO_INT8, NO_INT64, FloatArray, Int8Array
from ..kernels.compile import entry, inlined, kernel
from ..kernels.records import at, whole
from ..rows import slots
from ..rows.reasons import DEGENERATE, ONE_CLASS, OUT_OF_RANGE, TOO_FEW
from .layout import (
    FAINT,
    FRESH,
    LOSS_ALLOWED,
    MASSES,
    SQUARES_ALLOWED,
    TINY_TOTAL,
    Forest,
    root_run,
    times_power,
)
from .query import area_under_min, cost_threshold, kolmogorov_smirnov, placement, point_of_roc
from .sums import refresh
from .update import DONE, NEEDS_REBUILD, insert, remove

RAREST = 2.0**-900
"""A class whose share of the window is smaller than this has no mass left beside the other class."""
STEADY = 2.0**-90
"""A relative variance of placements below this number is rounding: all placements are then the same."""
ONE_EVENT = 1e-9
"""An effective size of at most 1 plus this number counts as the size of one event."""
END = 2.0**-40
"""If a number is nearer to the largest float than this relative distance, rounding decides if it is null."""


ASK_NOTHING, ASK_AUC, ASK_TPR, ASK_FPR, ASK_COST, ASK_AUM, ASK_KS, ASK_REBUILD = range(8)
"""Codes of questions for `answer`. ASK_NOTHING only brings all sums up to date."""


class RowAsk(NamedTuple):
    """The optional values that a row gets, and the points at which they are taken."""

    z: float  # half the width of the AUC interval, in standard errors
    fpr: float
    cost: float
    h: int  # 1: with the cost density of this curvature (`loss_in_fixed_point`): Beta(2, 2) 1, Beta(1, 1) 0
    curvature: float
    prior: float  # share of positives; below 0: the window's own share
    area: int  # 1: compute the area under the cost curve


class RowPlan(NamedTuple):
    """The rows that fall due in a batch, their scales, and the arrays that take their numbers."""

    ends: Any  # int64[rows], ascending: events of the batch applied before each row
    scales: Any  # float64[rows]: the factor, and
    exponents: Any  # int64[rows]: a row's mass is that of the given weights * scale * 2^exponent
    numbers: Any  # float64[rows, len(NUMBER_COLUMNS)]
    reasons: Any  # int8[rows, len(MEASURES)]


class Batch(NamedTuple):
    """Events in order, as arrays: int8 labels, float64 scores and weights, int8 signs."""

    labels: Any
    scores: Any
    weights: Any
    signs: Any


NO_ROWS = RowPlan(NO_INT64, NO_FLOATS, NO_INT64, np.empty((0, 0)), np.empty((0, 0), np.int8))
NO_EVENTS = Batch(NO_INT8, NO_FLOATS, NO_FLOATS, NO_INT8)


def one_row(numbers: FloatArray, reasons: Int8Array, scale: float = 1.0, exponent: int = 0) -> RowPlan:
    """Return the plan of a single row that is written now, to `numbers` and `reasons`."""
    scales, exponents = np.array([scale], np.float64), np.array([exponent], np.int64)
    return RowPlan(np.zeros(1, np.int64), scales, exponents, numbers[np.newaxis], reasons[np.newaxis])


@inlined
def common_scale(tree: Forest) -> tuple[int, float, float]:
    """Return the exponent of one scale for both classes, and the factors that bring each class to this scale.

    With one class, the factor of the other class is 0.
    """
    state = tree.state[0]
    n, p = state.exponent[0], state.exponent[1]
    if state.events[0] == 0:
        return p, 0.0, 1.0
    if state.events[1] == 0:
        return n, 1.0, 0.0
    top = max(n, p)
    return top, times_power(1.0, n - top), times_power(1.0, p - top)


@inlined
def wants_rebuild(tree: Forest) -> bool:
    """Return whether sums should be computed again from the events. Needs fresh masses."""
    state = tree.state[0]
    run = root_run(tree)
    if state.spoiled != 0:
        return True
    for c in range(2):
        mass = run.mass[c]
        if state.events[c] == 0:
            continue
        if mass < TINY_TOTAL:
            return True
        # The squares are at least those of equal weights; their sum itself may be stale.
        if state.lost_squares[c] * state.events[c] > SQUARES_ALLOWED * (mass * mass):
            return True
    return False


@kernel
def edge_loss(n: float, p: float, curvature: float) -> float:
    """Return h(n, p) of Hand's measure for one edge."""
    t = n + p
    if not t > 0.0:
        return 0.0
    share = p / t
    w = n * share
    return 0.5 * w * (1.0 + curvature * share * (n / t))


@kernel
def write_interval(tree: Forest, z: float, measures: Any, reasons: Any) -> bool:
    """Write AUC and DeLong's interval by effective sample sizes: docs/architecture/math.md, "The interval".

    The variance is the sum over classes of spread / (mass others^2) / (size - 1). size = mass^2 / squares,
    and size - 1 = 2 cross / squares. Returns whether rounding may have decided which value is null or
    degenerate.
    """
    run = root_run(tree)
    n, p = run.mass[0], run.mass[1]
    auc = min(1.0, run.pairs / n / p)
    if tree.state[0].entries == 1:
        auc = 0.5
    elif run.edge_count == 2:
        low, high = tree.pool[at(run.edges)], tree.pool[at(run.edges + 1)]
        if (low.mass[1] == 0.0) & (high.mass[0] == 0.0):
            auc = 1.0
    measures[slots.AUC] = auc
    beyond_n, beyond_p = 2.0 * run.cross[0] / run.squares[0], 2.0 * run.cross[1] / run.squares[1]
    beyond = min(beyond_n, beyond_p)
    doubt = abs(beyond - ONE_EVENT) < 1e-6 * ONE_EVENT
    if beyond <= ONE_EVENT:
        reasons[slots.AUC_LOW] = TOO_FEW
        reasons[slots.AUC_HIGH] = TOO_FEW
        return doubt
    share_p = run.spread[1] / p / n / n
    share_n = run.spread[0] / n / p / p
    for share in (share_p, share_n):
        doubt |= (share > STEADY / 16.0) & (share < STEADY * 16.0)
    variance = 0.0
    if share_p > STEADY:
        variance += share_p / beyond_p
    if share_n > STEADY:
        variance += share_n / beyond_n
    half_width = z * math.sqrt(variance)
    measures[slots.AUC_LOW] = max(0.0, auc - half_width)
    measures[slots.AUC_HIGH] = min(1.0, auc + half_width)
    if variance == 0.0:
        reasons[slots.AUC_LOW] = DEGENERATE
    return doubt


@kernel
def write_hull_measures(tree: Forest, ask: RowAsk, scale_n: float, scale_p: float, measures: Any) -> None:
    """Write H and the area under the cost curve, O(hull)."""
    run = root_run(tree)
    n, p = run.mass[0], run.mass[1]
    if ask.prior >= 0.0:
        scale_n, scale_p = (1.0 - ask.prior) / n, ask.prior / p
    loss = area = 0.0
    begin = run.edges
    for i in range(begin, begin + run.edge_count):
        edge = tree.pool[at(i)]
        loss += edge_loss(edge.mass[0] * scale_n, edge.mass[1] * scale_p, ask.curvature)
        if ask.area != 0:
            area += edge_loss(edge.mass[0] / n, edge.mass[1] / p, 0.0)
    if ask.h != 0:
        measures[slots.H] = 1.0 - loss / edge_loss(n * scale_n, p * scale_p, ask.curvature)
    if ask.area != 0:
        measures[slots.COST_CURVE_AREA] = area


@kernel
def has_lost(tree: Forest) -> bool:
    """Return whether tied entries lost so much to rounding that effective sizes near 1 are not known.

    Needs fresh sums.
    """
    state, run = tree.state[0], root_run(tree)
    for c in range(2):
        lost = state.lost_squares[c] + 2.0 * run.mass[c] * state.lost[c]
        if lost > LOSS_ALLOWED * max(2.0 * run.cross[c], 0.1 * ONE_EVENT * run.squares[c]):
            return state.events[c] > 1
    return False


@kernel
def is_faint(tree: Forest) -> bool:
    """Return whether a mass is so small that its digits are not known; O(k), for a tree without a history."""
    for leaf in range(len(tree.leaves)):
        for slot in range(tree.leaves[leaf].count):
            for c in range(2):
                mass = tree.leaves[leaf].mass[c, slot]
                if (mass > 0.0) & (mass < FAINT):
                    return True
    return False


@inlined
def is_at_the_end(value: float, exponent: int) -> bool:
    """Return whether rounding decides if value * 2^exponent is beyond the largest float."""
    return np.isfinite(times_power(value * (1.0 - END), exponent)) & np.isinf(
        times_power(value * (1.0 + END), exponent)
    )


@kernel
def write_row(tree: Forest, ask: RowAsk, scale: float, exponent: int, numbers: Any, reasons: Any) -> int:
    """Write masses and ranking measures; return DONE, or the code of what must be done before.

    If rounding may have decided which value is null, or which score is a threshold, the tree is built again
    from the events (NEEDS_REBUILD), and the row is written again: it is then a function of the window alone.
    `WeightedRanking` writes the measures that need every entry, and H of other cost densities.
    """
    code = refresh(tree, FRESH)
    if code != DONE:
        return code
    if wants_rebuild(tree) or has_lost(tree):
        return NEEDS_REBUILD
    measures = numbers[slots.MEASURES :]
    if write_measures(tree, ask, scale, exponent, numbers, reasons) and tree.state[0].changes != 0:
        numbers[: slots.MEASURES] = np.nan
        measures[: slots.TP] = np.nan
        reasons[: slots.TP] = 0
        return NEEDS_REBUILD
    return DONE


@kernel
def write_measures(
    tree: Forest, ask: RowAsk, scale: float, exponent: int, numbers: Any, reasons: Any
) -> bool:
    """Write masses and ranking measures from fresh sums; return whether rounding may have decided a value."""
    state = tree.state[0]
    run = root_run(tree)
    top, scale_n, scale_p = common_scale(tree)
    n, p = run.mass[0] * scale_n, run.mass[1] * scale_p
    numbers[slots.WEIGHT] = times_power((n + p) * scale, top + exponent)
    numbers[slots.POSITIVES] = times_power(run.mass[1] * scale, state.exponent[1] + exponent)
    numbers[slots.NEGATIVES] = times_power(run.mass[0] * scale, state.exponent[0] + exponent)
    doubt = False
    if not numbers[slots.WEIGHT] < 1e308:
        doubt |= is_at_the_end((n + p) * scale, top + exponent)
        doubt |= is_at_the_end(run.mass[1] * scale, state.exponent[1] + exponent)
        doubt |= is_at_the_end(run.mass[0] * scale, state.exponent[0] + exponent)
    for i in range(slots.PREVALENCE):
        if np.isinf(numbers[i]):
            numbers[i] = np.nan
    if state.entries == 0:
        return doubt
    numbers[slots.PREVALENCE] = p / (n + p)
    if (state.events[0] == 0) | (state.events[1] == 0):
        for measure in slots.RANKED:
            reasons[measure] = ONE_CLASS
        return doubt
    measures = numbers[slots.MEASURES :]
    doubt |= write_interval(tree, ask.z, measures, reasons)
    write_hull_measures(tree, ask, scale_n, scale_p, measures)
    ks, threshold, in_doubt = kolmogorov_smirnov(tree)
    doubt |= in_doubt
    measures[slots.KS] = ks
    measures[slots.KS_THRESHOLD] = threshold
    measures[slots.TPR_AT_FPR], in_doubt = point_of_roc(tree, ask.fpr, 0)
    doubt |= in_doubt
    doubt |= abs(min(n, p) - RAREST) < 1e-6 * RAREST
    if min(n, p) < RAREST:
        if ask.prior < 0.0:
            measures[slots.H] = np.nan
            reasons[slots.H] = OUT_OF_RANGE
        reasons[slots.COST_THRESHOLD] = OUT_OF_RANGE
        reasons[slots.AUM] = OUT_OF_RANGE
        return doubt
    doubt |= run.faint != 0
    if (run.faint != 0) and is_faint(tree):  # with a mass that is lost, the share of positives is not known
        reasons[slots.COST_THRESHOLD] = OUT_OF_RANGE
    else:
        measures[slots.COST_THRESHOLD], in_doubt = cost_threshold(tree, ask.cost, scale_n, scale_p)
        doubt |= in_doubt
    area, power = area_under_min(tree, scale_n, scale_p)
    aum = times_power(area * scale, top + exponent + power)
    if not aum < 1e308:
        doubt |= is_at_the_end(area * scale, top + exponent + power)
    if np.isfinite(aum):
        measures[slots.AUM] = aum
    else:
        reasons[slots.AUM] = OUT_OF_RANGE
    return doubt


@entry
def run_batch(tree: Forest, batch: Batch, ask: RowAsk, plan: RowPlan, placements: Any, course: Any) -> int:
    """Apply a batch from the place where `course` (next event, next row) stands.

    Return DONE, or the code of what stopped the batch.

    placements: empty; or float64, one an event, filled for each entering event with its placement among the
    events before it.
    """
    while True:
        while course[1] < len(plan.ends) and plan.ends[at(course[1])] == course[0]:
            row = course[1]
            code = write_row(
                tree, ask, plan.scales[at(row)], plan.exponents[at(row)], plan.numbers[at(row)],
                plan.reasons[at(row)],
            )  # fmt: skip
            if code != DONE:
                return code
            course[1] = row + 1
        event = course[0]
        if event == len(batch.scores):
            return DONE
        label = whole(batch.labels[at(event)])
        score = batch.scores[at(event)] + 0.0  # + 0.0 turns -0.0 into 0.0
        weight = batch.weights[at(event)]
        if batch.signs[at(event)] > 0:
            if len(placements) > 0:
                placements[at(event)] = placement(tree, label, score)
            code = insert(tree, label, score, weight)
        else:
            code = remove(tree, label, score, weight)
        if code != DONE:
            return code
        course[0] = event + 1


@entry
def answer(tree: Forest, question: int, value: float) -> tuple[int, float, float]:
    """Answer a question about a value.

    Return DONE, or the code of what must be done before, then the two numbers of the answer.

    Only ASK_KS has a second number.
    """
    code = refresh(tree, MASSES if question == ASK_REBUILD else FRESH)
    first = second = 0.0
    if code != DONE or question == ASK_NOTHING:
        return code, first, second
    run = root_run(tree)
    top, scale_n, scale_p = common_scale(tree)
    if question == ASK_REBUILD:
        first = 1.0 if wants_rebuild(tree) else 0.0
    elif question == ASK_AUC:
        first = min(1.0, run.pairs / run.mass[0] / run.mass[1])
    elif question == ASK_KS:
        first, second, _ = kolmogorov_smirnov(tree)
    elif question == ASK_AUM:
        area, power = area_under_min(tree, scale_n, scale_p)
        first = times_power(area, top + power)
    elif question == ASK_COST:
        first, _ = cost_threshold(tree, value, scale_n, scale_p)
    else:
        first, _ = point_of_roc(tree, value, whole(1) if question == ASK_FPR else whole(0))
    return code, first, second


@entry
def place_scores(tree: Forest, labels: Any, scores: Any, out: Any) -> None:
    """Fill `out` with the placement of each event among the events in the tree."""
    for i in range(len(scores)):
        out[i] = placement(tree, whole(labels[i]), scores[i] + 0.0)
