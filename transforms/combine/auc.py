"""CombineFns of AUC, for any grouping in a Beam pipeline, merging windows (sessions) included.

`AucCombineFn` gives AUC and the H-measure by a sketch, `PolynomialAucCombineFn` AUC by a polynomial. Both
combine (label, score) into a summary of core, as their base class `CombineEvents` does.

An accumulator is bytes: a summary of core in its wire form, then raw events that wait to be added. So adding
an event costs one or two microseconds, and small groups are summed only at their end. Stored and shuffled
bytes are in rocsteady's versioned wire form, which outlives releases of Beam.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.coders import BytesCoder, RowCoder, registry
from apache_beam.typehints.decorators import IOTypeHints

from ...core.arrays import FloatArray, Int8Array
from ...core.errors import InputError
from ...core.events.inputs import checked_events
from ...core.events.numbers import is_held
from ...core.measures.polynomial_auc import PolynomialAuc, checked_events_within
from ...core.measures.polynomial_auc import packed_size as size_of_polynomial
from ...core.measures.polynomial_estimate import DEFAULT_DEGREE, NearFit
from ...core.rows.columns import reason_clauses
from ...core.rows.reasons import ONE_CLASS, OUT_OF_RANGE, REASONS
from ...core.settings.costs import BetaCost, Cost
from ...core.settings.evaluator import PRIORS_OF_WINDOW, EvaluatorSettings
from ...core.sketches.auc_sketch import DEFAULT_MAX_BYTES, AucSketch
from ...core.sketches.wire import packed_size as size_of_sketch

_EVENT = np.dtype([("score", "<f8"), ("label", "i1")])
_PACK_EVENT = struct.Struct("<db").pack
WAITING = 2_048
"""The most events that wait at the end of an accumulator. Adding all of them to the summary takes up to a
millisecond; appending one event takes a microsecond."""

_LABELS = {0: 0, 1: 1, -1: 0}


AnySummary = TypeVar("AnySummary", AucSketch, PolynomialAuc)
"""A mergeable summary of events with a wire form."""


class CombineEvents(beam.CombineFn, Generic[AnySummary]):
    """Adds (label, score), or (labels, scores) of one length, to a summary.

    empty        a summary without events
    packed_size  returns the length of the summary at the start of some bytes
    interval     the interval of valid scores, for a cheap check of single events
    """

    result: ClassVar[type]
    """The class of a group's result."""

    def __init__(
        self, empty: AnySummary, packed_size: Callable[[bytes], int], interval: tuple[float, float]
    ) -> None:
        self._summary: Any = type(empty)
        self._empty = empty.to_bytes()
        self._packed_size = packed_size
        self._low, self._high = interval

    def default_type_hints(self) -> IOTypeHints:
        """See `beam.CombineFn`."""
        # without these hints, Beam forgets the type of keys
        hints = IOTypeHints.empty().with_input_types(Any)
        return hints.with_output_types(self.result)

    def checked(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Int8Array, FloatArray]:
        """Return `labels` and `scores` as arrays. Raises InputError for events that cannot be used."""
        return checked_events(labels, scores)

    def get_accumulator_coder(self) -> BytesCoder:
        """See `beam.CombineFn`."""
        return BytesCoder()

    def create_accumulator(self) -> bytes:
        """Return the accumulator without events."""
        return self._empty

    def add_input(self, mutable_accumulator: bytes, element: Any) -> bytes:
        """Return the accumulator with (label, score), or a batch, added.

        Amortised O(1) an event, and a copy of `mutable_accumulator` per call.
        """
        try:
            label, score = element
            known, held = _LABELS.get(label), type(score) is float or is_held(score)
            score = float(score)
        except (TypeError, ValueError):
            return self._add_batch(mutable_accumulator, element)
        if known is None or not held or not self._low <= score <= self._high:
            return self._add_batch(mutable_accumulator, element)
        return self._bounded(mutable_accumulator + _PACK_EVENT(score, known))

    def _add_batch(self, accumulator: bytes, element: Any) -> bytes:
        """Add a batch of arrays. Raises InputError, which names the fault, for any other element."""
        name = type(self).__name__
        if not isinstance(element, tuple | list) or len(element) != 2:
            raise InputError(
                f"{name}: {shown(element)} is no (label, score) and no (labels, scores); map events to such "
                "pairs before"
            )
        try:
            labels, scores = self.checked(*element)
        except InputError as problem:
            raise InputError(
                f"{name}: in {shown(element)}, {problem}; a CombineFn has no dead letters, so filter such "
                "events before, or use EvaluateModels, which has"
            ) from None
        if len(scores) > WAITING:
            summary = self.settled(accumulator)
            summary.add(labels, scores)
            return summary.to_bytes()
        events = np.empty(len(scores), _EVENT)
        events["score"], events["label"] = scores, labels
        return self._bounded(accumulator + events.tobytes())

    def _bounded(self, accumulator: bytes) -> bytes:
        """Add the waiting events to the summary if there are many."""
        if len(accumulator) - self._packed_size(accumulator) < WAITING * _EVENT.itemsize:
            return accumulator
        return self.settled(accumulator).to_bytes()

    def merge_accumulators(self, accumulators: Iterable[bytes]) -> bytes:
        """Merge accumulators, in any order and grouping. If few events wait, they go on waiting."""
        total: AnySummary | None = None
        waiting: list[bytes] = []
        for accumulator in accumulators:
            size = self._packed_size(accumulator)
            waiting.append(accumulator[size:])
            if accumulator[:size] != self._empty:
                summary = self._summary.from_bytes(accumulator[:size])
                total = summary if total is None else total.merge(summary)
        packed = self._empty if total is None else total.to_bytes()
        return self._bounded(packed + b"".join(waiting))

    def compact(self, accumulator: bytes) -> bytes:
        """Add the waiting events to the summary.

        An empty summary is not filled: a few waiting events take fewer bytes.
        """
        if accumulator.startswith(self._empty):
            return accumulator
        return self.settled(accumulator).to_bytes()

    def settled(self, accumulator: bytes) -> AnySummary:
        """Return the summary of all events of an accumulator."""
        size = self._packed_size(accumulator)
        summary: AnySummary = self._summary.from_bytes(accumulator[:size])
        events = np.frombuffer(accumulator, _EVENT, offset=size)
        if len(events):
            summary.add(events["label"], events["score"])
        return summary


def shown(element: Any) -> str:
    """Return an element as text for an error, its first 200 characters at most."""
    text = repr(element)
    return text if len(text) <= 200 else f"{text[:200]}..."


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
        super().__init__(AucSketch(max_bytes), size_of_sketch, (-_LARGEST, _LARGEST))

    def setup(self) -> None:
        """Compile kernels before the first bundle, unless they are on disk."""
        sketch = AucSketch(1024)
        sketch.add(np.arange(1_000) % 2, np.arange(1_000.0))
        AucSketch.from_bytes(sketch.to_bytes()).merge(sketch).h_bounds()

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
        super().__init__(none, size_of_polynomial, none.interval)

    def setup(self) -> None:
        """Compile kernels before the first bundle, unless they are on disk."""
        auc = self._summary.from_bytes(self._empty)
        auc.add(np.arange(2), self._interval)
        auc.estimate()

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
