"""FitPolynomialAuc: a linear model fitted to AUC over a PCollection; every scan is one CombineGlobally."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import AsSingleton
from apache_beam.transforms.window import GlobalWindows
from scipy import sparse

from ...core.arrays import FloatArray
from ...core.errors import ConfigError, InputError
from ...core.events.inputs import as_array, as_numbers
from ...core.learning.polynomial.fit import Direction, FitSettings, FitState, PolynomialAucModel, begin
from ...core.learning.polynomial.objectives import Objective, PairFit
from ...core.learning.polynomial.passes import Sums, checked_rows
from .auc import shown

DEFAULT_MAX_ITER = 15
"""The most iterations. Each iteration is six steps of the pipeline, even after the end of the fit."""

_ROWS = 1024
"""Single rows that are added together."""


class FitPolynomialAuc(beam.PTransform[beam.PCollection[Any], beam.PCollection[PolynomialAucModel]]):
    """Fits a linear model that maximises AUC, as `PolynomialAucClassifier` does, on the workers of the rows.

    An element is (features, label) or (features, label, weight), where features are m numbers. Or an element
    has many rows: an array (n, m), dense or sparse, n labels and n weights; this is many times faster. There
    are two classes; the greater label is positive. The input is bounded and in the global window.

    degree, objective, step_fit, steepness, tol, direction, reach
                see `PolynomialAucClassifier`.
    max_iter    the most iterations. The pipeline has 2 + 2 max_iter scans, and each scan reads the
                PCollection again. Scans after the end of the fit ignore the rows.
    start       the coefficients of an earlier model, from which the fit starts.

    The output is one `PolynomialAucModel`. For any split into bundles, the model is that of a fit in memory
    to all rows, up to rounding errors of 1e-9. `PolynomialAucClassifier.of` makes an estimator from the
    model. Only sums and the model are sent between workers, about 8 (5 m + 2 (d + 1)^2) bytes a bundle.

    Raises ConfigError for a setting that cannot be used. The pipeline fails with an InputError that says why:
    one class or three, a feature that is no finite number, no rows, only constant features.

        model = rows | rs.FitPolynomialAuc(degree=30)
        scored = events | beam.Map(lambda x, model: model.scores(x), model=beam.pvalue.AsSingleton(model))
    """

    def __init__(
        self,
        degree: int = 30,
        *,
        objective: Objective = "polynomial",
        step_fit: PairFit = "damped",
        steepness: float | None = None,
        max_iter: int = DEFAULT_MAX_ITER,
        tol: float = 1e-6,
        direction: Direction = "conjugate",
        reach: float | None = 1.0,
        start: FloatArray | None = None,
    ) -> None:
        super().__init__()
        settings = FitSettings(
            degree=degree,
            objective=objective,
            step_fit=step_fit,
            steepness=steepness,
            max_iter=max_iter,
            tol=tol,
            direction=direction,
            reach=reach,
        )
        self._begun = begin(settings, None if start is None else _checked_start(start))

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[PolynomialAucModel]:
        """Make the steps of all scans of the fit."""
        if not isinstance(rows.windowing.windowfn, GlobalWindows):
            raise ConfigError(
                f"{self.label}: its input is in windows of Beam, {rows.windowing.windowfn}, and a fit reads "
                "all of it many times; put beam.WindowInto(beam.window.GlobalWindows()) before it"
            )
        if not rows.is_bounded:
            raise ConfigError(
                f"{self.label}: its input never ends, and a fit reads all of it many times; fit to what a "
                "bounded source has, or learn online with PolynomialAucLearner"
            )
        state: Any = rows.pipeline | "Begin" >> beam.Create([self._begun])
        for scan in range(1, 3 + 2 * self._begun.settings.max_iter):
            sums = (
                rows
                | f"Scan {scan}" >> beam.ParDo(_ScanDoFn(), state=AsSingleton(state))
                | f"Merge {scan}" >> beam.CombineGlobally(_merged)
            )
            state = state | f"Go on {scan}" >> beam.Map(_gone_on, sums=AsSingleton(sums))
        model: beam.PCollection[PolynomialAucModel] = state | "Model" >> beam.Map(FitState.model)
        return model


class _ScanDoFn(beam.DoFn):
    """Adds the rows of a bundle to the sums that the fit's next scan needs."""

    def __init__(self) -> None:
        self.start_bundle()

    def start_bundle(self) -> None:
        self._sums: Sums | None = None
        self._held: list[tuple[Any, Any, Any]] = []

    def process(self, element: Any, state: FitState) -> None:
        if not state.is_running:
            return
        if self._sums is None:
            self._sums = state.new_sums()
        if not isinstance(element, tuple | list) or len(element) not in (2, 3):
            raise InputError(
                f"FitPolynomialAuc: {shown(element)} is no (features, label) and no (features, label, "
                "weight); map rows to such before"
            )
        features, labels, weights = (*element, None)[:3]
        if not sparse.issparse(features):
            features = as_array("features", features)
        if sparse.issparse(features) or features.ndim == 2:
            self._sums.add(*checked_rows(features, labels, weights))
            return
        self._held.append((features, labels, 1.0 if weights is None else weights))
        if len(self._held) >= _ROWS:
            self._flush()

    def finish_bundle(self) -> Iterator[Any]:
        if self._held:
            self._flush()
        if self._sums is not None:
            yield GlobalWindows.windowed_value(self._sums)
        self._sums = None

    def _flush(self) -> None:
        features, labels, weights = zip(*self._held, strict=True)
        self._held = []
        lengths = {np.size(row) for row in features}
        if len(lengths) > 1:
            few, many = min(lengths), max(lengths)
            raise InputError(
                f"FitPolynomialAuc: rows of {few} features, and of {many}: give all of them the same"
            )
        assert self._sums is not None
        self._sums.add(*checked_rows(np.array(features), np.array(labels), np.array(weights)))


def _merged(parts: Iterable[Sums | None]) -> Sums | None:
    """Return the merged sums of bundles; None if there are none. The parts do not change."""
    total: Sums | None = None
    for sums in parts:
        if total is None:
            total = copy.deepcopy(sums)
        elif sums is not None:
            total.merge(sums)  # type: ignore[arg-type]  # sums of one scan are of one kind
    return total


def _gone_on(state: FitState, sums: Sums | None) -> FitState:
    if not state.is_running:
        return state
    return state.after(state.new_sums() if sums is None else sums)


def _checked_start(start: npt.ArrayLike) -> FloatArray:
    found = as_numbers("start", start)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ConfigError(f"start={start!r}: give the coefficients of a model, (m,), finite numbers")
    return found.copy()
