"""PolynomialAucClassifier: a linear model fitted to AUC in few scans, an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ...arrays import FloatArray
from ...errors import InputError
from ...process.imports import missing_package
from .fit import FitSettings, FitState, PolynomialAucModel, begin
from .passes import checked_rows

try:
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import _check_sample_weight, validate_data

    from ..linear_classifier import LinearClassifier
except ImportError:
    raise missing_package("scikit-learn", "PolynomialAucClassifier", "learn") from None

Batch = tuple[Any, Any] | tuple[Any, Any, Any]
"""A batch: features (n, m), n labels, and optionally n weights."""


def fit_scans(state: FitState, batches: Callable[[], Iterable[Batch]]) -> FitState:
    """Scan the data until the fit has ended, and return its state.

    `batches` is called for every scan and gives the same rows each time.

    Raises InputError.
    """
    while state.is_running:
        sums = state.new_sums()
        scan = batches()
        if not isinstance(scan, Iterable):
            raise InputError(
                f"batches() returned {scan!r}: give a function that returns an iterable of (X, y)"
            )
        for batch in scan:
            if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
                raise InputError(f"batches() gave {repr(batch)[:60]}: give (X, y) or (X, y, weights)")
            features, labels, weights = (*batch, None)[:3]
            sums.add(*checked_rows(features, labels, weights))
        state = state.after(sums)
    return state


@dataclass(eq=False, repr=False)
class PolynomialAucClassifier(FitSettings, LinearClassifier):
    """Maximises AUC of a linear score, by a polynomial in place of its step (Calders & Jaroszewicz 2007).

    The fit makes two scans at the start, and two in each iteration. One of the two gathers the gradient, O(m
    + d) a row; the other gathers the sums for a line search, O(m + d^2) a row. Memory does not depend on the
    number of rows: `fit_batches` holds only a batch at a time. Weights act as repetitions. Classes need no
    balancing, because it does not change AUC.

    degree      d of the polynomial; time grows with its square
    objective   "polynomial" for AUC; "sigmoid" for soft AUC, which also grows with the difference of the
                scores in a pair
    step_fit    "damped"; "least_squares" and "chebyshev" are nearer to the step, but rise above 1 beside the
                step: if classes are nearly separable, the maximum of the objective is then not the maximum of
                AUC
    steepness   of the sigmoid, up to the degree, for scores of a range of 2; None: two thirds of the degree.
    max_iter    greatest number of iterations.
    tol         the fit ends after two consecutive iterations that gain less than `tol`.
    direction   "conjugate" or "gradient"
    reach       in the fit, rows farther from the mean than `reach` root mean squares of the distance are
                moved to that distance: with 1, about half of the rows. None: no row; a single far row then
                sets the scale of all scores
    warm_start  start from the coefficients of the previous fit

    Features are standardised in the fit; constant features get coefficient 0.

    classes_, coef_ (1, m), intercept_ (1,), n_features_in_   as usual
    n_iter_       number of line searches, the search at the start included.
    auc_          the objective at the end, near AUC of the rows in the fit (soft AUC for "sigmoid").
    history_      an `Iteration` (before, after, alpha) for each line search
    stop_reason_  "tolerance", "iterations", or "separated": AUC of the rows in the fit is 1
    n_scans_      number of times the data were read

    `decision_function` gives the log odds of classes_[1], with slope and constant fitted as in Platt 1999.
    `predict_proba` is the logistic function of the log odds. `predict` returns classes_[1] if the log odds
    are above 0, a probability above 1/2. With few positives such probabilities are rare: then choose your own
    threshold.

    Raises InputError, a ValueError: not two classes, a feature that is not finite, no rows, only constant
    features. Raises ConfigError, a ValueError, for a parameter that is not allowed.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PolynomialAucClassifier().fit(X, y)
    >>> round(model.score(X, y), 1), model.n_scans_ == 2 * model.n_iter_
    (1.0, True)
    """

    _: KW_ONLY
    warm_start: bool = False

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> PolynomialAucClassifier:
        """Fit the model to rows.

        X              features, (n, m), dense or sparse
        y              n labels of two classes; the greater one is positive
        sample_weight  n numbers, 0 or more; 1 each by default. Rows of weight 0 are ignored
        """
        state = self._begin()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass") or len(np.unique(y)) > 2:
            raise InputError(
                f"Only binary classification is supported. The type of the target is {kind}: AUC is of two "
                "classes; choose one as the positive class"
            )
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        return self._take(fit_scans(state, lambda: [(X, y, sample_weight)]).model())

    def fit_batches(self, batches: Callable[[], Iterable[Batch]]) -> PolynomialAucClassifier:
        """Fit the model to rows that need not fit into memory.

        batches  a function without arguments that returns an iterable of (X, y) or (X, y, weights). It is
                 called once for every scan, `n_scans_` times, and must give the same rows each time

        Raises InputError, also if a scan has a different number of rows from the first scan.
        """
        if not callable(batches):
            raise InputError(
                f"batches is a {type(batches).__name__}: give a function that returns the batches anew for "
                "every scan"
            )
        return self._take(fit_scans(self._begin(), batches).model())

    @classmethod
    def of(cls, model: PolynomialAucModel) -> PolynomialAucClassifier:
        """Return an estimator with a model that was fitted elsewhere, such as by `FitPolynomialAuc`."""
        if not isinstance(model, PolynomialAucModel):
            raise InputError(f"model is a {type(model).__name__}: give a PolynomialAucModel")
        return cls()._take(model)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of both classes, (n, 2), for each row of `X`, (n, m)."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def _begin(self) -> FitState:
        """Return the state of the fit before the first scan.

        Raises ConfigError for a setting that cannot be used.
        """
        return begin(self, self.coef_[0] if self.warm_start and hasattr(self, "coef_") else None)

    def _take(self, model: PolynomialAucModel) -> PolynomialAucClassifier:
        self.classes_ = np.array(model.classes)
        self.n_features_in_ = len(model.coef)
        self.coef_ = model.coef[np.newaxis]
        self.intercept_ = np.array([model.intercept])
        self.n_iter_ = len(model.history)
        self.n_scans_ = model.scans
        self.auc_ = model.auc
        self.history_ = model.history
        self.stop_reason_ = model.stop_reason
        return self
