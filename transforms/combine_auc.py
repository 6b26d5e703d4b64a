"""AucCombineFn: AUC and H-measure of any grouping in a Beam pipeline, merging windows (sessions) included.

An accumulator is bytes: a packed AucSketch, then events that wait, raw. So adding an event costs one or
two microseconds, small groups are not sorted before their end, and what is stored and shuffled is in a wire
form of ours, versioned, which outlives releases of Beam.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.coders import BytesCoder, RowCoder, registry
from apache_beam.typehints.decorators import IOTypeHints

from ..core.auc_sketch import DEFAULT_MAX_BYTES, AucSketch, checked_events
from ..core.errors import InputError
from ..core.rows import ONE_CLASS, OUT_OF_RANGE, REASONS
from ..core.settings import PRIORS_OF_WINDOW, BetaCost, Cost, EvaluatorSettings
from ..core.sketch_wire import packed_size

_EVENT = np.dtype([("score", "<f8"), ("label", "i1")])
_PACK_EVENT = struct.Struct("<db").pack
_WAITING = 2_048
"""Events that wait at the end of an accumulator, at the most. Sorting them into a sketch of 64 KB takes a
millisecond, adding an event behind it one microsecond."""

_LABELS = {0: 0, 1: 1, -1: 0}
_LARGEST = 1.7976931348623157e308


class CombinedAuc(NamedTuple):
    """What the events of a group say.

    events, positives, negatives   how many
    auc_low, auc, auc_high         AUC, ties one half, with certified bounds; null where a class is missing
    h_low, h, h_high               H-measure, in the same way
    exact                          whether bounds and values coincide
    reason                         why values are null, else null
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


