"""AucCombineFn: AUC and H-measure of any grouping in a Beam pipeline, merging windows (sessions) included."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from apache_beam.coders import RowCoder, registry

from ...core.arrays import FloatArray, Int8Array
from ...core.events.inputs import checked_events
from ...core.rows.columns import ONE_CLASS, OUT_OF_RANGE, REASONS, reason_clauses
from ...core.settings.costs import BetaCost, Cost
from ...core.settings.evaluator import PRIORS_OF_WINDOW, EvaluatorSettings
from ...core.sketches.auc_sketch import DEFAULT_MAX_BYTES, AucSketch
from ...core.sketches.wire import packed_size
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
        return packed_size(data)

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
