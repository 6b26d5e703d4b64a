"""Kernels of single queries of a tree, for what no row asks."""

from __future__ import annotations

from typing import Any

from ..kernels.compile import entry
from ..kernels.records import whole
from .hull import cost_threshold, kolmogorov_smirnov
from .layout import FRESH, MASSES, Forest, root_run, times_power
from .query import area_under_min, placement, point_of_roc
from .rows import common_exponent, wants_rebuild
from .sums import refresh
from .update import DONE

ASK_NOTHING, ASK_AUC, ASK_TPR, ASK_FPR, ASK_COST, ASK_AUM, ASK_KS, ASK_REBUILD = range(8)
"""Questions. ASK_NOTHING only brings all sums up to date."""


@entry
def answer(tree: Forest, question: int, value: float) -> tuple[int, float, float]:
    """Answer a question about a value; return DONE, or the code of what is needed first, and the answer.

    Only the answer to ASK_KS has two numbers.
    """
    code = refresh(tree, MASSES if question == ASK_REBUILD else FRESH)
    first = second = 0.0
    if code != DONE or question == ASK_NOTHING:
        return code, first, second
    state = tree.state[0]
    run = root_run(tree)
    top = common_exponent(tree)
    scale_n = times_power(1.0, state.exponent[0] - top)
    scale_p = times_power(1.0, state.exponent[1] - top)
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
