"""The stateful DoFn gives, on every runner, what one undisturbed machine per key and window gives."""

from __future__ import annotations

import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.testing import test_stream
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import TimerSpec, on_timer
from apache_beam.transforms.window import FixedWindows, Sessions, SlidingWindows, TimestampedValue
from rocsteady.core.errors import ConfigError
from rocsteady.core.shard.machine import Pane
from rocsteady.core.shard.protocol import LiveMachine, Place, ShardCells, ShardProtocol
from rocsteady.transforms.beam.machine import (
    LOG,
    SNAPSHOT,
    TOKEN,
    ReadOnce,
    RunStateMachine,
    StateMachineDoFn,
    process_cache,
)
from rocsteady.transforms.beam.metrics import count

from tests.support.invariants.hash_chain import END as END_OF_INPUT
from tests.support.invariants.hash_chain import ChainFactory, ChainRow, events, undisturbed
from tests.support.processes.beam_runs import RUNNERS_AND_CACHES, InOrder, Keep, kept, pipeline

FACTORY = ChainFactory(window=5, every=4)
KEYS = ("a", "b", "c")
RECORDS = [(KEYS[i % 3], events(*range(i, i + 1 + i % 4))) for i in range(60)]


def rows_of(records: list[tuple[str, bytes]], pane: Pane | None = None) -> list[ChainRow]:
    """Return the rows of all keys; with the end of the input."""
    rows = []
    for key in KEYS:
        mine = [record for of, record in records if of == key]
        rows += undisturbed(FACTORY, [*mine, END_OF_INPUT], pane) if mine else []
    return sorted(rows)


@pytest.mark.slow
@pytest.mark.parametrize(("runner", "cache_bytes"), RUNNERS_AND_CACHES)
def test_rows_are_equal_on_every_runner_and_the_last_ones_come_at_the_end(
    runner: str, cache_bytes: int, tmp_path: Path
) -> None:
    with pipeline(runner) as p:
        records = p | InOrder(RECORDS, tuple[str, bytes])
        (records | RunStateMachine(FACTORY, ChainRow, cache_bytes)).outputs | Keep(tmp_path, "rows")
    assert sorted(row.value for row in kept(tmp_path, "rows")) == rows_of(RECORDS)


@pytest.mark.parametrize("runner", ["in process", "retrying"])
def test_an_untyped_input_ends_with_its_last_rows_too(runner: str, tmp_path: Path) -> None:
    with pipeline(runner) as p:
        records = p | InOrder(RECORDS)
        (records | RunStateMachine(FACTORY, ChainRow)).outputs | Keep(tmp_path, "rows")
    assert sorted(row.value for row in kept(tmp_path, "rows")) == rows_of(RECORDS)


def test_only_a_streaming_job_has_steps_that_declare_a_type() -> None:
    """An update of a running job looks for their names."""
    made = {}
    for kind in ("bounded", "streaming"):
        p = beam.Pipeline()
        records = p | InOrder(RECORDS) if kind == "bounded" else p | test_stream.TestStream()
        whole = records | "Machines" >> RunStateMachine(FACTORY, ChainRow)
        assert [each.element_type for each in whole] == [ChainRow, pa.RecordBatch, bytes]
        made[kind] = {label for label in p.applied_labels if label.startswith("Machines/")}
    declaring = {f"Machines/{each}" for each in ("Type", "Outputs", "Letters", "States")}
    assert made["streaming"] - made["bounded"] == declaring


@pytest.mark.parametrize("runner", ["in process", "retrying"])
@pytest.mark.parametrize("windows", [FixedWindows(20), SlidingWindows(20, 10)], ids=type)
def test_every_pane_is_a_machine_of_its_own(runner: str, windows: Any, tmp_path: Path) -> None:
    with pipeline(runner) as p:
        times = [(record, time) for time, record in enumerate(RECORDS)]
        records = p | InOrder(times) | beam.MapTuple(TimestampedValue)
        rows = (records | beam.WindowInto(windows) | RunStateMachine(FACTORY, ChainRow)).outputs
        rows | Keep(tmp_path, "rows")
    got = kept(tmp_path, "rows")
    step = 10 if isinstance(windows, SlidingWindows) else 20
    for start in range(20 - 2 * step if step == 20 else -10, 60, step):
        pane = (start * 1_000_000, (start + 20) * 1_000_000)
        mine = RECORDS[max(start, 0) : max(start + 20, 0)]
        rows_here = sorted(row.value for row in got if row.pane == (start, start + 20))
        assert rows_here == (rows_of(mine, pane) if mine else [])


