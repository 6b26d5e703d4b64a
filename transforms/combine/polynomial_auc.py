"""PolynomialAucCombineFn: AUC by a polynomial, of any groups in a Beam pipeline, also of sessions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from apache_beam.coders import RowCoder, registry

from ...core.arrays import FloatArray, Int8Array
from ...core.measures.polynomial_auc import PolynomialAuc, checked_events_within, packed_size
from ...core.measures.polynomial_estimate import DEFAULT_DEGREE, NearFit
from ...core.rows.columns import ONE_CLASS, REASONS
from .events import CombineEvents


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
        return packed_size(data)

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
