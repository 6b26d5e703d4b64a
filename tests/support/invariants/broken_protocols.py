"""Each rule of `core/shard/protocol.py` broken, in a subclass, to see that the simulator would know."""

from __future__ import annotations

import struct
from typing import Any

from rocsteady.core.events.records import Clock
from rocsteady.core.shard.machine import Pane
from rocsteady.core.shard.protocol import LiveMachine, MachineCache, Place, ShardCells, ShardProtocol

from tests.support.invariants.simulator import FaultyCache, LogView

Protocol = ShardProtocol[Any]
CLOCK = Clock(0).pack()[:6]
"""How a word of the clock begins."""


class TokenIgnored(Protocol):
    """Rule 1: uses any cached machine of the place."""

    def _take(self, place: Place, cells: ShardCells) -> LiveMachine[Any]:
        live = self._cache.pop(place)
        return live or self._rebuild(cells, place, cells.token.read())


class AbsentTokenMatches(Protocol):
    """Rule 1: an absent token matches whatever is there."""

    def _take(self, place: Place, cells: ShardCells) -> LiveMachine[Any]:
        live = self._cache.pop(place)
        committed = cells.token.read()
        if live is not None and committed in (None, live.token):
            return live
        return self._rebuild(cells, place, committed)


class CountedTokens(Protocol):
    """Rule 1: tokens count the records applied."""

    def _take(self, place: Place, cells: ShardCells) -> LiveMachine[Any]:
        live = super()._take(place, cells)
        self._applied = int.from_bytes(live.token or b"")
        return live

    def _new_token(self) -> bytes:
        return (self._applied + 1).to_bytes(16)


class LeftInCache(FaultyCache):
    """Rule 2: the machine stays in the cache while it is changed."""

    def pop(self, place: Place) -> LiveMachine[Any] | None:
        live = super().pop(place)
        if live is not None:
            MachineCache.put(self, place, live)
        return live


class PutBeforeWrites(Protocol):
    """Rule 2: the machine goes back before the cells are written, under the token that it came with."""

    def _write(self, key: str, live: LiveMachine[Any], cells: ShardCells, record: bytes) -> None:
        self._cache.put((self._step, None, key), live)
        super()._write(key, live, cells, record)


class TimersPassBy(Protocol):
    """Rule 3: the clock changes the machine, and neither log nor token hear of it."""

    def apply(
        self, key: str, pane: Pane | None, cells: ShardCells, record: bytes, keep: bool = True
    ) -> list[Any]:
        if not record.startswith((b"C", CLOCK)):
            return super().apply(key, pane, cells, record, keep)
        place = (self._step, pane, key)
        live = self._take(place, cells)
        rows: list[Any] = live.machine.apply(record)
        self._cache.put(place, live)
        return rows


class LogKept(LogView):
    """Rule 4: a snapshot is written and the log stays."""

    def clear(self) -> None:
        pass


class LoggedAndSnapshot(Protocol):
    """Rule 4: the record that is in the snapshot already is logged too."""

    def _write(self, key: str, live: LiveMachine[Any], cells: ShardCells, record: bytes) -> None:
        super()._write(key, live, cells, record)
        if not live.log_records:
            cells.log.add(struct.pack("<I", 0) + record)
            live.log_records += 1


class BagOrderTrusted(Protocol):
    """The records of the log are applied in the order in which the bag gives them."""

    def _rebuild(self, cells: ShardCells, place: Place, committed: bytes | None) -> LiveMachine[Any]:
        live = super()._rebuild(cells, place, committed)
        snapshot, (_, pane, key) = cells.snapshot.read(), place
        live.machine = self._factory.load(snapshot, pane, key) if snapshot else self._factory.new(pane, key)
        for entry in cells.log.read():
            live.machine.apply(entry[4:])
        return live


BROKEN = {
    "token ignored": (TokenIgnored, FaultyCache, LogView),
    "absent token matches": (AbsentTokenMatches, FaultyCache, LogView),
    "tokens are counts": (CountedTokens, FaultyCache, LogView),
    "left in the cache": (Protocol, LeftInCache, LogView),
    "put before the writes": (PutBeforeWrites, FaultyCache, LogView),
    "timers pass by": (TimersPassBy, FaultyCache, LogView),
    "log kept": (Protocol, FaultyCache, LogKept),
    "logged and in the snapshot": (LoggedAndSnapshot, FaultyCache, LogView),
    "order of the bag trusted": (BagOrderTrusted, FaultyCache, LogView),
}
