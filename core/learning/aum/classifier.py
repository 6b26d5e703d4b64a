"""`AumLinearClassifier`: a linear classifier that minimises AUM, by scikit-learn's conventions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...arrays import FloatArray
from ...errors import ConfigError, InputError, MissingPackageError
from ..settings import check_choice, check_number
from .descent import (
    Criterion,
    DescentSettings,
    Design,
    Examples,
    LabelLoss,
    Line,
    checked_settings,
    descend,
    scaling_of,
)

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError:
    raise MissingPackageError(
        "AumLinearClassifier needs the package scikit-learn, which is not installed here; run: "
        "pip install 'rocsteady[learn]'"
    ) from None

_NO_SLOPE = 1e-13
"""Standard deviations between the means of both classes in a feature: less is rounding, which depends on the
order in which a processor adds."""


class AumLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear model of two classes, trained to have a small AUM, and so a large AUC.

    rate                AUM of rates (AUM.rate) or of counts (AUM.count)
    margin              by how much scores of both classes are to be apart; 0 is AUM of the slides
    line_search         "backtracking", or "exact": to the best of the first n crossings of scores
    max_iter, tol       greatest number of steps; stop when a step lowers AUM by less than this share of AUM
    early_stopping      None, or "aum" or "auc": keep the weights that are best on a part held out
    validation_fraction  that part, of each class
    n_iter_no_change    stop after this many steps without a better criterion
    init                "means": the difference of the classes' means, which is the direction of steepest
                        descent from constant predictions; or "random"
    random_state        of the part held out and of random weights

    With a margin a positive is missed below `margin` (its breakpoint is there, not at 0): constant scores
    cost margin * min(FP, FN), and the least AUM is that of a linear SVM without regularisation whose
    threshold is free (see `descent`). Without, AUM is homogeneous and constant scores are its least:
    scores are kept at standard deviation 1 on the training examples, so that shrinking is no progress. That
    leaves directions along which most examples are tied, since ties cost nothing: stop early there.

    Features are centred and scaled to unit variance (a sparse matrix stays sparse). The intercept, which AUM
    does not see, is where the training examples have the fewest errors (or the least sum of error rates).

    coef_, intercept_   of the features as they come: shapes (1, d) and (1,)
    classes_            the negative and the positive class
    n_iter_             steps made
    descent_            AUM after every step, the validation measures (`Descent`)
    converged_reason_   why it ended, in words: separable data (AUM 0, gradient 0) and the degenerate result
                        (all predictions equal) are named there

    Raises InputError: one class, classes of more than two, what scikit-learn's checks refuse as ValueError.
    """

    def __init__(
        self,
        *,
        rate: bool = True,
        margin: float = 1.0,
        line_search: Line = "backtracking",
        max_iter: int = 100,
        tol: float = 1e-4,
        early_stopping: Criterion | None = None,
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 10,
        init: Literal["means", "random"] = "means",
        random_state: Any = None,
    ) -> None:
        self.rate = rate
        self.margin = margin
        self.line_search = line_search
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.init = init
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> AumLinearClassifier:
        """Train on examples, (n, d) dense or sparse, of two classes. O((n log n + values) steps)."""
        settings = self._checked()
        features, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(labels)
        weights = None
        if sample_weight is not None:
            given = _check_sample_weight(sample_weight, features, ensure_non_negative=True)
            kept = np.flatnonzero(given > 0)
            features, labels, weights = features[kept], labels[kept], given[kept]
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise InputError(
                f"AumLinearClassifier learns two classes, and y has {len(self.classes_)} class"
                f"{'es' * (len(self.classes_) > 1)}. Only binary classification is supported; give examples "
                "of both, or one class against the others"
            )
        positive = labels == self.classes_[1]
        random = check_random_state(self.random_state)
        train, valid = np.arange(len(labels)), None
        if self.early_stopping is not None:
            train, valid = _split(positive, self.validation_fraction, random)
        scaling = scaling_of(features[train], None if weights is None else weights[train])

        def loss_of(rows: npt.NDArray[Any], margin: float) -> LabelLoss:
            mass = np.empty(0) if weights is None else weights[rows]
            return LabelLoss(positive[rows].astype(np.int8), mass, self.rate, margin)

        def examples(rows: npt.NDArray[Any]) -> Examples:
            return Examples(Design(features[rows], scaling), loss_of(rows, self.margin))

        trained = examples(train)
        by_prediction = trained.loss.aum(np.zeros(len(train))).gradient
        start = -trained.design.gradient(by_prediction)
        start[np.abs(start) <= _NO_SLOPE * np.abs(by_prediction).sum()] = 0.0
        if self.init == "random":
            start = random.normal(size=len(start))
        _, spread = trained.loss.spread(trained.design.predictions(start))
        start = start / (spread or 1.0)
        self.descent_ = descend(trained, start, settings, None if valid is None else examples(valid))
        self.n_iter_ = max(self.descent_.n_iter, 1)
        self.converged_reason_ = self.descent_.reason
        errors = loss_of(train, 0.0)  # of classes as they are predicted, which knows no margin
        constant = errors.roc(trained.design.predictions(self.descent_.weights)).best_constant
        coef = self.descent_.weights / scaling.scale
        self.coef_ = coef[np.newaxis]
        self.intercept_ = np.array([constant - float(scaling.mean @ coef)])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return scores, float64[n]: above 0 for the positive class."""
        check_is_fitted(self)
        features = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(features @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each example."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def _checked(self) -> DescentSettings:
        check_choice("init", self.init, ("means", "random"))
        check_number("validation_fraction", self.validation_fraction, 0.0, 1.0)
        if not self.validation_fraction:
            raise ConfigError("validation_fraction=0 holds nothing out; give more, or early_stopping=None")
        return checked_settings(self)


def _split(
    positive: npt.NDArray[np.bool_], fraction: float, random: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return rows to train on and rows held out: of each class that part, one at least of each in both."""
    train, valid = [], []
    for is_positive in (False, True):
        rows = random.permutation(np.flatnonzero(positive == is_positive))
        if len(rows) < 2:
            raise InputError(
                f"early_stopping holds out examples of both classes, and the "
                f"{'positive' if is_positive else 'negative'} class has {len(rows)}; give more, or "
                "early_stopping=None"
            )
        out = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
        valid.append(rows[:out])
        train.append(rows[out:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(valid))
