"""The one stateful DoFn of rocsteady: it hosts one state machine of core for each (key, Beam window).

`core.shard.protocol` reads and writes the state; this module has the cells, the timers and the metrics. The
names of the cells are part of every stored state and never change. The names of the timers follow from the
step's label, and a runner finds a step's state by that label, too.

Input is (key, record). The main output has the machine's outputs, in the window of the input. A second output
has records that the machine refused (`Rejected`), as dead letters in columns. A third output has the
machine's state (`ShardState`) when an export asks for it. An event-time timer at the end of the window gives
the machine an `EndOfInput`. So the last rows of bounded input are made on every runner, and so are the last
rows of every fixed or sliding pane. If the runner's watermark is the machines' clock, a second timer gives
the machines the watermark, at moments when most held records can be released. Merging windows are refused,
because the states of two exact sliding windows cannot be merged.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import BytesCoder
from apache_beam.options.pipeline_options import DebugOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import (
    BagStateSpec,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
)
from apache_beam.transforms.window import GlobalWindow
from apache_beam.typehints.native_type_compatibility import convert_to_beam_type
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp

from ...core.errors import ConfigError
from ...core.events.records import Clock, EndOfInput, brings_state
from ...core.events.rejected import Rejected
from ...core.shard.machine import MachineFactory, Pane
from ...core.shard.protocol import DEFAULT_CACHE_BYTES, MachineCache, ShardCells, ShardProtocol, ValueCell
from ...core.state.exported import ShardState
from ..events.batches import from_ipc  # noqa: F401  registers the coder of the letters
from ..events.dead_letters import DeadLetters
from ..events.losses import role_of
from .cells import NumberedCellsDeclared, numbered_cells
from .metrics import count, count_letters, hold, let_go
from .state_sizes import measure_bytes

_caches: dict[int, MachineCache] = {}


def process_cache(max_bytes: int) -> MachineCache:
    """Return the cache of this process with a bound; steps with the same bound share one cache.

    Threads get the same cache, since `setdefault` is one step of a dict.
    """
    return _caches.setdefault(max_bytes, MachineCache(max_bytes))


def pane_of(window: Any) -> Pane | None:
    """Return start and end of a Beam window in microseconds.

    None for the global window, which has no bounds.
    """
    if isinstance(window, GlobalWindow):
        return None
    return window.start.micros, window.end.micros


_LAST = GlobalWindow().max_timestamp()


def timestamp(micros: int) -> Timestamp:
    """Return a Beam timestamp, clipped to Beam's range of timestamps, which is smaller than int64."""
    return min(max(Timestamp(micros=micros), MIN_TIMESTAMP), _LAST)


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
    """A value cell that caches the value it read. The runner's own cell would ask the runner at each read."""

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

LETTERS, STATES = "letters", "states"

_WHOLE_BUNDLES = "prism_disable_sdf_split"
"""Prism (2.77) splits a bundle that makes no progress for 0.1 s, also between elements of one key. Both parts
then run in parallel from the same earlier state, and the writes of one part are lost. This experiment
prevents the split; other runners ignore it."""

Letters = Callable[[Rejected], DeadLetters]
"""A function, sent to the workers, that makes dead letters of the records that a machine refused."""

Brings = Callable[[str], bytes]
"""A function, sent to the workers, that returns the packed `StateImport` of a key, with its snapshot."""

_SNAPSHOT, _LOG, _TOKEN = map(beam.DoFn.StateParam, (SNAPSHOT, LOG, TOKEN))


def _cells(snapshot: Any, log: Any, token: Any) -> ShardCells:
    return ShardCells(snapshot, log, token, numbered_cells(log))


