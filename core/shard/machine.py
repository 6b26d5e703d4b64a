"""The protocol of a state machine: a shard feeds records to the machine, and can store the machine as bytes.

`EvaluatorTable`, the label join and the deduplicator are such machines. The protocol of a shard (`protocol`)
and the DoFn that hosts a machine use only the methods below.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

Pane = tuple[int, int]
"""The start and the end of a Beam window of the user's input, in microseconds UTC; the end is exclusive."""

Output = TypeVar("Output")


class StateMachine(Protocol[Output]):
    """A deterministic machine: its state depends only on the records it was fed and their order.

    The machine reads no clock of the computer and draws no random numbers.
    """

    def apply(self, record: bytes) -> list[Output]:
        """Take in one record and return the outputs that the record causes.

        After an error the machine may be half-changed, and must not be used any more.
        """

    def wakes_at(self) -> int | None:
        """Return the moment (microseconds) at which the machine needs a `Clock`; None if it needs none."""

    def to_bytes(self) -> bytes:
        """Return a snapshot. A machine loaded from the snapshot behaves exactly as this machine."""

    def snapshot_bytes(self) -> int:
        """Return about the length of `to_bytes()`, in O(1), exact to a few percent."""

    def counts(self) -> dict[str, int]:
        """Return, by name of the metric, how many records and events the machine has taken in.

        The counts begin when the machine is made or loaded.
        """

    def gauges(self) -> dict[str, int]:
        """Return the gauges of the machine, by name of the metric: how many things it holds now, in O(1)."""

    def live_bytes(self) -> int:
        """Return roughly how many bytes of memory the machine takes, in O(1)."""


class MachineFactory(Protocol[Output]):
    """Makes the machines of one step of a pipeline.

    The factory is sent to the workers, so it must be picklable.
    """

    def warm_up(self) -> None:
        """Compile the kernels that the machines will need, so that no bundle has to wait for the compiler."""

    def new(self, pane: Pane | None, key: str) -> StateMachine[Output]:
        """Return a new machine for a key; `pane` is None for unwindowed input."""

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> StateMachine[Output]:
        """Return the machine of a key from its snapshot.

        Raises a `RocsteadyError` for bytes that are no snapshot of such a machine.
        """
