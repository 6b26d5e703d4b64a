"""EvaluatorState: everything that an evaluator's later rows depend on, as flat arrays, and its wire form.

Wire form in a snapshot (snapshot.py), little-endian: model and slice (text). Head (`_HEAD`: kind, events
held, seq, next row, seq of the last row, greatest time, pane, last label). Names of classes (u32 count, text
each; `negatives` says what a name with a blank in front means). Last seq at which each class was a label
(i64). Scores in order of arrival (f64). Labels, predictions and hits (one byte an event; with classes two i32
and one byte). Optional parts follow: times (i64); the course of the window (four i64,
`eviction.WINDOW_FIELDS`); the signal of an adaptive window (u32 length, bytes); the weights of a weighted
window (the power of two that scales the weights, i64; f64 each); the evidence (u32 length, bytes). Text is a
u32 length and UTF-8. An event takes 9 bytes, with times 17.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array, Int64Array
from ..encoding.fields import Reader, packed_text
from ..encoding.json import reading

_HEAD = struct.Struct("<BQqqqqqqi")
_COURSE = struct.Struct("<4q")
_SHIFT = struct.Struct("<q")
_COUNTERS = struct.Struct("<5q")
_IDLE_HEAD = struct.Struct("<qII")
_MULTICLASS, TIMED_EVENTS, PANED, COURSED, _SIGNALLED, _WEIGHED, _EVIDENT = 1, 2, 4, 8, 16, 32, 64
"""The bits of the kind of a state in its wire form: each says whether a part is there."""

Codes = npt.NDArray[np.int8] | npt.NDArray[np.int32]
"""The type of codes of classes: labels 0 and 1 are int8, and named classes are int32, by their number."""


@dataclass(frozen=True, eq=False)
class Held:
    """The events in a window, in columns, in order of arrival.

    weights  None if every event counts once
    times    None if events have no times, or `eviction.Course` keeps the times instead of the window
    shift    the power of two that scales the weights
    """

    scores: FloatArray
    labels: Codes
    predictions: Codes
    hits: Int8Array
    weights: FloatArray | None = None
    times: Int64Array | None = None
    shift: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluatorState(Held):
    """Everything that an evaluator's later rows depend on, beside the events held.

    `times` are always the times of these events.
    """

    model: str
    slice: str
    pane: tuple[int, int] | None
    multiclass: bool
    class_names: tuple[str, ...]
    last_seen: Int64Array
    last_label: int
    seq: int
    next_row: int
    reported_seq: int
    greatest_time: int
    course: tuple[int, ...] | None = None
    signal: bytes = b""
    evidence: bytes = b""


_HITS = 7
"""All bits that an event's hits may have. Kernels use the higher bits as marks of ring slots, and do not
check the hits.
"""


class Remains(NamedTuple):
    """The record of a dropped evaluator: its name, and the counters from which its rows continue.

    Wire form: model, slice (text), then the counters (five i64). The length is 48 bytes and the names.
    """

    model: str
    slice: str
    seq: int
    next_row: int
    greatest_time: int
    clock: int
    last_due: int

    def pack(self) -> bytes:
        """Return the wire form of the record."""
        return b"".join((packed_text(self.model), packed_text(self.slice), _COUNTERS.pack(*self[2:])))

    @classmethod
    def read(cls, reader: Reader) -> Remains:
        """Read the next record; raises ValueError if the record contradicts itself."""
        remains = cls(reader.text(), reader.text(), *reader.numbers(_COUNTERS.format))
        if remains.seq < 1 or remains.next_row < 0:
            raise ValueError(f"{remains.model!r} has impossible counters")
        return remains


def write_evaluator(state: EvaluatorState, parts: list[bytes]) -> None:
    """Append the wire form of an evaluator to the parts of a payload."""
    kind = (
        (_MULTICLASS if state.multiclass else 0)
        | (TIMED_EVENTS if state.times is not None else 0)
        | (PANED if state.pane else 0)
        | (COURSED if state.course is not None else 0)
        | (_SIGNALLED if state.signal else 0)
        | (_WEIGHED if state.weights is not None else 0)
        | (_EVIDENT if state.evidence else 0)
    )
    pane = state.pane or (0, 0)
    numbers = state.seq, state.next_row, state.reported_seq, state.greatest_time, *pane, state.last_label
    parts += [
        packed_text(state.model),
        packed_text(state.slice),
        _HEAD.pack(kind, len(state.scores), *numbers),
        struct.pack("<I", len(state.class_names)),
        *map(packed_text, state.class_names),
        state.last_seen.astype("<i8").tobytes(),
        state.scores.astype("<f8").tobytes(),
    ]
    if state.multiclass:
        parts += [
            state.labels.astype("<i4").tobytes(),
            state.predictions.astype("<i4").tobytes(),
            state.hits.astype("<i1").tobytes(),
        ]
    else:  # label, prediction and hits fit into one byte
        parts.append((state.hits << 2 | state.predictions << 1 | state.labels).astype("<i1").tobytes())
    if state.times is not None:
        parts.append(state.times.astype("<i8").tobytes())
    if state.course is not None:
        parts.append(_COURSE.pack(*state.course))
    if state.signal:
        parts += [struct.pack("<I", len(state.signal)), state.signal]
    if state.weights is not None:
        parts += [_SHIFT.pack(state.shift), state.weights.astype("<f8").tobytes()]
    if state.evidence:
        parts += [struct.pack("<I", len(state.evidence)), state.evidence]


def read_evaluator(reader: Reader) -> EvaluatorState:
    """Read the next evaluator; raises ValueError if its state contradicts itself."""
    model, slice_ = reader.text(), reader.text()
    (kind, held, seq, next_row, reported_seq, greatest_time, pane_start, pane_end, last_label) = (
        reader.numbers(_HEAD.format)
    )
    multiclass = bool(kind & _MULTICLASS)
    class_names = tuple(reader.text() for _ in range(reader.number("<I")))
    classes = (len(class_names) if multiclass else 2) if seq else 0
    last_seen = reader.array("<i8", classes)
    scores = reader.array("<f8", held)
    if multiclass:
        labels, predictions = reader.array("<i4", held), reader.array("<i4", held)
        hits = reader.array("<i1", held)
    else:
        bits = reader.array("<i1", held)
        labels, predictions, hits = bits & 1, bits >> 1 & 1, bits >> 2
    if (hits & ~_HITS).any():
        raise ValueError(f"{model!r} has impossible hits")
    times = reader.array("<i8", held) if kind & TIMED_EVENTS else None
    course = reader.numbers(_COURSE.format) if kind & COURSED else None
    signal = bytes(reader.read(reader.number("<I"))) if kind & _SIGNALLED else b""
    weights, shift = None, 0
    if kind & _WEIGHED:
        shift = reader.number(_SHIFT.format)
        weights = reader.array("<f8", held)
        if not ((weights > 0) & np.isfinite(weights)).all():
            raise ValueError(f"{model!r} has impossible weights")
    evidence = bytes(reader.read(reader.number("<I"))) if kind & _EVIDENT else b""
    for codes in (labels, predictions):
        if held and not (codes.min() >= 0 and codes.max() < classes):
            raise ValueError(f"{model!r} refers to class {codes.max()} of {classes}")
    if not -1 <= last_label < max(classes, 1) or held > seq or np.isnan(scores).any():
        raise ValueError(f"{model!r} has impossible counters or scores")
    return EvaluatorState(
        scores, labels, predictions, hits, weights, times, shift, model=model, slice=slice_,
        pane=(pane_start, pane_end) if kind & PANED else None, multiclass=multiclass,
        class_names=class_names, last_seen=last_seen, last_label=last_label, seq=seq, next_row=next_row,
        reported_seq=reported_seq, greatest_time=greatest_time, course=course, signal=signal,
        evidence=evidence,
    )  # fmt: skip


def evaluator_bytes(
    held: int,
    names: int,
    classes: int,
    multiclass: bool,
    timed: bool,
    coursed: bool = False,
    signal: int = 0,
    weighed: bool = False,
    evidence: int = 0,
) -> int:
    """Return the number of bytes that `write_evaluator` writes.

    `names` is the number of bytes of the names of model, slice and classes.
    """
    per_event = 8 + (9 if multiclass else 1) + (8 if timed else 0) + (8 if weighed else 0)
    per_class = 12 * classes if multiclass else 16
    extra = (_COURSE.size if coursed else 0) + (4 + signal if signal else 0)
    extra += (_SHIFT.size if weighed else 0) + (4 + evidence if evidence else 0)
    return 8 + _HEAD.size + 4 + names + per_class + per_event * held + extra


class IdleState(NamedTuple):
    """The state of `IdleModels`.

    clock   the greatest time of any event so far.
    active  int64, for each live evaluator, the clock at its last event; NO_TIME if the evaluator had no
            event.
    left    the records of the dropped evaluators.

    Wire form, little-endian: clock (i64), numbers of live and of dropped evaluators (u32 each); active (i64
    each); records of the dropped evaluators.
    """

    clock: int
    active: Int64Array
    left: list[Remains]

    def pack(self) -> bytes:
        """Return the wire form of the state."""
        head = _IDLE_HEAD.pack(self.clock, len(self.active), len(self.left))
        left = b"".join(remains.pack() for remains in self.left)
        return head + self.active.astype("<i8").tobytes() + left

    @staticmethod
    def size(here: int, remains: int) -> int:
        """Return the length of `pack()` for `here` live evaluators and `remains` bytes of dropped ones."""
        return _IDLE_HEAD.size + 8 * here + remains

    @classmethod
    def unpack(cls, data: bytes) -> IdleState:
        """Read a state from its wire form; raises CorruptBytesError if the bytes contradict themselves."""
        with reading("what is kept of idle models"):
            reader = Reader(memoryview(data))
            clock, here, left = reader.numbers(_IDLE_HEAD.format)
            active = reader.array("<i8", here)
            remains = [Remains.read(reader) for _ in range(left)]
            reader.end()
            return cls(clock, active, remains)
