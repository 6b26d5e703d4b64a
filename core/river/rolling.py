"""Base classes of rocsteady's metrics for river.

Stored events, their entry and removal, the reason of a value that is NaN.

The metrics take the same arguments as river's own metrics. In river's ensembles, a model that has learnt
nothing predicts `None` or `{}`; such an event counts as one that the model did not get right.

`Rolling` is the base of all metrics, `RollingRanking` of measures of scores, `RollingClassScores` of measures
of a score of each class, `RollingDecisions` of measures of predicted classes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from ..errors import InputError, MissingPackageError
from ..events.numbers import is_held
from ..rows.reasons import ONE_CLASS, REASONS
from ..settings.costs import BetaCost, Cost
from ..settings.windows import LastEvents
from .class_window import ClassScores, ScoreOfEachClass
from .decision_window import DecisionWindow
from .score_window import ScoresInOrder

try:
    import river  # noqa: F401  apart from its parts: a river without one of them is installed, too
except ImportError:
    raise MissingPackageError(
        "rs.river needs the package river, which is not installed here; run: pip install river"
    ) from None
from river.base import Classifier, Estimator
from river.metrics import ROCAUC
from river.metrics.base import BinaryMetric, ClassificationMetric, MultiClassMetric

_WAITING = 1_000


class Rolling(ClassificationMetric):
    """The base of all metrics over a window: `update` stores events; noted events wait.

    `get` applies them and returns the value.
    """

    window_size: int
    _window: Any

    def _begin(self, window_size: int) -> None:
        self.window_size = LastEvents(window_size).k
        self._waiting: tuple[list[Any], list[Any], list[float]] = ([], [], [])

    @property
    def reason(self) -> str | None:
        """The reason why `get` is NaN; None if the value is a number."""
        self._apply()
        return self._now()[1]

    def get(self) -> float:
        """Return the measure of the window; NaN if it is undefined."""
        self._apply()
        return self._now()[0]

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Add an event to the window; the oldest event leaves if the window is full.

        y_true  the label
        y_pred  for AUC, H and KS a score, or a dict from class to probability; for MacroAUC, WeightedAUC and
                M a dict; for the other metrics a class. None, and {}: the model has learnt nothing and
                predicts no class; each metric says how such an event counts
        w       how much the event counts, finite; an event of weight 0 changes nothing. A weight below 0
                raises InputError
        """
        label, prediction = self._event(y_true, y_pred)
        weight = 1.0
        if w != 1.0 and not (weight := self._weight(w)):
            return
        labels, predictions, weights = self._waiting
        labels.append(label)
        predictions.append(prediction)
        weights.append(weight)
        if len(labels) >= _WAITING:
            self._apply()

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Remove the oldest event in the window that equals this event. O(k).

        y_true, y_pred, w  as in `update`

        The window removes old events itself, so river's `utils.Rolling` is not needed around a metric. This
        method serves windows of another kind, such as `utils.TimeRolling`. Raises InputError if the window
        holds no such event.
        """
        label, prediction = self._event(y_true, y_pred)
        weight = 1.0 if w == 1.0 else self._weight(w)
        self._apply()
        if weight and not self._take_out(label, prediction, weight):
            weighing = "" if weight == 1.0 else f" and w={w!r}"
            raise InputError(
                f"{type(self).__name__}: no event with y_true={y_true!r} and y_pred={y_pred!r}{weighing} is "
                f"among the last {self.window_size}; revert takes out events that are still in the window"
            )

    def __repr__(self) -> str:
        self._apply()
        value, reason = self._now()
        shown = f"{value:{self._fmt}}" if reason is None else f"nan ({reason})"
        return f"{type(self).__name__}: {shown}"

    def _weight(self, w: Any) -> float:
        """Return the weight of an event as a number. Raises InputError for a weight that is not allowed."""
        try:
            weight = math.nan if isinstance(w, str) else float(w)
        except (TypeError, ValueError, OverflowError):
            weight = math.nan
        if not 0.0 <= weight < math.inf:
            raise InputError(
                f"{type(self).__name__}: w={w!r}: a weight is finite and not below 0; leave the event out"
            )
        return weight

    def _refuse_missing(self, name: str, value: Any, needed: str) -> None:
        if value is None or value != value:  # only NaN differs from itself
            raise InputError(
                f"{type(self).__name__}: {name} is {value}: every event needs a {needed}; leave it out"
            )

    def _apply(self) -> None:
        """Apply the stored events."""
        labels, predictions, weights = self._waiting
        if labels:
            self._waiting = ([], [], [])
            self._extend(labels, predictions, weights)

    def _event(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        """Return an event in the form in which it is stored.

        Raises InputError if the event cannot be used.
        """
        raise NotImplementedError

    def _extend(self, labels: list[Any], predictions: list[Any], weights: list[float]) -> None:
        """Apply events in order."""
        self._window.extend(labels, predictions, weights)

    def _take_out(self, label: Any, prediction: Any, weight: float) -> bool:
        """Remove the oldest event that equals this event; return whether the window held one."""
        return bool(self._window.take_out(label, prediction, weight))

    def _now(self) -> tuple[float, str | None]:
        """Return the value of the window, and the reason if it is NaN."""
        raise NotImplementedError


class RollingRanking(Rolling, BinaryMetric):
    """The base of the measures of how scores rank.

    A model that has learnt nothing (`None`, `{}`) gives the score 0, as in river's own ROCAUC.
    """

    _measure: str
    _window: ScoresInOrder

    def __init__(self, window_size: int = 1000, pos_val: Any = True) -> None:
        self._begin(window_size)
        self.pos_val = pos_val
        self._window = ScoresInOrder(self.window_size, self._measure, self._costs())

    def _costs(self) -> Cost:
        """Return how the cost of a false positive is spread; only "h" depends on costs."""
        return BetaCost(2, 2)

    def works_with(self, model: Estimator) -> bool:
        """Whether the metric suits a model: like river's own ROCAUC, classifiers and anomaly detectors."""
        return bool(ROCAUC().works_with(model))  # type: ignore[no-untyped-call]

    @property
    def requires_labels(self) -> bool:
        """False: the metric needs probabilities, or scores on any scale."""
        return False

    def _event(self, y_true: Any, y_pred: Any) -> tuple[int, float]:
        score = 0.0 if y_pred is None else y_pred
        if isinstance(y_pred, dict):
            score = y_pred.get(self.pos_val, 0.0)  # a class that the model has not met has no entry
        given = score
        try:
            score = float(given)
        except (TypeError, ValueError, OverflowError):
            score = math.nan
        if not math.isfinite(score):
            raise InputError(
                f"{type(self).__name__}: y_pred={y_pred!r} holds no finite score; leave the event out"
            )
        _refuse_unheld(type(self).__name__, given)
        self._refuse_missing("y_true", y_true, "label")
        return int(y_true == self.pos_val), score

    def _now(self) -> tuple[float, str | None]:
        return self._window.measure()

    def __getstate__(self) -> dict[str, Any]:
        self._apply()  # so that a pickle holds each event once, in the window
        return self.__dict__.copy()


