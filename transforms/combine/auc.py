"""CombineFns of AUC, of any grouping in a Beam pipeline, merging windows (sessions) included.

`AucCombineFn` gives AUC and the H-measure by a sketch, `PolynomialAucCombineFn` AUC by a polynomial.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from apache_beam.coders import RowCoder, registry

from ...core.arrays import FloatArray, Int8Array
from ...core.events.inputs import checked_events
from ...core.measures.polynomial_auc import PolynomialAuc, checked_events_within
from ...core.measures.polynomial_auc import packed_size as size_of_polynomial
from ...core.measures.polynomial_estimate import DEFAULT_DEGREE, NearFit
from ...core.rows.columns import ONE_CLASS, OUT_OF_RANGE, REASONS, reason_clauses
from ...core.settings.costs import BetaCost, Cost
from ...core.settings.evaluator import PRIORS_OF_WINDOW, EvaluatorSettings
from ...core.sketches.auc_sketch import DEFAULT_MAX_BYTES, AucSketch
from ...core.sketches.wire import packed_size as size_of_sketch
from .events import CombineEvents

_LARGEST = 1.7976931348623157e308


class CombinedAuc(NamedTuple):
    """The AUC and H-measure of a group of events.

    events, positives, negatives   the numbers of all, positive and negative events.
    auc_low, auc, auc_high         AUC with certified bounds; a tie counts one half. None if a class is
                                   missing.
    h_low, h, h_high               the H-measure with certified bounds, or None.
    exact                          whether the bounds equal the values.
    reason                         the reason why values are None; None if no value is.
    """

    events: int
    positives: int
    negatives: int
    auc_low: float | None
    auc: float | None
    auc_high: float | None
    h_low: float | None
    h: float | None
    h_high: float | None
    exact: bool
    reason: str | None


class AucCombineFn(CombineEvents[AucSketch]):
    """Combines (label, score) into a `CombinedAuc`: `AucSketch` for CombinePerKey and CombineGlobally.

    An element is (label, score), or a batch (labels, scores): arrays or lists of one length. A batch is many
    times faster per event. Labels are 1/0, 1/-1 or booleans. Scores are finite numbers; a higher score means
    that positive is more likely. Every event counts once. Any windows and triggers are allowed, also
    sessions. The order of events and of merges has no effect.

    max_bytes  the most bytes of a group's sketch (64 KB: exact for up to about 7,700 distinct scores).
    cost       the cost distribution of the H-measure; None = BetaCost(2, 2).
    priors     "window" = the group's own share of positives, or a share of positives.

    Raises ConfigError for an invalid setting, and InputError for an invalid event: no event is dropped.
    A CombineFn has no output of dead letters; so filter malformed events before.

        events | beam.WindowInto(beam.window.Sessions(600)) | beam.CombinePerKey(rs.AucCombineFn())

    >>> result = AucCombineFn().apply([(0, 0.1), (1, 0.9), ([0, 1], [0.4, 0.3])])
    >>> result.auc, result.positives, result.exact
    (0.75, 2, True)
    """

    result = CombinedAuc

    def __init__(
        self,
        max_bytes: int = DEFAULT_MAX_BYTES,
        *,
        cost: Cost | None = None,
        priors: float | Literal["window"] = PRIORS_OF_WINDOW,
    ) -> None:
        self._settings = EvaluatorSettings(cost=BetaCost() if cost is None else cost, priors=priors)
        super().__init__(AucSketch(max_bytes).to_bytes(), (-_LARGEST, _LARGEST))

    def setup(self) -> None:
        """Compile kernels before the first bundle, unless they are on disk."""
        sketch = AucSketch(1024)
        sketch.add(np.arange(1_000) % 2, np.arange(1_000.0))
        AucSketch.from_bytes(sketch.to_bytes()).merge(sketch).h_bounds()

    def read(self, data: bytes) -> AucSketch:
        """See `CombineEvents`."""
        return AucSketch.from_bytes(data)

    def packed_size(self, data: bytes) -> int:
        """See `CombineEvents`."""
        return size_of_sketch(data)

    def checked(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Int8Array, FloatArray]:
        """See `CombineEvents`."""
        return checked_events(labels, scores)

    def extract_output(self, accumulator: bytes) -> CombinedAuc:
        """Return the AUC and H-measure of the accumulator's events."""
        sketch = self.settled(accumulator)
        auc, h = sketch.bounds(), sketch.h_bounds_by(self._settings)
        reason = None
        if auc.auc is None:
            reason = reason_clauses(dict.fromkeys(("auc", "h"), REASONS[ONE_CLASS]))
        elif h.h is None:
            reason = f"h: {REASONS[OUT_OF_RANGE]}"
        return CombinedAuc(
            sketch.events, sketch.positives, sketch.negatives, *auc, *h, sketch.is_exact, reason
        )


