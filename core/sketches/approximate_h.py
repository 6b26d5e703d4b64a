"""H-measure and area under the cost curve from a subset of the hull, with a certified bound.

Both measures are a least loss: minimised over thresholds at every cost of errors, and averaged over the
costs. Over a subset of the hull's vertices the minimum is larger. Over the subset of `score_tree.subset` it
is larger by at most the factor 1 + epsilon: L <= L~ <= (1 + epsilon) L, where L is the loss of the hull and
L~ the loss of the subset. So H is never overestimated, and underestimated by at most epsilon (1 - H). The
area is never underestimated, and overestimated by at most epsilon times itself. Tatti 2021, section 6,
Propositions 3 to 6.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..errors import ConfigError, InputError
from ..measures.at_row import cost_curve_area, h_measure
from ..rows.curves import RocCurve
from ..score_tree.subset import thin_hull
from ..score_tree.tree import Hull, ScoreTree
from ..settings.costs import Cost
from ..settings.evaluator import EvaluatorSettings

HullLike = ScoreTree | Hull | RocCurve | tuple[npt.ArrayLike, npt.ArrayLike]

_SLOPES = 1e-9
"""By how much a slope of real masses may be below the slope before it: they are rounded quotients of
differences.
"""


@dataclass(frozen=True)
class Approximation:
    """An approximate value, and the limits between which the exact value lies.

    value      the approximation: for H the lower limit, for an area the upper limit
    low, high  the exact value lies between them, apart from rounding of some 1e-15
    vertices   how many vertices of the hull were used, (0, 0) and the last vertex among them
    """

    value: float
    low: float
    high: float
    vertices: int

    @property
    def bound(self) -> float:
        """The greatest error that `value` can have."""
        return self.high - self.low


def approximate_h(
    tree_or_hull: HullLike, epsilon: float, priors: float | Literal["window"], cost: Cost
) -> Approximation | None:
    """Return the H-measure to within epsilon (1 - H), from below; None without both classes.

    tree_or_hull  a `ScoreTree`; a `RocCurve`; or a hull in the form of `ScoreTree.hull()`: (x, y), arrays of
                  the events and of the positives below every vertex, lowest score first; masses are allowed
    epsilon       the greatest relative error of the loss 1 - H, 0 or more; 0 is exact
    priors        the share of positives by which errors are weighed, in (0, 1); "window": the window's own
    cost          `BetaCost`, `UniformCost` or `SeverityCost`

    A tree with bridges takes O(log^2 k / epsilon), and never more than O(vertices log k). A hull takes
    O(vertices), a tree without bridges O(k). The result is the same for all three.

    When to use it: seldom. Scores of a smooth model have hulls of some 2 * cube root of k vertices: 43 for
    10,000 events and 223 for 1,000,000. The exact sum over such a hull (epsilon 0) is as fast: 35 and 48
    microseconds, of which 32 are the call itself. With the window's own priors and Beta(2, 2) or Beta(1, 1),
    `ScoreTree.h()` has the exact value ready. The approximation pays for large hulls. A hull can have .9
    k^(2/3) vertices. With 8,768 vertices the sum takes 820 microseconds (other Betas 1,380); an approximation
    to within .01 of the loss takes 66 (85), and to within .1 of the loss 36 (40). The error is far below its
    bound: with epsilon .1 about a hundredth of the bound.

    Raises ConfigError for an impossible epsilon, priors or cost, InputError for a value that is no hull.

    Source: Tatti 2021, section 6 (Subset). The paper drops a vertex only if it is near another in positives
    AND in negatives, because of both of its sums. Nearness in one class is enough (see `score_tree.subset`).

    >>> import numpy as np
    >>> from rocsteady import BetaCost
    >>> hull = 200 * np.arange(101), np.arange(101) ** 2  # events and positives below
    >>> exact = approximate_h(hull, 0, priors=0.3, cost=BetaCost(2, 2))
    >>> round(exact.value, 4), exact.bound, exact.vertices
    (0.3228, 0.0, 101)
    >>> rough = approximate_h(hull, 0.1, priors=0.3, cost=BetaCost(2, 2))
    >>> round(rough.value, 4), round(rough.bound, 4), rough.vertices
    (0.3225, 0.0602, 36)
    """
    settings = EvaluatorSettings(cost=cost, priors=priors)
    x, y, growth = _subset(tree_or_hull, epsilon)
    if not 0.0 < y[-1] < x[-1]:
        return None
    events, positives = np.diff(x), np.diff(y)
    h = h_measure(events - positives, positives, settings)
    if not math.isfinite(h):
        raise ConfigError(
            f"cost={cost}, priors={priors!r}: the loss is out of a float's range; choose less extreme ones"
        )
    return Approximation(h, h, h + (1.0 - h) * (growth - 1.0) / growth, len(x))


def approximate_cost_curve_area(tree_or_hull: HullLike, epsilon: float) -> Approximation | None:
    """Return the area under the cost curve, to within epsilon of it, from above; None without both classes.

    The area is the integral over costs c in (0, 1) of the least c FPR + (1 - c) FNR, in [0, 1/4]: both
    classes have the same weight. The area does not decompose over a tree: the exact area is a sum over the
    hull. Arguments, times and errors are those of `approximate_h`. Source: Tatti 2021, sections 2 and 6.

    >>> import numpy as np
    >>> area = approximate_cost_curve_area((200 * np.arange(101), np.arange(101) ** 2), 0.1)
    >>> round(area.value, 4), round(area.low, 4), area.vertices
    (0.1667, 0.1519, 36)
    """
    x, y, growth = _subset(tree_or_hull, epsilon)
    if not 0.0 < y[-1] < x[-1]:
        return None
    events, positives = np.diff(x), np.diff(y)
    area = float(cost_curve_area(events - positives, positives, x[-1] - y[-1], y[-1]))
    return Approximation(area, area / growth, area, len(x))


def _subset(tree_or_hull: HullLike, epsilon: float) -> tuple[FloatArray, FloatArray, float]:
    """Return events and positives below the vertices used, and the factor by which a loss may be larger."""
    given: object = epsilon
    is_number = isinstance(given, numbers.Real) and not isinstance(given, bool)
    if not is_number or not 0.0 <= epsilon < math.inf:
        raise ConfigError(
            f"epsilon={epsilon!r}: give the greatest relative error, a number that is 0 or more"
        )
    growth = 1.0 + float(epsilon)
    if isinstance(tree_or_hull, ScoreTree):
        hull, needed = tree_or_hull.hull_subset(growth)
        return hull.x.astype(np.float64), hull.y.astype(np.float64), needed
    x, y = _vertices(tree_or_hull)
    count, needed = thin_hull(x, y, growth)
    return x[:count], y[:count], needed


def _vertices(hull: Hull | RocCurve | tuple[npt.ArrayLike, npt.ArrayLike]) -> tuple[FloatArray, FloatArray]:
    """Return copies of the vertices, lowest score first. Raises InputError for a value that is no hull."""
    if isinstance(hull, RocCurve):
        above, positives_above = (hull.tp + hull.fp)[hull.on_hull], hull.tp[hull.on_hull]
        return (above[-1] - above)[::-1].copy(), (positives_above[-1] - positives_above)[::-1].copy()
    try:
        x, y = (np.array(column, np.float64) for column in hull)
    except (TypeError, ValueError):
        raise InputError(
            f"hull: {type(hull).__name__}; give a ScoreTree, its hull(), (x, y), or a RocCurve"
        ) from None
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise InputError(
            f"hull: x of shape {x.shape} and y of {y.shape}; give one dimension, as many of both"
        )
    if not np.isfinite(x).all() or not np.isfinite(y).all() or x[0] != 0.0 or y[0] != 0.0:
        raise InputError("hull: its vertices are finite and begin at (0, 0), lowest score first")
    dx, dy = np.diff(x), np.diff(y)
    if (dx <= 0.0).any() or (dy < 0.0).any() or (dy > dx).any():
        raise InputError(
            "hull: x counts all events below a vertex, y the positives among them; one of them falls, or y "
            "rises by more than x"
        )
    if (np.diff(dy / dx) < -_SLOPES).any():
        raise InputError("hull: its slopes fall; give the lower hull of (events, positives), as hull() does")
    return x, y
