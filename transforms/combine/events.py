"""Combines (label, score) into what packs itself: the CombineFn that those of AUC have in common.

An accumulator is bytes: something of core in its wire form, then events that wait, raw. So adding an event
costs one or two microseconds, small groups are not summed before their end, and what is stored and shuffled
is in a wire form of ours, versioned, which outlives releases of Beam.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.coders import BytesCoder
from apache_beam.typehints.decorators import IOTypeHints

from ...core.arrays import FloatArray, Int8Array
from ...core.errors import InputError

_EVENT = np.dtype([("score", "<f8"), ("label", "i1")])
_PACK_EVENT = struct.Struct("<db").pack
WAITING = 2_048
"""Events that wait at the end of an accumulator, at the most. Adding them up takes up to a millisecond, and
putting one more behind them a microsecond."""

_LABELS = {0: 0, 1: 1, -1: 0}


class Summary(Protocol):
    """What adds events up."""

    def add(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        """Add events."""
        ...

    def merge(self, other: Self) -> Self:
        """Add those of another; return this one."""
        ...

    def to_bytes(self) -> bytes:
        """Return the wire form."""
        ...


AnySummary = TypeVar("AnySummary", bound=Summary)


class CombineEvents(beam.CombineFn, Generic[AnySummary]):
    """Adds (label, score), or (labels, scores) of one length, to a summary.

    empty     the bytes of a summary of no events
    interval  that scores lie in, as a check of single events that costs nothing
    """

    result: ClassVar[type]
    """What comes out of a group."""

    def __init__(self, empty: bytes, interval: tuple[float, float]) -> None:
        self._empty = empty
        self._low, self._high = interval

    def default_type_hints(self) -> IOTypeHints:
        """See `beam.CombineFn`."""
        hints = IOTypeHints.empty().with_input_types(Any)  # without them, Beam forgets the type of keys
        return hints.with_output_types(self.result)

    @abstractmethod
    def read(self, data: bytes) -> AnySummary:
        """Return the summary of its bytes."""

    @abstractmethod
    def packed_size(self, data: bytes) -> int:
        """Return how many of the bytes are a summary's, which they begin with."""

    @abstractmethod
    def checked(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Int8Array, FloatArray]:
        """Return events as arrays; else raise InputError."""

    def get_accumulator_coder(self) -> BytesCoder:
        """See `beam.CombineFn`."""
        return BytesCoder()

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
        if known is None or not self._low <= score <= self._high:
            return self._add_batch(mutable_accumulator, element)
        return self._bounded(mutable_accumulator + _PACK_EVENT(score, known))

    def _add_batch(self, accumulator: bytes, element: Any) -> bytes:
        """Add arrays; say of everything else what is wrong with it."""
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
        """Add waiting events up where they are many."""
        if len(accumulator) - self.packed_size(accumulator) < WAITING * _EVENT.itemsize:
            return accumulator
        return self.settled(accumulator).to_bytes()

    def merge_accumulators(self, accumulators: Iterable[bytes]) -> bytes:
        """Merge, in any order and grouping. Waiting events go on waiting while they are few."""
        total: AnySummary | None = None
        waiting: list[bytes] = []
        for accumulator in accumulators:
            size = self.packed_size(accumulator)
            waiting.append(accumulator[size:])
            if accumulator[:size] != self._empty:
                summary = self.read(accumulator[:size])
                total = summary if total is None else total.merge(summary)
        packed = self._empty if total is None else total.to_bytes()
        return self._bounded(packed + b"".join(waiting))

    def compact(self, accumulator: bytes) -> bytes:
        """Add waiting events up, unless they are all there is: then few are shorter as they are."""
        if accumulator.startswith(self._empty):
            return accumulator
        return self.settled(accumulator).to_bytes()

    def settled(self, accumulator: bytes) -> AnySummary:
        """Return the summary of all events of an accumulator."""
        size = self.packed_size(accumulator)
        summary = self.read(accumulator[:size])
        events = np.frombuffer(accumulator, _EVENT, offset=size)
        if len(events):
            summary.add(events["label"], events["score"])
        return summary


def shown(element: Any) -> str:
    """Return an element for a sentence on it, its first 200 characters at the most."""
    text = repr(element)
    return text if len(text) <= 200 else f"{text[:200]}..."