def test_merging_windows_are_refused_in_a_sentence() -> None:
    p = beam.Pipeline(runner="FnApiRunner")
    records = p | InOrder(RECORDS, tuple[str, bytes]) | beam.WindowInto(Sessions(10))
    with pytest.raises(ConfigError, match=r"Sessions, windows that merge.* use FixedWindows"):
        records | RunStateMachine(FACTORY, ChainRow)


def test_nothing_stays_in_the_cache_of_the_process_when_a_job_is_done() -> None:
    bound = 123_456_789
    with pipeline() as p:
        p | InOrder(RECORDS, tuple[str, bytes]) | RunStateMachine(FACTORY, ChainRow, bound)
    assert len(process_cache(bound)) == 0


def test_threads_that_ask_at_once_get_one_cache() -> None:
    bound = 987_654_321
    start = threading.Barrier(16)

    def ask(_: int) -> int:
        start.wait()
        return id(process_cache(bound))

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            assert len(set(pool.map(ask, range(16)))) == 1
    finally:
        sys.setswitchinterval(switch)


def test_a_token_is_read_from_the_runner_once() -> None:
    class Cell:
        reads = 0

        def read(self) -> bytes:
            self.reads += 1
            return b"token"

        def write(self, value: bytes) -> None:
            del value

    cell = Cell()
    once = ReadOnce(cell)
    assert (once.read(), once.read(), cell.reads) == (b"token", b"token", 1)
    once.write(b"next")
    assert (once.read(), cell.reads) == (b"next", 1)


@pytest.mark.parametrize("cache_bytes", [-1, True, "1 GB"])
def test_a_bound_of_the_cache_is_a_number_of_bytes(cache_bytes: Any) -> None:
    with pytest.raises(ConfigError, match=f"cache_bytes={cache_bytes!r}"):
        RunStateMachine(FACTORY, ChainRow, cache_bytes)


def test_a_stream_in_fixed_windows_ends_each_pane_once(tmp_path: Path) -> None:
    """A pane's last rows come when the watermark passes its end, while the stream goes on."""
    stream = (
        test_stream.TestStream()
        .add_elements([TimestampedValue(("a", events(1, 2, 3)), 1)])
        .add_elements([TimestampedValue(("a", events(4, 5)), 2)])
        .advance_watermark_to(8)
        .add_elements([TimestampedValue(("a", events(6)), 9), TimestampedValue(("b", events(9)), 9)])
        .advance_watermark_to(12)
        .add_elements([TimestampedValue(("a", events(7, 8)), 13)])
        .advance_watermark_to_infinity()
    )
    with pipeline("retrying", "--streaming") as p:
        records = p | stream | beam.WindowInto(FixedWindows(10))
        (records | RunStateMachine(FACTORY, ChainRow)).outputs | Keep(tmp_path, "rows")
    first = (0, 10_000_000)
    expected = [
        *undisturbed(FACTORY, [events(1, 2, 3), events(4, 5), events(6), END_OF_INPUT], first),
        *undisturbed(FACTORY, [events(9), END_OF_INPUT], first),
        *undisturbed(FACTORY, [events(7, 8), END_OF_INPUT], (10_000_000, 20_000_000)),
    ]
    assert sorted(row.value for row in kept(tmp_path, "rows")) == sorted(expected)


def test_late_records_of_a_pane_bring_a_newer_last_row_and_none_comes_twice(tmp_path: Path) -> None:
    stream = (
        test_stream.TestStream()
        .add_elements([TimestampedValue(("a", events(1, 2, 3)), 1)])
        .advance_watermark_to(20)
        .add_elements([TimestampedValue(("a", events(4, 5)), 2)])
        .advance_watermark_to(40)
        .advance_watermark_to_infinity()
    )
    with pipeline("retrying", "--streaming") as p:
        records = p | stream | beam.WindowInto(FixedWindows(10), allowed_lateness=1000)
        (records | RunStateMachine(FACTORY, ChainRow)).outputs | Keep(tmp_path, "rows")
    told = [events(1, 2, 3), END_OF_INPUT, events(4, 5), END_OF_INPUT]
    rows = sorted(row.value for row in kept(tmp_path, "rows"))
    assert rows == undisturbed(FACTORY, told, (0, 10_000_000))
    assert [row[1] for row in rows] == [3, 4, 5]


