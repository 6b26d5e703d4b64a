"""Metrics that river lacks, or computes wrongly: exact, over a window that slides with the events.

river hands a metric one event at a time, and one call costs as much as a thousand events in a kernel. So
`update` only stores the event. Stored events are applied when a value is asked for, or when `_WAITING` events
are stored. The values do not depend on when the events are applied.

An undefined value is NaN, never a made-up 0, and `reason` says why. If the value of a metric is NaN, its
comparison with any other metric by `>` is false in both orders. An event counts by its weight.
"""

from __future__ import annotations

from typing import Any

from ..settings.costs import Cost, parse_cost
from .rolling import RollingClassScores, RollingDecisions, RollingRanking

__all__ = [
    "RollingAUC",
    "RollingGMean",
    "RollingH",
    "RollingHarmonicMean",
    "RollingKS",
    "RollingKappa",
    "RollingKappaM",
    "RollingKappaPer",
    "RollingM",
    "RollingMacroAUC",
    "RollingWeightedAUC",
]


# ---- of scores


class RollingAUC(RollingRanking):
    """Area under the ROC curve of the last events, exact, on any scale of scores. A tie counts one half.

    river's own RollingROCAUC counts a tie as a loss, and gives 0 while the window holds one class.

    window_size  how many events the window holds, up to 2,495,999
    pos_val      value to treat as "positive"

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingAUC(window_size=4)
    >>> for y, p in zip([0, 1, 0, 1, 1], [0.9, 0.5, 0.5, 0.7, 0.5]):
    ...     metric.update(y, p)
    >>> metric  # 0.5 and 0.5 tie, 0.7 wins
    RollingAUC: 66.67%
    """

    _measure = "auc"


class RollingH(RollingRanking):
    """H-measure of the last events (Hand 2009): 1 - (least loss with scores) / (least loss without scores).

    O(log k) for costs spread as Beta(2, 2) or Beta(1, 1), else O(vertices of the hull).

    window_size  how many events the window holds, up to 2,495,999
    pos_val      value to treat as "positive"
    cost         how the cost of a false positive is spread: rs.BetaCost(2, 2), rs.UniformCost(),
                 rs.SeverityCost(), or as on the command line: "beta:2,2", "uniform", "severity:0.1", ...

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingH(window_size=4)
    >>> for y, p in zip([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3]):
    ...     metric.update(y, p)
    >>> metric
    RollingH: 50.00%
    """

    _measure = "h"

    def __init__(self, window_size: int = 1000, pos_val: Any = True, cost: str | Cost = "beta:2,2") -> None:
        self.cost = cost
        super().__init__(window_size, pos_val)

    def _costs(self) -> Cost:
        return parse_cost(self.cost) if isinstance(self.cost, str) else self.cost


class RollingKS(RollingRanking):
    """Greatest TPR - FPR of the last events over all thresholds (Kolmogorov-Smirnov, Youden's J).

    window_size  how many events the window holds, up to 2,495,999
    pos_val      value to treat as "positive"

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingKS(window_size=4)
    >>> for y, p in zip([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3]):
    ...     metric.update(y, p)
    >>> metric
    RollingKS: 50.00%
    """

    _measure = "ks"


# ---- of a score of each class


class RollingMacroAUC(RollingClassScores):
    """Mean over classes of the AUC of a class against all others, of the last events, exact.

    A prediction is a dict from class to score, on any scale. Classes need not be known beforehand. A class
    that a dict lacks has the score 0 in this event, also before the class appears. An empty dict gives 1 / C
    to each of the C classes that the metric has met so far. Classes that are no label in the window are left
    out of the mean. With two classes and scores p and 1 - p, the mean is the AUC to the last bit.

    For C classes and a window of k events, an update and its value take O(C (log k + k / 96 + 96) + C^2).
    With weights, with 1,000 events or more between two values, or with more than 127 classes, a value takes
    O(C k log k) at each request. `revert` takes O(C k). Memory: O(C k).

    window_size  how many events the window holds

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingMacroAUC(window_size=4)
    >>> predictions = [{"a": 0.2, "b": 0.8}, {"a": 0.6, "b": 0.4}, {"b": 0.5, "c": 0.5}, {"a": 0.1, "c": 0.9}]
    >>> for y, p in zip(["a", "b", "b", "c"], predictions):
    ...     metric.update(y, p)
    >>> metric  # a 2/3, b 1/2, c 1
    RollingMacroAUC: 72.22%
    """

    _name = "macro"


