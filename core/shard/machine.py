"""What a shard holds: a pure machine that is fed records and can be written down.

`EvaluatorTable` is one, a label join and a deduplicator will be others. The protocol of a shard
(`protocol`) and the DoFn that hosts it know no more of them than stands here.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

Pane = tuple[int, int]
"""Start and end of the Beam window that a user put the input in, microseconds UTC, end exclusive."""

Output = TypeVar("Output")


class StateMachine(Protocol[Output]):
    """A function of the records it was fed, in their order, and of nothing else: no clock, no chance."""

    def apply(self, record: bytes) -> list[Output]:
        """Take in one record and return what it gives rise to.

        After an error the machine may be half-changed, and must not be used any more.
        """
        ...

    def wakes_at(self) -> int | None:
        """Return the moment at which it wants to hear a `Clock`, microseconds; None = it waits for none."""
        ...

    def to_bytes(self) -> bytes:
        """Return a snapshot: a machine loaded from it goes on exactly as this one does."""
        ...

    def snapshot_bytes(self) -> int:
        """Return how long `to_bytes()` would be, in O(1), exact to a few percent."""
        ...

    def counts(self) -> dict[str, int]:
        """Return what it has taken in since it was made or loaded, by name of the metric."""
        ...

    def gauges(self) -> dict[str, int]:
        """Return how much it holds now, by name of the metric, in O(1)."""
        ...

    def live_bytes(self) -> int:
        """Return how much memory the machine takes, in O(1), roughly."""
        ...


class MachineFactory(Protocol[Output]):
    """Makes the machines of one step of a pipeline. Travels to the workers, so it must be picklable."""

    def warm_up(self) -> None:
        """Compile what the machines will need, so that no bundle has to wait for it."""
        ...

    def new(self, pane: Pane | None, key: str) -> StateMachine[Output]:
        """Return the machine of a key that has seen nothing; pane is None for unwindowed input."""
        ...

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> StateMachine[Output]:
        """Return the machine of a key that wrote a snapshot. Raises a `RocsteadyError` for other bytes."""
        ...
