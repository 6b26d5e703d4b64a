"""The numbered state cells of a large shard on Beam: declared to the runner, and opened only on request.

For every key and bundle, Beam makes a handle of each cell that `process` names, in 21 us. Handles of 32 cells
take as long as a small bundle on Flink (0.8 ms). So `process` names no numbered cell; another method declares
the cells, and Beam inspects this method and never calls it. The module makes a cell's handle when the
protocol asks for the cell, from the attributes of Beam's own handle of the cell `log`. If the handle of `log`
has another class (in Beam's `BundleBasedDirectRunner`, or perhaps in a later Beam), there are no numbered
cells, and a snapshot is stored as one value.

A write is sent to the runner at once, and completes before the next part is sent. So two parts are never in
transit together. A bundle that fails undoes its writes, like all changes of its state.
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
"""The most bytes of a value in one message. A TaskManager with 192 MB of direct memory for messages took a
message of 77 MB, but not a message of 153 MB."""

NAMES = [f"part_{number:02d}" for number in range(PARTS)]
_DECLARED = [beam.DoFn.StateParam(BagStateSpec(name, BytesCoder())) for name in NAMES]


class NumberedCellsDeclared:
    """A base class for a stateful DoFn, which declares the numbered cells."""

    def numbered_cells(self) -> None:
        """Declare the cells, and do nothing: Beam looks for cells among the arguments of all methods."""

    def _inspect_numbered_cells(self) -> tuple[list[str], list[Any]]:
        """Return the names and defaults of the arguments that Beam finds in `numbered_cells`."""
        return NAMES, _DECLARED


class BeamNumberedCells:
    """The numbered cells of a key, opened in the same way as the key's cell `log`."""

    def __init__(self, like: SynchronousBagRuntimeState) -> None:
        self._like = like
        self._handler = like._state_handler
        by_message = isinstance(getattr(self._handler, "_underlying", None), GrpcStateHandler)
        self.largest = LARGEST_MESSAGE if by_message else None

    def cell(self, number: int) -> _CellNow:
        """Return the cell with a number; the cell is a bag."""
        key = type(self._like._state_key)()
        key.CopyFrom(self._like._state_key)
        key.bag_user_state.user_state_id = NAMES[number]
        return _CellNow(self._handler, key, self._like._value_coder)


class _CellNow:
    """A bag that sends each change to the runner at once, and not at the end of the bundle.

    Raises RuntimeError if the runner refuses a change; Beam's own bags ignore a refusal (2.77).
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
    """Return the numbered cells of the key that has the cell `log`.

    None if Beam's handle of `log` has another class.
    """
    if type(log) is not SynchronousBagRuntimeState:
        return None
    try:
        return BeamNumberedCells(log)
    except AttributeError:
        return None
