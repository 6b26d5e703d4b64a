"""ClassState: the state of a model with classes, with its evaluators and its window as bytes.

Wire form of a state, version 1: a frame (encoding/fields.py) with magic "RSCW"; payload: settings, model and
slice (texts), whether there is a pane and its two ends (bool, i64, i64), the snapshots of the evaluators
(each with its length), the window (`ClassWindow.pack`), an adaptive window's `Adwin` with its length.
Wire form of many states: u32 count, then each with its length.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from ..encoding.fields import Reader, framed, packed_bytes, packed_text, unframed
from ..encoding.json import reading
from .class_settings import ClassSettings

MAGIC = b"RSCW"
VERSION = 1
_WHAT = "a snapshot of a model with classes"


class ClassState(NamedTuple):
    """Everything on which a model's later rows depend.

    settings      the settings of the model
    model, slice  the names in rows
    pane          the Beam window of its rows; None if there is no window
    evaluators    the snapshot of the decisions of all classes, then that of each class
    window        the bytes of its `ClassWindow`; with an adaptive window, followed by the bytes of its
                  `Adwin` with their length
    """

    settings: ClassSettings
    model: str
    slice: str
    pane: tuple[int, int] | None
    evaluators: Sequence[bytes]
    window: bytes

    def pack(self) -> bytes:
        """Return the wire form."""
        pane = struct.pack("<?qq", self.pane is not None, *(self.pane or (0, 0)))
        parts = [packed_text(self.settings.to_json()), packed_text(self.model), packed_text(self.slice), pane]
        parts += [*map(packed_bytes, self.evaluators), self.window]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def unpack(cls, data: bytes) -> ClassState:
        """Read the wire form. Raises a `WireError` for other bytes.

        The bytes of evaluators and window are not read.
        """
        reader = Reader(unframed(data, MAGIC, VERSION, _WHAT))
        with reading(_WHAT):
            settings = ClassSettings.from_json(reader.text())
            model, slice_ = reader.text(), reader.text()
            has_pane, *pane = reader.numbers("<?qq")
            count = 1 + len(settings.evaluated)
            evaluators = [reader.sized() for _ in range(count)]
            known_pane = (pane[0], pane[1]) if has_pane else None
            return cls(settings, model, slice_, known_pane, evaluators, bytes(reader.rest()))


def packed_states(states: Sequence[bytes]) -> bytes:
    """Return the wire form of many states, from the wire form of each."""
    return b"".join([struct.pack("<I", len(states)), *map(packed_bytes, states)])


def states_in(data: bytes) -> list[bytes]:
    """Return the bytes of each state in the wire form of many states.

    Raises a `WireError` for other bytes.
    """
    with reading("a snapshot"):
        reader = Reader(memoryview(data))
        states = [reader.sized() for _ in range(reader.number("<I"))]
        reader.end()
        return states