registry.register_coder(CombinedAuc, RowCoder)


class CombinedPolynomialAuc(NamedTuple):
    """The polynomial AUC of a group of events.

    events, positives, negatives   the numbers of all, positive and negative events.
    auc_low, auc, auc_high         AUC by a polynomial, with certified bounds; None if a class is missing.
    bound                          the largest error of auc: the greater distance to the bounds.
    reason                         the reason why values are None; None if no value is.
    """

    events: int
    positives: int
    negatives: int
    auc_low: float | None
    auc: float | None
    auc_high: float | None
    bound: float | None
    reason: str | None


class PolynomialAucCombineFn(CombineEvents[PolynomialAuc]):
    """Combines (label, score) into a `CombinedPolynomialAuc`: `PolynomialAuc` of every group.

    An element is (label, score), or a batch (labels, scores): arrays or lists of one length. A batch is many
    times faster per event. Labels are 1/0, 1/-1 or booleans; scores lie in the interval. Every event counts
    once. Any windows and triggers are allowed, also sessions. The order of events and of merges has no
    effect, because sums are exact. A group takes about 600 bytes, for any number of events.

    degree, interval, fit  see `PolynomialAuc`

    Raises ConfigError for an invalid setting, and InputError for an invalid event: no event is dropped.
    A CombineFn has no output of dead letters; so filter malformed events before.

        events | beam.WindowInto(beam.window.Sessions(600)) | beam.CombinePerKey(
            rs.PolynomialAucCombineFn(interval=(0, 1)))

    >>> result = PolynomialAucCombineFn().apply([(0, 0.1), (1, 0.9), ([0, 1], [0.4, 0.3])])
    >>> round(result.auc, 2), result.auc_low <= 0.75 <= result.auc_high, result.positives
    (0.78, True, 2)
    """

    result = CombinedPolynomialAuc

    def __init__(
        self,
        degree: int = DEFAULT_DEGREE,
        interval: tuple[float, float] = (-1.0, 1.0),
        fit: NearFit = "least_squares",
    ) -> None:
        none = PolynomialAuc(degree, interval, fit)
        self._interval = none.interval
        super().__init__(none.to_bytes(), none.interval)

    def setup(self) -> None:
        """Compile kernels before the first bundle, unless they are on disk."""
        auc = self.read(self._empty)
        auc.add(np.arange(2), self._interval)
        auc.estimate()

    def read(self, data: bytes) -> PolynomialAuc:
        """See `CombineEvents`."""
        return PolynomialAuc.from_bytes(data)

    def packed_size(self, data: bytes) -> int:
        """See `CombineEvents`."""
        return size_of_polynomial(data)

    def checked(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Int8Array, FloatArray]:
        """See `CombineEvents`."""
        return checked_events_within(self._interval, labels, scores)

    def extract_output(self, accumulator: bytes) -> CombinedPolynomialAuc:
        """Return the polynomial AUC of the accumulator's events."""
        summed = self.settled(accumulator)
        auc, bound, low, high = summed.estimate()
        reason = f"auc: {REASONS[ONE_CLASS]}" if auc is None else None
        return CombinedPolynomialAuc(
            summed.events, summed.positives, summed.negatives, low, auc, high, bound, reason
        )


registry.register_coder(CombinedPolynomialAuc, RowCoder)
