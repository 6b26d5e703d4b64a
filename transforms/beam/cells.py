"""The numbered cells of a large shard on Beam: declared to the runner, and reached only when asked for.

Beam makes a handle of every cell that `process` names, for every key and bundle, in 21 us: 32 of them take as
long as a small bundle on Flink (.8 ms). So `process` names none: another method declares them, which Beam
inspects and never calls. A handle is made when the protocol asks for it, from what Beam's own handle of the
cell `log` holds. Where that handle is of another make (Beam's `BundleBasedDirectRunner`, a later Beam), there
are no numbered cells, and values stay whole.

What is written counts at once: the runner has it before the next part is sent, so never two of them are on
their way. A bundle that fails takes it back, as it does all of its state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.runners.worker.bundle_processor import SynchronousBagRuntimeState
from apache_beam.runners.worker.sdk_worker import GrpcStateHandler
from apache_beam.transforms.userstate import BagStateSpec

from ...core.shard.parts import PARTS

LARGEST_MESSAGE = 64 << 20
"""Bytes of a value that a message carries: 77 MB went through a TaskManager with 192 MB of direct memory for
messages, 153 MB did not."""

NAMES = [f"part_{number:02d}" for number in range(PARTS)]
_DECLARED = [beam.DoFn.StateParam(BagStateSpec(name, BytesCoder())) for name in NAMES]


class NumberedCellsDeclared:
    """For a stateful DoFn: declares the numbered cells."""

    def numbered_cells(self) -> None:
        """Do nothing; Beam looks for cells among the arguments of all methods."""

    def _inspect_numbered_cells(self) -> tuple[list[str], list[Any]]:
        """Return names and defaults of the arguments that Beam takes the method above to have."""
        return NAMES, _DECLARED


class BeamNumberedCells:
    """The numbered cells of a key, opened like its cell `log`."""

    def __init__(self, like: SynchronousBagRuntimeState) -> None:
        self._like = like
        self._handler = like._state_handler
        by_message = isinstance(getattr(self._handler, "_underlying", None), GrpcStateHandler)
        self.largest = LARGEST_MESSAGE if by_message else None

    def cell(self, number: int) -> _CellNow:
        """Return the bag of a number."""
        key = type(self._like._state_key)()
        key.CopyFrom(self._like._state_key)
        key.bag_user_state.user_state_id = NAMES[number]
        return _CellNow(self._handler, key, self._like._value_coder)


class _CellNow:
    """A bag whose changes are sent when they are made, and not at the end of the bundle.

    Raises RuntimeError where the runner refuses one; Beam's own bags pass over that (2.77).
    """

    def __init__(self, handler: Any, key: Any, coder: Any) -> None:
        self._handler, self._key, self._coder = handler, key, coder

    def read(self) -> Iterable[bytes]:
        try:
            return [*SynchronousBagRuntimeState(self._handler, self._key, self._coder).read()]
        except Exception as error:
            raise RuntimeError(
                f"the runner gave no cell {self._key.bag_user_state.user_state_id} of a large shard "
                f"({type(error).__name__}). A TaskManager of Flink has its largest shard in its heap: if its "
                "log says OutOfMemoryError, give it more (taskmanager.memory.task.heap.size), or the job "
                "more shards"
            ) from error

    def add(self, value: bytes) -> None:
        self._wait(self._handler.extend(self._key, self._coder.get_impl(), [value]))

    def clear(self) -> None:
        self._wait(self._handler.clear(self._key))

    def _wait(self, answer: Any) -> None:
        refused = getattr(answer.get(), "error", "")
        if refused:
            raise RuntimeError(f"the runner refuses {self._key.bag_user_state.user_state_id}: {refused}")


def numbered_cells(log: Any) -> BeamNumberedCells | None:
    """Return the numbered cells beside a cell `log`; None where this Beam keeps it in another way."""
    if type(log) is not SynchronousBagRuntimeState:
        return None
    try:
        return BeamNumberedCells(log)
    except AttributeError:
        return None
