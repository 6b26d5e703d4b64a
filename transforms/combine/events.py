"""Combines (label, score) into a summary of core: the base class of the AUC CombineFns.

An accumulator is bytes: a summary of core in its wire form, then raw events that wait to be added. So adding
an event costs one or two microseconds, and small groups are summed only at their end. Stored and shuffled
bytes are in rocsteady's versioned wire form, which outlives releases of Beam.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, TypeVar

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.coders import BytesCoder
from apache_beam.typehints.decorators import IOTypeHints

from ...core.arrays import FloatArray, Int8Array
from ...core.errors import InputError
from ...core.measures.polynomial_auc import PolynomialAuc
from ...core.sketches.auc_sketch import AucSketch

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

    empty     the bytes of a summary without events
    interval  the interval of valid scores, for a cheap check of single events
    """

    result: ClassVar[type]
    """The type of a group's result."""

    def __init__(self, empty: bytes, interval: tuple[float, float]) -> None:
        self._empty = empty
        self._low, self._high = interval

    def default_type_hints(self) -> IOTypeHints:
        """See `beam.CombineFn`."""
        hints = IOTypeHints.empty().with_input_types(Any)  # without them, Beam forgets the type of keys
        return hints.with_output_types(self.result)

    @abstractmethod
    def read(self, data: bytes) -> AnySummary:
        """Return the summary from its bytes."""

    @abstractmethod
    def packed_size(self, data: bytes) -> int:
        """Return the length of the summary at the start of the bytes."""

    @abstractmethod
    def checked(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Int8Array, FloatArray]:
        """Return events as arrays; else raise InputError."""

    def get_accumulator_coder(self) -> BytesCoder:
        """See `beam.CombineFn`."""
        return BytesCoder()

    def create_accumulator(self) -> bytes:
        """Return the accumulator without events."""
        return self._empty

    def add_input(self, mutable_accumulator: bytes, element: Any) -> bytes:
        """Add (label, score), or a batch. Amortised O(1) an event, and a copy of the accumulator per call."""
        try:
            label, score = element
            known, score = _LABELS.get(label), float(score)
        except (TypeError, ValueError):
            return self._add_batch(mutable_accumulator, element)
        if known is None or not self._low <= score <= self._high:
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
        if len(accumulator) - self.packed_size(accumulator) < WAITING * _EVENT.itemsize:
            return accumulator
        return self.settled(accumulator).to_bytes()

    def merge_accumulators(self, accumulators: Iterable[bytes]) -> bytes:
        """Merge accumulators, in any order and grouping. If few events wait, they go on waiting."""
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
        """Add the waiting events to the summary. An empty summary stays: a few waiting events are shorter."""
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
    """Return an element as text for an error, its first 200 characters at most."""
    text = repr(element)
    return text if len(text) <= 200 else f"{text[:200]}..."
