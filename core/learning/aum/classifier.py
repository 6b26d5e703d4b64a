"""`AumLinearClassifier`: a linear classifier that minimises AUM, by scikit-learn's conventions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...errors import ConfigError, InputError
from ...process.imports import missing_package
from ..learner_settings import check_choice, check_number
from .aum import NO_WEIGHTS
from .descent import Criterion, DescentSettings, Design, Examples, LabelLoss, descend, scaling_of

try:
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, validate_data

    from ..linear_classifier import LinearClassifier
except ImportError:
    raise missing_package("scikit-learn", "AumLinearClassifier", "learn") from None

_NO_SLOPE = 1e-13
"""A feature whose class means differ by fewer standard deviations than this has no slope. A smaller
difference is rounding, which depends on the order in which a processor adds.
"""


@dataclass(kw_only=True, eq=False, repr=False)
class AumLinearClassifier(DescentSettings, LinearClassifier):
    """A linear model of two classes, trained to have a small AUM, and so a large AUC.

    rate                AUM of rates (AUM.rate) or of counts (AUM.count)
    margin              distance wanted between the scores of the two classes; 0 is AUM as in the source
    line_search         "backtracking", or "exact": to the best of the first n crossings of thresholds
    max_iter, tol       greatest number of steps; stop when a step lowers AUM by less than this share of AUM
    early_stopping      None, or "aum" or "auc": keep the weights that are best on the examples held out
    validation_fraction  share of each class that is held out
    n_iter_no_change    stop after this many steps without a better criterion
    init                "means": the difference of the classes' means, which is the direction of steepest
                        descent from constant predictions; or "random"
    random_state        seed of the draw of examples to hold out, and of random weights

    With a margin, a positive is missed below `margin`: its breakpoint is there, not at 0. Then constant
    scores cost margin * min(FP, FN). The least AUM is that of a linear SVM without regularisation, with a
    free threshold (see `descent`). Without a margin, AUM is homogeneous and has its minimum at constant
    scores. So scores keep the standard deviation 1 on the training examples: a smaller scale is then no gain.
    But ties cost nothing, so the descent can reach directions that tie most examples: use early stopping
    without a margin.

    Features are centred and scaled to unit variance (a sparse matrix stays sparse). The intercept, on which
    AUM does not depend, is chosen for the fewest errors in the training examples (or the least sum of error
    rates).

    coef_, intercept_   of the features in their own units: shapes (1, d) and (1,)
    classes_            the negative and the positive class
    n_iter_             steps made
    descent_            AUM after every step, the validation measures (`Descent`)
    converged_reason_   why the descent ended, in words: separable data (AUM 0, gradient 0) and the degenerate
                        result (all predictions equal) are named there

    Raises InputError: one class, more than two classes, or data that the checks of scikit-learn refuse.
    """

    early_stopping: Criterion | None = None
    validation_fraction: float = 0.2
    init: Literal["means", "random"] = "means"
    random_state: Any = None

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> AumLinearClassifier:
        """Train the model on examples. O((n log n + values) steps).

        X              features, (n, d), dense or sparse
        y              n labels of two classes; the greater one is positive
        sample_weight  n numbers, 0 or more; 1 each by default. Examples of weight 0 are left out
        """
        self._check()
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

        def examples(rows: npt.NDArray[Any]) -> Examples:
            mass = NO_WEIGHTS if weights is None else weights[rows]
            loss = LabelLoss(positive[rows].astype(np.int8), mass, self.rate, self.margin)
            return Examples(Design(features[rows], scaling), loss)

        trained = examples(train)
        by_prediction = trained.loss.aum(np.zeros(len(train))).gradient
        start = -trained.design.gradient(by_prediction)
        start[np.abs(start) <= _NO_SLOPE * np.abs(by_prediction).sum()] = 0.0
        if self.init == "random":
            start = random.normal(size=len(start))
        _, spread = trained.loss.spread(trained.design.predictions(start))
        start = start / (spread or 1.0)
        self.descent_ = descend(trained, start, self, None if valid is None else examples(valid))
        self.n_iter_ = max(self.descent_.n_iter, 1)
        self.converged_reason_ = self.descent_.reason
        constant = trained.loss.roc(trained.design.predictions(self.descent_.weights)).best_constant
        coef = self.descent_.weights / scaling.scale
        self.coef_ = coef[np.newaxis]
        self.intercept_ = np.array([constant - float(scaling.mean @ coef)])
        return self

    def _check(self) -> None:
        check_choice("init", self.init, ("means", "random"))
        check_number("validation_fraction", self.validation_fraction, 0.0, 1.0)
        if not self.validation_fraction:
            raise ConfigError("validation_fraction=0 holds nothing out; give more, or early_stopping=None")
        super()._check()


def _split(
    positive: npt.NDArray[np.bool_], fraction: float, random: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the rows to train on, and the rows held out.

    `fraction` of the rows of each class is held out, and each part has at least one row of each class.
    """
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
