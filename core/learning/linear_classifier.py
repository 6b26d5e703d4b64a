"""The base of the linear classifiers by scikit-learn's conventions: scores and predicted classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..arrays import FloatArray


class LinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes, fitted as classes_ (2,), coef_ (1, m) and intercept_ (1,)."""

    classes_: npt.NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray

    def decision_function(self, X: Any) -> FloatArray:  # noqa: N803  scikit-learn's name
        """Return float64[n], the score of each row of `X`, (n, d): a score above 0 predicts classes_[1]."""
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(rows @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class of each row of `X`, (n, d): classes_[1] if the score is above 0."""
        is_positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[is_positive.astype(np.int8)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags
