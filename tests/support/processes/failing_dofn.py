"""DoFns that raise, for the runner that tries a failing bundle again.

Each fails in every first attempt: a bundle at an element, a timer or its end, chosen at random.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import TimerSpec, on_timer
from rocsteady.transforms.beam.machine import LOG, SNAPSHOT, TOKEN, StateMachineDoFn

_SNAPSHOT, _LOG, _TOKEN = map(beam.DoFn.StateParam, (SNAPSHOT, LOG, TOKEN))
END, CLOCK = (TimerSpec(f"failing {name}", TimeDomain.WATERMARK) for name in ("end", "clock"))
_END, _CLOCK = map(beam.DoFn.TimerParam, (END, CLOCK))


class Failures:
    """Says when to fail: in the first attempt of each two, at one of the next places that are passed."""

    attempts: ClassVar[int] = 0
    raised: ClassVar[int] = 0
    chance: ClassVar[random.Random] = random.Random(7)

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = -1

    def begin(self) -> None:
        Failures.attempts += 1
        self._left = self.chance.randrange(self._most) if Failures.attempts % 2 else -1

    def at(self, place: str) -> None:
        if self._left == 0:
            Failures.raised += 1
            raise RuntimeError(f"this bundle fails, {place}")
        self._left -= self._left > 0


class FailingMachines(StateMachineDoFn):
    """Hosts machines and fails before, after and between what it does to them."""

    def start_bundle(self) -> None:
        self._failures = Failures(4)
        self._failures.begin()

    def process(
        self,
        element: tuple[str, bytes],
        window: Any = beam.DoFn.WindowParam,
        snapshot: Any = _SNAPSHOT,
        log: Any = _LOG,
        token: Any = _TOKEN,
        end: Any = _END,
        clock: Any = _CLOCK,
    ) -> Iterator[Any]:
        self._failures.at("before a record")
        outputs = [*super().process(element, window, snapshot, log, token, end, clock)]
        self._failures.at("after a record")
        yield from outputs
        self._failures.at("behind its outputs")

    @on_timer(CLOCK)
    def at_clock(
        self,
        key: Any = beam.DoFn.KeyParam,
        window: Any = beam.DoFn.WindowParam,
        time: Any = beam.DoFn.TimestampParam,
        snapshot: Any = _SNAPSHOT,
        log: Any = _LOG,
        token: Any = _TOKEN,
        clock: Any = _CLOCK,
    ) -> Iterator[Any]:
        self._failures.at("before the clock")
        outputs = [*super().at_clock(key, window, time, snapshot, log, token, clock)]
        self._failures.at("behind the clock")
        yield from outputs

    @on_timer(END)
    def at_end(
        self,
        key: Any = beam.DoFn.KeyParam,
        window: Any = beam.DoFn.WindowParam,
        snapshot: Any = _SNAPSHOT,
        log: Any = _LOG,
        token: Any = _TOKEN,
    ) -> Iterator[Any]:
        self._failures.at("before the end")
        outputs = [*super().at_end(key, window, snapshot, log, token)]
        self._failures.at("behind the end")
        yield from outputs

    def finish_bundle(self) -> None:
        self._failures.at("at its end")


class FailsBetween(beam.DoFn):
    """Hands elements on, and fails."""

    def start_bundle(self) -> None:
        self._failures = Failures(3)
        self._failures.begin()

    def process(self, element: Any) -> Iterator[Any]:
        self._failures.at("before an element")
        yield element
        self._failures.at("behind an element")

    def finish_bundle(self) -> None:
        self._failures.at("at its end")