def test_metrics_tell_what_the_state_costs() -> None:
    p = beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
    records = p | InOrder(RECORDS, tuple[str, bytes])
    records | RunStateMachine(FACTORY, ChainRow, 0)
    result = p.run()
    result.wait_until_finish()
    found = result.metrics().query(MetricsFilter().with_namespace("rocsteady"))
    counts = {counter.key.metric.name: counter.committed for counter in found["counters"]}
    assert counts["rebuilds"] == len(RECORDS), "every record but the first of a key, and the ends"
    assert counts["snapshots_written"] > 0
    assert counts["snapshot_bytes"] > 0
    assert counts["log_bytes"] > 0
    sizes = {gauge.key.metric.name: gauge.result.value for gauge in found["gauges"]}
    assert sizes.keys() == {f"state_bytes {key}" for key, _ in RECORDS}
    assert min(sizes.values()) > 0


class IgnoresTokens(ShardProtocol[ChainRow]):
    """Rule 1 broken."""

    def _take(self, place: Place, cells: ShardCells) -> LiveMachine[ChainRow]:
        live = self._cache.pop(place)
        return live or self._rebuild(cells, place, cells.token.read())


SNAPSHOT_PARAM, LOG_PARAM, TOKEN_PARAM = map(beam.DoFn.StateParam, (SNAPSHOT, LOG, TOKEN))
END = TimerSpec("failing end", TimeDomain.WATERMARK)
END_PARAM = beam.DoFn.TimerParam(END)


class FailingDoFn(StateMachineDoFn):
    """Fails in the first attempt at every bundle: before, after or between records, or at its end."""

    attempts = 0
    chance = random.Random(7)
    protocol: type[ShardProtocol[ChainRow]] = ShardProtocol

    def setup(self) -> None:
        super().setup()
        self._protocol = self.protocol(self.factory, process_cache(self.cache_bytes), self.step, count)

    def start_bundle(self) -> None:
        FailingDoFn.attempts += 1
        fails = FailingDoFn.attempts % 2 == 1
        self._left = self.chance.randrange(7) if fails else 1 << 60

    def _step_towards_failure(self) -> None:
        self._left -= 1
        if self._left < 0:
            self._left = 1 << 60
            raise RuntimeError("this bundle fails")

    def process(
        self,
        element: tuple[str, bytes],
        window: Any = beam.DoFn.WindowParam,
        snapshot: Any = SNAPSHOT_PARAM,
        log: Any = LOG_PARAM,
        token: Any = TOKEN_PARAM,
        end: Any = END_PARAM,
    ) -> list[Any]:
        self._step_towards_failure()
        rows = super().process(element, window, snapshot, log, token, end, clock=None)
        self._step_towards_failure()
        return rows

    @on_timer(END)
    def at_end(
        self,
        key: Any = beam.DoFn.KeyParam,
        window: Any = beam.DoFn.WindowParam,
        snapshot: Any = SNAPSHOT_PARAM,
        log: Any = LOG_PARAM,
        token: Any = TOKEN_PARAM,
    ) -> Any:
        return super().at_end(key, window, snapshot, log, token)

    def finish_bundle(self) -> None:
        if self._left < 1 << 50:
            raise RuntimeError("this bundle fails at its end")


class FailingIgnorant(FailingDoFn):
    protocol = IgnoresTokens


def run_failing(dofn: type[FailingDoFn], directory: Path) -> list[ChainRow]:
    """Return the rows of a stream of small bundles, each of which fails once."""
    stream = test_stream.TestStream()
    for start in range(0, len(RECORDS), 5):
        stream = stream.add_elements(RECORDS[start : start + 5])
    failures = FailingDoFn.attempts
    with pipeline("retrying", "--streaming") as p:
        records = (
            p | stream.advance_watermark_to_infinity() | beam.Map(tuple).with_output_types(tuple[str, bytes])
        )
        rows = records | beam.ParDo(dofn(FACTORY, dofn.__name__)).with_output_types(ChainRow)
        rows | Keep(directory, "rows")
    assert FailingDoFn.attempts - failures > 20, "bundles were retried"
    return sorted(row.value for row in kept(directory, "rows"))


def test_rows_are_right_on_a_runner_that_retries_failing_bundles(tmp_path: Path) -> None:
    assert run_failing(FailingDoFn, tmp_path) == rows_of(RECORDS)


def test_that_runner_finds_a_protocol_that_ignores_tokens(tmp_path: Path) -> None:
    assert run_failing(FailingIgnorant, tmp_path) != rows_of(RECORDS)