class RollingWeightedAUC(RollingClassScores):
    """Mean over classes of the AUC of a class against all others, by the events of the class, exact.

    Predictions, classes and cost are as in `RollingMacroAUC`.

    window_size  how many events the window holds

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingWeightedAUC(window_size=4)
    >>> predictions = [{"a": 0.2, "b": 0.8}, {"a": 0.6, "b": 0.4}, {"b": 0.5, "c": 0.5}, {"a": 0.1, "c": 0.9}]
    >>> for y, p in zip(["a", "b", "b", "c"], predictions):
    ...     metric.update(y, p)
    >>> metric  # half of the events are of class b
    RollingWeightedAUC: 66.67%
    """

    _name = "weighted"


class RollingM(RollingClassScores):
    """Hand & Till's M (2001) of the last events: the mean AUC of two classes alone, over all pairs, exact.

    Predictions, classes and cost are as in `RollingMacroAUC`.

    window_size  how many events the window holds

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingM(window_size=4)
    >>> predictions = [{"a": 0.2, "b": 0.8}, {"a": 0.6, "b": 0.4}, {"b": 0.5, "c": 0.5}, {"a": 0.1, "c": 0.9}]
    >>> for y, p in zip(["a", "b", "b", "c"], predictions):
    ...     metric.update(y, p)
    >>> metric
    RollingM: 75.00%
    """

    _name = "m"


# ---- of predicted classes


class RollingKappa(RollingDecisions):
    """Cohen's kappa of the last events: accuracy against that of chance.

    river's CohenKappa is 0 where chance agreement is certain, and has no window of its own.

    window_size  how many events the window holds

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingKappa(window_size=5)
    >>> for y, p in zip(["a", "b", "a", "c", "b", "a"], ["b", "b", "a", "c", "a", "a"]):
    ...     metric.update(y, p)
    >>> metric
    RollingKappa: 68.75%
    """

    _name = "kappa"


class RollingKappaM(RollingDecisions):
    """Kappa-m of the last events: accuracy against that of the majority classifier (Bifet et al. 2015).

    The majority classifier predicts each event from the labels of the `window_size` events before it, never
    from the event's own label. Of tied labels it predicts the label seen last. A classifier that does worse
    than the majority classifier is below 0. (river's `utils.Rolling` around this metric removes the oldest
    event before a new event comes. The majority is then taken over one label less.)

    window_size  how many events the window holds

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingKappaM(window_size=4)
    >>> for y, p in zip([0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 1, 1]):
    ...     metric.update(y, p)
    >>> metric  # one mistake in the last four events, where the majority classifier made two
    RollingKappaM: 50.00%
    """

    _name = "kappa_m"


class RollingKappaPer(RollingDecisions):
    """Kappa-per (temporal) of the last events: accuracy against "the same label as last time".

    window_size  how many events the window holds

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingKappaPer(window_size=4)
    >>> for y, p in zip([0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 1, 1]):
    ...     metric.update(y, p)
    >>> metric
    RollingKappaPer: 66.67%
    """

    _name = "kappa_per"


class RollingGMean(RollingDecisions):
    """Geometric mean of the recalls of the classes that are labels in the window.

    river's GeometricMean gives recall 0 to a class that was only predicted, which makes the mean 0.

    window_size  how many events the window holds

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingGMean(window_size=4)
    >>> for y, p in zip(["a", "b", "a", "b"], ["a", "c", "a", "b"]):
    ...     metric.update(y, p)
    >>> metric
    RollingGMean: 70.71%
    """

    _name = "g_mean"


class RollingHarmonicMean(RollingDecisions):
    """Harmonic mean of the recalls of the classes that are labels in the window.

    window_size  how many events the window holds

    >>> import rocsteady as rs
    >>> metric = rs.river.RollingHarmonicMean(window_size=4)
    >>> for y, p in zip(["a", "b", "a", "b"], ["a", "c", "a", "b"]):
    ...     metric.update(y, p)
    >>> metric
    RollingHarmonicMean: 66.67%
    """

    _name = "harmonic_mean"