@dataclass(eq=False, repr=False)
class StateMachineDoFn(NumberedCellsDeclared, beam.DoFn):
    """Hosts the machines of one step. `step` identifies the step's machines in the process's cache.

    The other fields are those of `RunStateMachine`. `dofn_of_step` declares the methods' cells and timers to
    Beam.
    """

    factory: MachineFactory[Any]
    step: str
    cache_bytes: int = DEFAULT_CACHE_BYTES
    letters: Letters | None = None
    lateness: int | None = None
    brings: Brings | None = None

    def setup(self) -> None:
        """Open this step in the process's cache, and compile the kernels before the first bundle."""
        measure_bytes()
        self.factory.warm_up()
        self._cache = process_cache(self.cache_bytes)
        self._cache.open(self.step)
        self._protocol = ShardProtocol(self.factory, self._cache, self.step, count)

    def teardown(self) -> None:
        """Close this step in the cache; its machines are dropped if no other user holds them."""
        self._cache.close(self.step)

    def process(
        self,
        element: tuple[str, bytes],
        window: Any,
        snapshot: Any,
        log: Any,
        token: Any,
        end: Any,
        clock: Any,
    ) -> Iterator[Any]:
        """Apply one record, with a timer set for the end of its window.

        In the global window, the first record of a key sets the timer. In a pane, every record sets the
        timer, because the record may be late and the timer may have fired: the timer then fires again, and
        the pane gets a newer last row.
        """
        key, record = element
        if self.brings is not None and brings_state(record):
            record = self.brings(key)
        pane = pane_of(window)
        committed = ReadOnce(token)
        if committed.read() is None or pane is not None:
            end.set(window.max_timestamp())
        outputs = self._protocol.apply(key, pane, _cells(snapshot, log, committed), record)
        hold(self.step, key, self._protocol.held, pane)
        self._wake(clock, window)
        return self._tagged(outputs)

    def _wake(self, clock: Any, window: Any) -> None:
        """Set the timer of the clock, if the runner's watermark is the clock."""
        if self.lateness is not None and (moment := self._protocol.wakes_at()) is not None:
            clock.set(min(timestamp(moment + self.lateness), window.max_timestamp()))

    def _tagged(self, outputs: list[Any]) -> Iterator[Any]:
        for output in outputs:
            if isinstance(output, Rejected) and self.letters is not None:
                letters = self.letters(output)
                count_letters(letters, role_of(output))
                yield TaggedOutput(LETTERS, letters.batch)
            elif isinstance(output, ShardState):
                yield TaggedOutput(STATES, output.pack())
            else:
                yield output

    def at_clock(
        self, key: Any, window: Any, time: Any, snapshot: Any, log: Any, token: Any, clock: Any
    ) -> Iterator[Any]:
        """Give the machine a `Clock` with the moment that the watermark has passed."""
        cells = _cells(snapshot, log, token)
        record = Clock(time.micros - (self.lateness or 0)).pack()
        outputs = self._protocol.apply(key, pane_of(window), cells, record)
        self._wake(clock, window)
        yield from self._tagged(outputs)

    def at_end(self, key: Any, window: Any, snapshot: Any, log: Any, token: Any) -> Iterator[Any]:
        """Give the machine an `EndOfInput`: its input has ended."""
        cells = _cells(snapshot, log, token)
        pane = pane_of(window)
        outputs = self._protocol.apply(key, pane, cells, EndOfInput().pack(), keep=pane is None)
        if pane is not None:
            let_go(self.step, key, pane)
        yield from self._tagged(outputs)


def dofn_of_step(label: str) -> type[StateMachineDoFn]:
    """Return a DoFn class whose timers' names are unique to the step.

    Beam's in-process runner keeps the timers of a stage by their names alone (2.77, `timer_buffers`). With
    two steps in a stage, such as two evaluations of one PCollection, one step got the timers of both.
    """
    name = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    end_spec = TimerSpec(f"end-{name}", TimeDomain.WATERMARK)
    clock_spec = TimerSpec(f"clock-{name}", TimeDomain.WATERMARK)

    class OfStep(StateMachineDoFn):
        def process(
            self,
            element: tuple[str, bytes],
            window: Any = beam.DoFn.WindowParam,
            snapshot: Any = _SNAPSHOT,
            log: Any = _LOG,
            token: Any = _TOKEN,
            end: Any = beam.DoFn.TimerParam(end_spec),  # noqa: B008 - Beam's way
            clock: Any = beam.DoFn.TimerParam(clock_spec),  # noqa: B008
        ) -> Iterator[Any]:
            return super().process(element, window, snapshot, log, token, end, clock)

        @on_timer(end_spec)
        def at_end(
            self,
            key: Any = beam.DoFn.KeyParam,
            window: Any = beam.DoFn.WindowParam,
            snapshot: Any = _SNAPSHOT,
            log: Any = _LOG,
            token: Any = _TOKEN,
        ) -> Iterator[Any]:
            return super().at_end(key, window, snapshot, log, token)

        @on_timer(clock_spec)
        def at_clock(
            self,
            key: Any = beam.DoFn.KeyParam,
            window: Any = beam.DoFn.WindowParam,
            time: Any = beam.DoFn.TimestampParam,
            snapshot: Any = _SNAPSHOT,
            log: Any = _LOG,
            token: Any = _TOKEN,
            clock: Any = beam.DoFn.TimerParam(clock_spec),  # noqa: B008
        ) -> Iterator[Any]:
            return super().at_clock(key, window, time, snapshot, log, token, clock)

    return OfStep


class MachineOutputs(NamedTuple):
    """The outputs of a step's machines, the refused records as dead letters in columns, and the states.

    states  packed `ShardState`s, one per shard for each requested export
    """

    outputs: beam.PCollection[Any]
    letters: beam.PCollection[pa.RecordBatch]
    states: beam.PCollection[bytes]


@dataclass(eq=False, repr=False)
class RunStateMachine(beam.PTransform[beam.PCollection[tuple[str, bytes]], MachineOutputs]):
    """Feeds (key, record) to one machine per key and window; outputs what the machines emit.

    factory      makes the machines.
    output_type  the type of the machines' outputs; Beam chooses the coder by this type.
    cache_bytes  bytes of live machines that a process keeps between bundles; all steps with equal
                 `cache_bytes` share these bytes.
    letters      makes dead letters of refused records, if the machines refuse any.
    lateness     microseconds. If given, the runner's watermark is the machines' clock, and all times before
                 the watermark minus `lateness` are settled. None = the watermark is not the clock.
    brings       reads the state of a key when a `StateImport` without a state comes. (A state of 153 MB that
                 was sent as an element stopped a job on Flink.)

    The number of keys should be fixed and small: a key costs 20 microseconds to 1 ms a bundle.
    """

    factory: MachineFactory[Any]
    output_type: Any
    cache_bytes: int = DEFAULT_CACHE_BYTES
    letters: Letters | None = None
    lateness: int | None = None
    brings: Brings | None = None

    def __post_init__(self) -> None:
        super().__init__()
        size = self.cache_bytes
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ConfigError(
                f"cache_bytes={size!r}: give the bytes of live state that a process may keep between "
                f"bundles, a whole number from 0 ({DEFAULT_CACHE_BYTES} by default)"
            )

    def expand(self, records: beam.PCollection[tuple[str, bytes]]) -> MachineOutputs:
        """Host the machines; raise ConfigError for windows that merge."""
        refuse_merging_windows(records, self.label)
        records.pipeline.options.view_as(DebugOptions).add_experiment(_WHOLE_BUNDLES)
        step = secrets.token_hex(8)
        # On some runners, an untyped keyed PCollection gets different key coders for timers and for state.
        # The timer then finds an empty state, without an error.
        packets = typed(records, "Type", tuple[str, bytes])
        of_step = dofn_of_step(records.pipeline._current_transform().full_label)
        dofn = of_step(self.factory, step, self.cache_bytes, self.letters, self.lateness, self.brings)
        outputs = packets | "Apply" >> beam.ParDo(dofn).with_outputs(LETTERS, STATES, main="outputs")
        return MachineOutputs(
            typed(outputs["outputs"], "Outputs", self.output_type),
            typed(outputs[LETTERS], "Letters", pa.RecordBatch),
            typed(outputs[STATES], "States", bytes),
        )


def typed(elements: beam.PCollection[Any], label: str, of: Any) -> beam.PCollection[Any]:
    """Return a PCollection with the type of its elements declared; Beam chooses the coder by this type.

    In a streaming job a step of its own declares the type, because an update of a running job looks for the
    name of this step. A job of bounded input has no such step, since each step costs a few milliseconds at
    the start.
    """
    if elements.is_bounded:
        elements.element_type = convert_to_beam_type(of)
        return elements
    declared: beam.PCollection[Any] = elements | label >> beam.Map(unchanged).with_output_types(of)
    return declared


def unchanged(element: Any) -> Any:
    """Return the element; for a step that only declares the type of its elements."""
    return element