class RollingClassScores(Rolling, MultiClassMetric):
    """The base of the means of the AUCs of classes, of any number and kind.

    A model that has learnt nothing (`None`, `{}`) gives 1 / C to each of C classes.
    """

    _name: str
    _window: ScoreOfEachClass

    def __init__(self, window_size: int = 1000) -> None:
        self._begin(window_size)
        self._window = ScoreOfEachClass(self.window_size)

    def works_with(self, model: Estimator) -> bool:
        """Whether the metric suits a model: classifiers, which give a probability of each class."""
        return isinstance(model, Classifier)

    @property
    def requires_labels(self) -> bool:
        """False: the metric needs a score of each class, on any scale."""
        return False

    def _event(self, y_true: Any, y_pred: Any) -> tuple[Hashable, dict[Hashable, float]]:
        name = type(self).__name__
        given = {} if y_pred is None else y_pred
        if not isinstance(given, dict):
            raise InputError(
                f"{name}: y_pred={y_pred!r}: give a dict from class to score, as predict_proba_one does"
            )
        try:
            scores = {each: float(score) for each, score in given.items()}
        except (TypeError, ValueError, OverflowError):
            scores = {None: math.nan}
        if not all(map(math.isfinite, scores.values())):
            raise InputError(
                f"{name}: y_pred={y_pred!r} holds a score that is not finite; leave the event out"
            )
        for score in given.values():
            _refuse_unheld(name, score)
        for each in scores:
            if each is None or each != each:
                self._refuse_missing(f"a class of y_pred={y_pred!r}", each, "class for each score")
        self._refuse_missing("y_true", y_true, "class")
        try:
            hash(y_true)
        except TypeError:
            raise InputError(f"{name}: y_true={y_true!r}: a class can be the key of a dict") from None
        return y_true, scores

    def _extend(self, labels: list[Any], predictions: list[Any], weights: list[float]) -> None:
        self._window.extend(labels, list(map(ClassScores, predictions, weights)))

    def _take_out(self, label: Any, prediction: Any, weight: float) -> bool:
        return self._window.take_out(label, ClassScores(prediction, weight))

    def _now(self) -> tuple[float, str | None]:
        values = self._window.values()
        if values is not None:
            return float(getattr(values, self._name)), None
        return math.nan, REASONS[ONE_CLASS] if len(self._window) else "no events"


class RollingDecisions(Rolling, MultiClassMetric):
    """The base of the measures of predicted classes, of any number and kind.

    A model that has learnt nothing predicts `None`, which is a class of its own and no label, as in river.
    """

    _name: str
    _window: DecisionWindow

    def __init__(self, window_size: int = 1000) -> None:
        self._begin(window_size)
        self._window = DecisionWindow(self.window_size)

    def _event(self, y_true: Any, y_pred: Any) -> tuple[int, int]:
        self._refuse_missing("y_true", y_true, "class")
        prediction = None if isinstance(y_pred, dict) and not y_pred else y_pred
        if prediction is not None:
            self._refuse_missing("y_pred", prediction, "class")
        try:
            return self._window.code(y_true), self._window.code(prediction)
        except TypeError:
            raise InputError(
                f"{type(self).__name__}: y_true={y_true!r}, y_pred={y_pred!r}: a class is what predict_one "
                "gives"
            ) from None

    def _now(self) -> tuple[float, str | None]:
        return self._window.measure(self._name)


def _refuse_unheld(name: str, score: Any) -> None:
    """Raise InputError for a score that no float64 holds, because it would tie with other scores."""
    if type(score) is not float and not is_held(score):
        raise InputError(f"{name}: no float64 holds the score {score}; give floats, or round or scale scores")