class AucCombineFn(beam.CombineFn):
    """Combines (label, score) into a `CombinedAuc`: `AucSketch` for CombinePerKey and CombineGlobally.

    An element is (label, score), or (labels, scores) as arrays or lists of one length: a batch, which is many
    times faster per event. Labels are 1/0, 1/-1 or booleans, scores finite numbers, higher for more likely
    positive; every event counts once. Any windows and triggers, sessions included; neither the order of
    events nor that of merges matters.

    max_bytes  of the sketch of one group (64 KB: exact up to some 7,700 distinct scores)
    cost       of the H-measure; BetaCost(2, 2) if None
    priors     "window" (the group's), or the share of positives

    Raises ConfigError for a setting that cannot be, and InputError for what is no event: nothing is dropped.
    A CombineFn has no second output; where events may be malformed, filter them before.

        events | beam.WindowInto(beam.window.Sessions(600)) | beam.CombinePerKey(rs.AucCombineFn())

    >>> result = AucCombineFn().apply([(0, 0.1), (1, 0.9), ([0, 1], [0.4, 0.3])])
    >>> result.auc, result.positives, result.exact
    (0.75, 2, True)
    """

    def __init__(
        self,
        max_bytes: int = DEFAULT_MAX_BYTES,
        *,
        cost: Cost | None = None,
        priors: float | Literal["window"] = PRIORS_OF_WINDOW,
    ) -> None:
        self._settings = EvaluatorSettings(cost=BetaCost() if cost is None else cost, priors=priors)
        self._empty = AucSketch(max_bytes).to_bytes()

    def default_type_hints(self) -> IOTypeHints:
        """See `beam.CombineFn`."""
        hints = IOTypeHints.empty().with_input_types(Any)  # without them, Beam forgets the type of keys
        return hints.with_output_types(CombinedAuc)

    def get_accumulator_coder(self) -> BytesCoder:
        """See `beam.CombineFn`."""
        return BytesCoder()

    def setup(self) -> None:
        """Compile kernels before the first bundle, where they are not on disk yet."""
        sketch = AucSketch(1024)
        sketch.add(np.arange(1_000) % 2, np.arange(1_000.0))
        AucSketch.from_bytes(sketch.to_bytes()).merge(sketch).h_bounds()

    def create_accumulator(self) -> bytes:
        """Return no events."""
        return self._empty

    def add_input(self, mutable_accumulator: bytes, element: Any) -> bytes:
        """Add (label, score), or a batch of them. Amortised O(1) an event and a copy of the accumulator."""
        try:
            label, score = element
            known, score = _LABELS.get(label), float(score)
        except (TypeError, ValueError):
            return self._add_batch(mutable_accumulator, element)
        if known is None or not -_LARGEST <= score <= _LARGEST:
            return self._add_batch(mutable_accumulator, element)
        return self._bounded(mutable_accumulator + _PACK_EVENT(score, known))

    def _add_batch(self, accumulator: bytes, element: Any) -> bytes:
        """Add arrays; say of everything else what is wrong with it."""
        if not isinstance(element, tuple | list) or len(element) != 2:
            raise InputError(
                f"AucCombineFn: {_shown(element)} is no (label, score) and no (labels, scores); map events "
                "to such pairs before"
            )
        try:
            labels, scores = checked_events(*element)
        except InputError as problem:
            raise InputError(
                f"AucCombineFn: in {_shown(element)}, {problem}; a CombineFn has no dead letters, so filter "
                "such events before, or use EvaluateModels, which has"
            ) from None
        if len(scores) > _WAITING:
            sketch = _settled(accumulator)
            sketch.add(labels, scores)
            return sketch.to_bytes()
        events = np.empty(len(scores), _EVENT)
        events["score"], events["label"] = scores, labels
        return self._bounded(accumulator + events.tobytes())

    def _bounded(self, accumulator: bytes) -> bytes:
        """Sort waiting events in where they are many."""
        if len(accumulator) - packed_size(accumulator) < _WAITING * _EVENT.itemsize:
            return accumulator
        return _settled(accumulator).to_bytes()

    def merge_accumulators(self, accumulators: Iterable[bytes]) -> bytes:
        """Merge, in any order and grouping. Waiting events go on waiting while they are few."""
        total: AucSketch | None = None
        waiting: list[bytes] = []
        for accumulator in accumulators:
            size = packed_size(accumulator)
            waiting.append(accumulator[size:])
            if accumulator[:size] != self._empty:
                sketch = AucSketch.from_bytes(accumulator[:size])
                total = sketch if total is None else total.merge(sketch)
        packed = self._empty if total is None else total.to_bytes()
        return self._bounded(packed + b"".join(waiting))

    def compact(self, accumulator: bytes) -> bytes:
        """Sort waiting events in, unless they are all there is: then few are shorter as they are."""
        if accumulator.startswith(self._empty):
            return accumulator
        return _settled(accumulator).to_bytes()

    def extract_output(self, accumulator: bytes) -> CombinedAuc:
        """Return what the events say."""
        sketch = _settled(accumulator)
        auc, h = sketch.bounds(), sketch.h_bounds_by(self._settings)
        reason = None
        if auc.auc is None:
            reason = f"auc: {REASONS[ONE_CLASS]}; h: {REASONS[ONE_CLASS]}"
        elif h.h is None:
            reason = f"h: {REASONS[OUT_OF_RANGE]}"
        return CombinedAuc(
            sketch.events, sketch.positives, sketch.negatives, *auc, *h, sketch.is_exact, reason
        )


def _settled(accumulator: bytes) -> AucSketch:
    """Return the sketch of an accumulator's events."""
    size = packed_size(accumulator)
    sketch = AucSketch.from_bytes(accumulator[:size])
    events = np.frombuffer(accumulator, _EVENT, offset=size)
    if len(events):
        sketch.add(events["label"], events["score"])
    return sketch


def _shown(element: Any) -> str:
    text = repr(element)
    return text if len(text) <= 200 else f"{text[:200]}..."


registry.register_coder(CombinedAuc, RowCoder)
