"""Base classes of rocsteady's metrics for river: waiting events, their entry and removal, a value's reason.

`Rolling` is the base of all metrics, `RollingRanking` of measures of scores, `RollingClassScores` of measures
of a score of each class, `RollingDecisions` of measures of predicted classes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..errors import InputError, MissingPackageError
from ..evaluator.eviction import sliding_steps
from ..events.numbers import is_held
from ..rows.columns import ONE_CLASS, REASONS
from ..score_tree.rows import ROW
from ..score_tree.store import NOTHING, checked_capacity
from ..score_tree.window import ScoreWindow, keeps_hull_for
from ..settings.windows import LastEvents
from .class_window import ClassScores, ScoreOfEachClass
from .decision_window import DecisionWindow

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
    """A metric over a window: noted events wait; `get` applies them and returns the value."""

    window_size: int
    _window: Any

    def _begin(self, window_size: int) -> None:
        self.window_size = LastEvents(window_size).k
        self._waiting: tuple[list[Any], list[Any]] = ([], [])

    @property
    def works_with_weights(self) -> bool:
        """False: every event counts once."""
        return False

    @property
    def reason(self) -> str | None:
        """Why `get` is NaN; None if the value is a number."""
        self._apply()
        return self._now()[1]

    def get(self) -> float:
        """Return the measure of the window; NaN if it is undefined."""
        self._apply()
        return self._now()[0]

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Add an event to the window; the oldest event leaves if the window is full.

        y_true  the label
        y_pred  of AUC, H and KS a score, or a dict from class to probability; of MacroAUC, WeightedAUC and M
                a dict; of the other metrics a class
        w       of MacroAUC, WeightedAUC and M how much the event counts, finite and above 0; of the other
                metrics 1: every event counts once. Another weight raises InputError
        """
        label, prediction = self._checked(y_true, y_pred, w)
        labels, predictions = self._waiting
        labels.append(label)
        predictions.append(prediction)
        if len(labels) >= _WAITING:
            self._apply()

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Remove the oldest event in the window that equals this event. O(k).

        y_true, y_pred, w  as of `update`

        The window removes old events itself, so river's `utils.Rolling` is not needed around a metric. This
        method serves windows of another kind, such as `utils.TimeRolling`. Raises InputError if the window
        holds no such event.
        """
        label, prediction = self._checked(y_true, y_pred, w)
        self._apply()
        if not self._take_out(label, prediction):
            raise InputError(
                f"{type(self).__name__}: no event with y_true={y_true!r} and y_pred={y_pred!r} is "
                f"among the last {self.window_size}; revert takes out events that are still in the window"
            )

    def __repr__(self) -> str:
        self._apply()
        value, reason = self._now()
        shown = f"{value:{self._fmt}}" if reason is None else f"nan ({reason})"
        return f"{type(self).__name__}: {shown}"

    def _checked(self, y_true: Any, y_pred: Any, w: float) -> tuple[Any, Any]:
        """Return an event in the form in which it waits. Raises InputError if the event cannot be used."""
        if w != 1.0:
            raise InputError(f"{type(self).__name__}: w={w!r}; every event counts once, leave w out")
        return self._event(y_true, y_pred)

    def _refuse_missing(self, name: str, value: Any, needed: str) -> None:
        if value is None or value != value:  # NaN alone differs from itself
            raise InputError(
                f"{type(self).__name__}: {name} is {value}: every event needs a {needed}; leave it out"
            )

    def _apply(self) -> None:
        """Apply the events that wait."""
        labels, predictions = self._waiting
        if labels:
            self._waiting = ([], [])
            self._extend(labels, predictions)

    def _event(self, y_true: Any, y_pred: Any) -> tuple[int, Any]:
        """See `_checked`."""
        raise NotImplementedError

    def _extend(self, labels: list[Any], predictions: list[Any]) -> None:
        """Apply events in order."""
        self._window.extend(labels, predictions)

    def _take_out(self, label: Any, prediction: Any) -> bool:
        """Remove the oldest event with this label and prediction; return whether the window held one."""
        return bool(self._window.take_out(label, prediction))

    def _now(self) -> tuple[float, str | None]:
        """Return the value of the window, and the reason if it is NaN."""
        raise NotImplementedError


TreeRow = dict[str, Any]
"""One record of ROW (score_tree/rows.py) as Python numbers, by the names of its fields."""


class RollingRanking(Rolling, BinaryMetric):
    """Base of the measures of how scores rank, which are read off the tree of the window."""

    _ask = NOTHING  # beside the counts of pairs; all else needs the hull
    _cost = (2, 2)

    def __init__(self, window_size: int = 1000, pos_val: Any = True) -> None:
        self._begin(window_size)
        checked_capacity(self.window_size + 1)
        self.pos_val = pos_val
        self._window = self._new_window()

    def _new_window(self) -> ScoreWindow:
        return ScoreWindow(
            self.window_size, cost=self._cost,
            keeps_hull=self._ask != NOTHING and keeps_hull_for(self.window_size, 1),
        )  # fmt: skip

    def works_with(self, model: Estimator) -> bool:
        """Whether the metric suits a model: like river's own ROCAUC, classifiers and anomaly detectors."""
        return bool(ROCAUC().works_with(model))  # type: ignore[no-untyped-call]

    @property
    def requires_labels(self) -> bool:
        """False: the metric needs probabilities, or scores on any scale."""
        return False

    def _event(self, y_true: Any, y_pred: Any) -> tuple[int, float]:
        score = y_pred
        if isinstance(y_pred, dict):
            # A class that the model has not met has no entry: its score is 0. An empty dict gives no score.
            score = y_pred.get(self.pos_val, 0.0) if y_pred else math.nan
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

    def _extend(self, labels: list[int], scores: list[float]) -> None:
        steps = sliding_steps(len(labels), len(self._window), self.window_size)
        self._window.follow(np.array(labels, np.int8), np.array(scores), steps)

    def _take_out(self, label: int, score: float) -> bool:
        labels, scores = self._window.to_arrays()
        found = np.flatnonzero((labels == label) & (scores == score))
        if len(found):
            self._window.load(np.delete(labels, found[0]), np.delete(scores, found[0]))
        return len(found) > 0

    def _now(self) -> tuple[float, str | None]:
        row = dict(zip(ROW.names or (), self._window.tree.rows_now(self._ask).item(), strict=True))
        positives, negatives = row["positives"], row["negatives"]
        if positives and negatives:
            return self._measure(row), None
        return math.nan, REASONS[ONE_CLASS] if positives or negatives else "no events"

    def _measure(self, row: TreeRow) -> float:
        """Return the measure of a window with both classes."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """Return the window as its events, oldest first, because the tree's own records are not stable."""
        self._apply()
        return {**self.__dict__, "_window": self._window.to_arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._window = self._new_window()
        self._window.load(*state["_window"])


class RollingClassScores(Rolling, MultiClassMetric):
    """Base of the means of the AUCs of classes, of any number and kind."""

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

    @property
    def works_with_weights(self) -> bool:
        """True: an event counts as much as its weight says."""
        return True

    def _checked(self, y_true: Any, y_pred: Any, w: Any) -> tuple[Hashable, ClassScores]:
        name = type(self).__name__
        if not isinstance(y_pred, dict):
            raise InputError(
                f"{name}: y_pred={y_pred!r}: give a dict from class to score, as predict_proba_one does"
            )
        try:
            scores = {each: float(score) for each, score in y_pred.items()}
        except (TypeError, ValueError, OverflowError):
            scores = {None: math.nan}
        if not all(map(math.isfinite, scores.values())):
            raise InputError(
                f"{name}: y_pred={y_pred!r} holds a score that is not finite; leave the event out"
            )
        for given in y_pred.values():
            _refuse_unheld(name, given)
        for each in scores:
            if each is None or each != each:
                self._refuse_missing(f"a class of y_pred={y_pred!r}", each, "class for each score")
        self._refuse_missing("y_true", y_true, "class")
        try:
            hash(y_true)
        except TypeError:
            raise InputError(f"{name}: y_true={y_true!r}: a class can be the key of a dict") from None
        try:
            weight = math.nan if isinstance(w, str) else float(w)
        except (TypeError, ValueError, OverflowError):
            weight = math.nan
        if not 0.0 < weight < math.inf:
            raise InputError(f"{name}: w={w!r}: a weight is a finite number above 0; leave the event out")
        return y_true, ClassScores(scores, weight)

    def _now(self) -> tuple[float, str | None]:
        values = self._window.values()
        if values is not None:
            return float(getattr(values, self._name)), None
        return math.nan, REASONS[ONE_CLASS] if len(self._window) else "no events"


class RollingDecisions(Rolling, MultiClassMetric):
    """Base of the measures of predicted classes, of any number and kind."""

    _name: str
    _window: DecisionWindow

    def __init__(self, window_size: int = 1000) -> None:
        self._begin(window_size)
        self._window = DecisionWindow(self.window_size)

    def _event(self, y_true: Any, y_pred: Any) -> tuple[int, int]:
        for name, value in (("y_true", y_true), ("y_pred", y_pred)):
            self._refuse_missing(name, value, "class")
        try:
            return self._window.code(y_true), self._window.code(y_pred)
        except TypeError:
            raise InputError(
                f"{type(self).__name__}: y_true={y_true!r}, y_pred={y_pred!r}: a class is what predict_one "
                "gives"
            ) from None

    def _now(self) -> tuple[float, str | None]:
        return self._window.measure(self._name)


def _refuse_unheld(name: str, score: Any) -> None:
    """Raise InputError for a score that no float64 holds: it would tie with others."""
    if type(score) is not float and not is_held(score):
        raise InputError(f"{name}: no float64 holds the score {score}; give floats, or round or scale scores")
