"""The one stateful DoFn of rocsteady: it hosts any state machine, one per (key, Beam window).

What it does with state is `core.shard_protocol`; here are the cells, the timer and the metrics. The names
of the cells and of the timer are part of every stored state and never change.

Input is (key, record), output what the machine puts out, in the window of the input. An event-time timer
at the end of the window feeds the machine an `EndOfInput`: bounded input ends with its last rows on every
runner, a fixed or sliding pane with those at its end. Merging windows are refused: their state would have
to be merged, and an exact sliding window cannot be.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from threading import Lock
from typing import Any

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.metrics import Metrics
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import (
    BagStateSpec,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
)
from apache_beam.transforms.window import GlobalWindow

from ..core.errors import ConfigError
from ..core.records import EndOfInput
from ..core.shard_protocol import (
    DEFAULT_CACHE_BYTES,
    MachineCache,
    ShardCells,
    ShardProtocol,
    ValueCell,
)
from ..core.state_machine import MachineFactory, Pane

METRICS_NAMESPACE = "rocsteady"


_caches: dict[int, MachineCache] = {}
_caches_lock = Lock()


def process_cache(max_bytes: int) -> MachineCache:
    """Return the cache of this process with a bound; steps with the same bound share it. Thread-safe."""
    with _caches_lock:
        cache = _caches.get(max_bytes)
        if cache is None:
            cache = _caches[max_bytes] = MachineCache(max_bytes)
        return cache


def pane_of(window: Any) -> Pane | None:
    """Return start and end of a Beam window in microseconds, None for the global one."""
    if isinstance(window, GlobalWindow):
        return None
    return window.start.micros, window.end.micros


def refuse_merging_windows(events: beam.PCollection[Any], whose: str) -> None:
    """Raise a `ConfigError` if a PCollection is in windows that merge, such as sessions."""
    windowfn = events.windowing.windowfn
    if windowfn.is_merging():
        raise ConfigError(
            f"{whose}: the input is in {type(windowfn).__name__}, windows that merge, and an exact "
            "evaluation of two panes cannot be merged into one; use FixedWindows or SlidingWindows, or "
            "put the session into the model's name, or combine each session's (label, score) pairs with "
            "beam.CombinePerKey(rocsteady.AucCombineFn()), which gives its AUC and H"
        )


class ReadOnce:
    """A value cell that remembers what it read; the runner's own asks again every time."""

    def __init__(self, cell: ValueCell) -> None:
        self._cell = cell
        self._value: bytes | None = None
        self._known = False

    def read(self) -> bytes | None:
        """Return the value."""
        if not self._known:
            self._value, self._known = self._cell.read(), True
        return self._value

    def write(self, value: bytes) -> None:
        """Replace the value."""
        self._cell.write(value)
        self._value, self._known = value, True


SNAPSHOT = ReadModifyWriteStateSpec("snapshot", BytesCoder())
LOG = BagStateSpec("log", BytesCoder())
TOKEN = ReadModifyWriteStateSpec("token", BytesCoder())
END = TimerSpec("end", TimeDomain.WATERMARK)

_SNAPSHOT, _LOG, _TOKEN = map(beam.DoFn.StateParam, (SNAPSHOT, LOG, TOKEN))
_END = beam.DoFn.TimerParam(END)


class StateMachineDoFn(beam.DoFn):
    """Hosts the machines of one step. `step` tells its machines from those of other steps."""

    def __init__(
        self,
        factory: MachineFactory[Any],
        step: str,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> None:
        self._factory = factory
        self._step = step
        self._cache_bytes = cache_bytes
        self._counters: dict[str, Any] = {}

    def setup(self) -> None:
        """Join the users of the process's cache; compile before there are bundles."""
        self._factory.warm_up()
        self._cache = process_cache(self._cache_bytes)
        self._cache.open(self._step)
        self._protocol = ShardProtocol(self._factory, self._cache, self._step, self._count)

    def teardown(self) -> None:
        """Leave the cache, and take the machines along if nobody else uses them."""
        self._cache.close(self._step)

    def process(
        self,
        element: tuple[str, bytes],
        window: Any = beam.DoFn.WindowParam,
        snapshot: Any = _SNAPSHOT,
        log: Any = _LOG,
        token: Any = _TOKEN,
        end: Any = _END,
    ) -> list[Any]:
        """Apply one record, with a timer set for the end of its window.

        In the global window the first record of a key sets it. In a pane every record does, because the
        timer may have fired and this record be late: it fires again, and the pane has a newer last row.
        """
        key, record = element
        pane = pane_of(window)
        committed = ReadOnce(token)
        if committed.read() is None or pane is not None:
            end.set(window.max_timestamp())
        return self._protocol.apply(key, pane, ShardCells(snapshot, log, committed), record)

    @on_timer(END)
    def at_end(
        self,
        key: Any = beam.DoFn.KeyParam,
        window: Any = beam.DoFn.WindowParam,
        snapshot: Any = _SNAPSHOT,
        log: Any = _LOG,
        token: Any = _TOKEN,
    ) -> Iterator[Any]:
        """Tell the machine that its input has ended."""
        cells = ShardCells(snapshot, log, token)
        pane = pane_of(window)
        yield from self._protocol.apply(key, pane, cells, EndOfInput().pack(), keep=pane is None)

    def _count(self, name: str, amount: int) -> None:
        if name not in self._counters:  # what a machine counts, it alone knows
            self._counters[name] = Metrics.counter(METRICS_NAMESPACE, name)
        self._counters[name].inc(amount)


class RunStateMachine(beam.PTransform[beam.PCollection[tuple[str, bytes]], beam.PCollection[Any]]):
    """Feeds (key, record) to one machine per key and window, and gives what the machines put out.

    factory      makes the machines
    output_type  of what they put out; Beam chooses the coder by it
    cache_bytes  live machines that a process keeps between bundles, over all steps of this bound

    The number of keys should be fixed and small: a key costs 20 microseconds to 1 ms a bundle.
    """

    def __init__(
        self,
        factory: MachineFactory[Any],
        output_type: Any,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> None:
        super().__init__()
        if isinstance(cache_bytes, bool) or not isinstance(cache_bytes, int) or cache_bytes < 0:
            raise ConfigError(
                f"cache_bytes={cache_bytes!r}: give the bytes of live state that a process may keep "
                f"between bundles, a whole number from 0 ({DEFAULT_CACHE_BYTES} by default)"
            )
        self._factory = factory
        self._output_type = output_type
        self._cache_bytes = cache_bytes

    def expand(self, records: beam.PCollection[tuple[str, bytes]]) -> beam.PCollection[Any]:
        """Host the machines; raises ConfigError for windows that merge."""
        refuse_merging_windows(records, self.label)
        step = secrets.token_hex(8)
        # An untyped keyed PCollection gets another key coder in the timer than in the state on some
        # runners, and the timer then sees empty state without a word.
        typed = records | "Type" >> beam.Map(_unchanged).with_output_types(tuple[str, bytes])
        dofn = StateMachineDoFn(self._factory, step, self._cache_bytes)
        outputs: beam.PCollection[Any] = typed | "Apply" >> beam.ParDo(dofn).with_output_types(
            self._output_type
        )
        return outputs


def _unchanged(element: tuple[str, bytes]) -> tuple[str, bytes]:
    return element
