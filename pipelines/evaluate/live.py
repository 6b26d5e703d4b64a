"""A live job from its start to its end: `rocsteady evaluate -`, `--follow`, and topics with `--runner local`.

No runner without a server streams well, so a live job runs in this process. It has the same readers as a job
on a runner, and evaluates their packets in one table. The rows equal those of a file with the same records in
the same order. Rows are written when they are due.

Ctrl-C, or SIGTERM, ends the input: all records read by then are evaluated, the last rows are made, and the
exit status is 0. So `tail -f events | rocsteady evaluate -` ends in the same way whether the signal ends
`tail` before or after this process.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from ...core.alerts.rows import SomeRows
from ...core.alerts.rules import Kind
from ...core.alerts.table import AlertTable
from ...core.errors import InputError, RocsteadyError
from ...core.events.records import EndOfInput, StateImport
from ...core.events.rejected import Reason, Rejected
from ...core.events.times import NO_TIME
from ...core.fleet.members import MemberRows, Settled
from ...core.fleet.table import FleetTable
from ...core.ids.sharding import number_of, shard_key
from ...core.pairs.table import PairTable
from ...core.process.console import say
from ...core.process.temporary_folders import temporary_folder
from ...core.rows.arrow import rows_to_arrow
from ...core.rows.pairs import PairRow
from ...core.rows.rows import Rows
from ...core.state.compile_ahead import warm_up
from ...core.state.exported import ShardState
from ...core.state.take_up import taken_up
from ...transforms.beam import metrics, progress
from ...transforms.evaluate.shards import TableFactory
from ...transforms.events.dead_letters import DeadLetters, RejectedLetters, in_columns
from ...transforms.events.fields import RECORD_COUNTERS
from ...transforms.sinks.kinds import (
    ALERTS,
    CURVES,
    DEAD_LETTERS,
    PAIRS,
    ROLL_UPS,
    ROWS,
    TableSink,
    curve_batches,
)
from ...transforms.sinks.open import STDOUT, is_appendable, is_streamed, open_sink
from ...transforms.sources.streams.reader import Step, StreamReader
from ...transforms.state.folder import EVALUATORS, write_state
from ..outputs import staged
from ..stopping import StopOnSignal
from .delivery import Delivery
from .job import Evaluation, Outcome, Streams, status_of
from .on_beam import held_in, rows_of, show_models
from .page import report_on
from .summary import ProgressLine, remedy_of, summarise

_WAIT_SECONDS = 0.1
"""Seconds to wait for a single partition, before the next check whether the job was asked to end."""

_POLL_SECONDS = 0.01
"""Seconds between two reads of several partitions without new records."""

_SOURCE = "the live source"
"""The name of the table's gauges."""

_COUNTERS = RECORD_COUNTERS["event"]
_TELLING = 10
"""If all of the first so many records are dead letters, a warning is printed: an option is probably wrong."""

_KINDS = {
    "rows": ROWS,
    "dead letters": DEAD_LETTERS,
    "curves": CURVES,
    "pairs": PAIRS,
    "roll-ups": ROLL_UPS,
    "alerts": ALERTS,
}
"""The kinds of tables by `Output.content`."""

_Sinks = dict[str, list[TableSink]]
"""The sinks of a job by the kind of their batches, such as "rows"; see `Output.content`."""


class LiveEvaluation:
    """Evaluates the steps of readers, writes rows and dead letters to sinks at once, and counts them."""

    def __init__(self, job: Evaluation, sinks: _Sinks, delivery: Delivery) -> None:
        self._job = job
        self._sinks = sinks
        self._delivery = delivery
        self._letters = RejectedLetters(job.fields)
        tells = job.roll_ups is not None
        self._table = TableFactory(job.settings, job.begins_with is not None, tells).new(None, shard_key(0))
        self._pairs = None if job.pairs is None else PairTable(job.pairs.table(job.settings))
        self._fleet = None if job.roll_ups is None else FleetTable(job.roll_ups.settings)
        kinds: tuple[Kind, ...] = ("row", "roll-up row", "pair row")
        self._alerts, self._group_alerts, self._pair_alerts = (_alerts_of(job, kind) for kind in kinds)
        self._least, self._greatest = -NO_TIME, NO_TIME
        self._counts: Counter[str] = Counter()
        self._reasons: dict[tuple[str, str], tuple[int, int]] = {}
        self._told = False
        if job.begins_with is not None:
            state = taken_up(job.begins_with.read(EVALUATORS, 0).snapshot, job.settings)
            self._apply(StateImport(job.begins_with.id, state).pack())

    @property
    def read(self) -> int:
        """The number of records read."""
        return self._counts[_COUNTERS["read"]]

    def _tell_metrics(self) -> None:
        """Update this process's counters and gauges, for display while the job runs."""
        metrics.set_totals(self._counted() + self._delivery.counts())
        table = self._table
        metrics.hold(_SOURCE, {**table.gauges(), "state_bytes": table.snapshot_bytes()})

    def take_step(self, step: Step) -> None:
        """Evaluate one step of a partition's reader; there may be several readers."""
        if step.records:
            self._note_read(step)
        for key, packet in step.packets:
            if number_of(key):  # the shard that compares models
                self._compare(packet)
            else:
                self._apply(packet)
        if step.packets or step.records:
            self._tell_metrics()

    def _note_read(self, step: Step) -> None:
        """Count the records of a step, and write their dead letters."""
        self._counts[_COUNTERS["read"]] += step.records
        progress.add(records=step.records, dead_letters=len(step.letters))
        if len(step.letters):
            self._counts.update(_COUNTERS[kind] for kind, _, _ in step.letters.whys())
            self._put(step.letters)
            self._tell_if_none_is_valid()
        if step.times is not None:
            least, greatest = step.times
            self._least, self._greatest = min(self._least, least), max(self._greatest, greatest)
            metrics.note_times(least, greatest)

    def note_unread(self, partitions: int) -> None:
        """Note the number of partitions that the job does not read, if the number has grown."""
        if partitions > self._counts["unread_partitions"]:
            self._counts["unread_partitions"] = partitions
            self._tell_metrics()

    def tend(self) -> None:
        """Let every sink do its due work."""
        for sink in chain.from_iterable(self._sinks.values()):
            sink.tend()

    def _take(self, kind: str, batch: pa.RecordBatch) -> None:
        """Write a batch, and count its items."""
        if (counter := _KINDS[kind].counter) is not None:
            self._counts[counter] += _KINDS[kind].number(batch)
        for sink in self._sinks[kind]:
            sink.write(batch)

    def _take_records(self, kind: str, records: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        """Write records of a kind; return them in columns."""
        batch = in_columns(records, _KINDS[kind].schema)
        self._take(kind, batch)
        return batch

    def end(self) -> None:
        """Make the last rows: all partitions have ended."""
        self._apply(EndOfInput().pack())
        self._compare(EndOfInput().pack())
        self._tell_metrics()

    def outcome(self, seconds: float) -> Outcome:
        """Return the counters in the form of a job on Beam."""
        letters = [(*reason, number, first) for reason, (number, first) in self._reasons.items()]
        letters.sort(key=lambda letter: (-letter[2], letter[:2]))
        times = None
        if self._greatest != NO_TIME:
            times = self._least // 1_000_000, self._greatest // 1_000_000
        return Outcome(self._counted(), letters, times, seconds)

    def _counted(self) -> Counter[str]:
        counts = self._counts + Counter(self._table.counts())
        for table in (self._pairs, self._fleet, self._alerts, self._group_alerts, self._pair_alerts):
            if table is not None:
                counts += Counter(table.counts())
        return counts

    def _compare(self, record: bytes) -> None:
        """Give a record to the pairs of models, if any; late events are dead letters of the evaluators."""
        given = [] if self._pairs is None else self._pairs.apply(record)
        if rows := [row for row in given if isinstance(row, PairRow)]:
            self._take_records("pairs", rows)
            self._watch(self._pair_alerts, rows)

    def _apply(self, record: bytes) -> None:
        for given in self._table.apply(record):
            if isinstance(given, ShardState):
                write_state(given.pack(), given.folder, self._job.steps())
                continue
            if isinstance(given, Rejected):
                self._put(self._letters(given))
                continue
            if len(given):
                self._counts.update(held_in(given))
                self._take("rows", rows_to_arrow(given))
                metrics.see(given)
                self._watch(self._alerts, given)
            for curves in curve_batches(given):
                self._take("curves", curves)
            if self._fleet is not None:
                self._roll_up(self._fleet, given)

    def _roll_up(self, fleet: FleetTable, rows: Rows) -> None:
        """Roll up rows, and write and watch the roll-up rows of grid points that they close."""
        members = MemberRows.of_rows(rows, fleet.settings).on_a_grid()
        if rows.settled is not None:  # the one shard gives its rows in order
            members = replace(members, word=Settled(0, 1, NO_TIME, rows.settled[-1]))
        if found := fleet.receive(members):
            self._take_records("roll-ups", found)
            self._watch(self._group_alerts, found)

    def _watch(self, table: AlertTable | None, rows: SomeRows) -> None:
        """Apply alert rules to rows; alerts without a file are printed at once."""
        if table is None or not (alerts := table.watch(rows)):
            return
        batch = self._take_records("alerts", alerts)
        self._delivery.put(pa.Table.from_batches([batch]))
        if self._job.alerts is not None and self._job.alerts.path is None:
            for alert in alerts:
                say(alert.message)

    def _tell_if_none_is_valid(self) -> None:
        """Print the most frequent mistake, once, if all of the first records are dead letters."""
        read = self.read
        if not self._told and read >= _TELLING and read == self._counts[_COUNTERS["invalid"]]:
            self._told = True
            _, often = max(self._reasons, key=lambda reason: self._reasons[reason][0])
            say(f"none of the first {read:,} events can be applied: {remedy_of(often, self._job.fields)}")

    def _put(self, letters: DeadLetters) -> None:
        """Write dead letters, and count their reasons."""
        progress.note_refused(letters)
        self._take("dead letters", letters.batch)
        for kind, reason, position in letters.whys():
            number, first = self._reasons.get((kind, reason), (0, position))
            self._reasons[kind, reason] = number + 1, min(first, position)


def _alerts_of(job: Evaluation, kind: Kind) -> AlertTable | None:
    """Return the table of the rules on a kind of rows; None without such rules."""
    rules = () if job.alerts is None else job.alerts.rules_of(kind)
    return AlertTable(rules) if rules else None


def _opened(job: Evaluation, copies: Mapping[str, str]) -> _Sinks:
    """Open the sinks of a job, and files for further copies of the batches of a kind."""
    kinds = _KINDS | {"rows": rows_of(job.settings.evaluator)}
    sinks: _Sinks = {kind: [] for kind in kinds}
    for kind, path in (*((kind, path) for _, path, kind in job.outputs()), *copies.items()):
        if kind in kinds:
            sinks[kind].append(open_sink(path, kinds[kind], job.sinks))
    return sinks


def evaluate_live(job: Evaluation, streams: Streams, beside: Mapping[str, Sequence[TableSink]]) -> int:
    """Run a live job to its end and print its summary; return the exit status.

    beside  further sinks by the kind of their batches

    Raises RocsteadyError where the job fails. Files of lines then hold the rows made so far; other output
    files do not exist.
    """
    started = time.monotonic()
    with ProgressLine(
        enabled=_shows_progress(job)
    ):  # before signals only set a mark: they are to interrupt compilations
        for settings in job.shard_settings():
            warm_up(settings)
    recipients = () if job.alerts is None else job.alerts.recipients
    try:
        with StopOnSignal() as stop, Delivery(recipients) as delivery:
            outcome = _evaluated(job, streams, stop, delivery, started, beside)
            with suppress(KeyboardInterrupt):  # a second signal leaves calls out, and no rows
                delivery.finish(lambda: stop.signal is not None)
            delivery.give_up()
            outcome = replace(outcome, counts=outcome.counts + delivery.counts())
    except KeyboardInterrupt:
        say("interrupted; the last rows are missing, and files that are written at the end")
        return 130
    summarise(outcome, job)
    of_files = (Reason.FILE_UNREADABLE, Reason.FILE_CHANGED)
    unread = sum(number for _, reason, number, _ in outcome.letters if reason in of_files)
    return status_of(outcome.counts, job.fail_if, unread=unread)


def _shows_progress(job: Evaluation) -> bool:
    return sys.stderr.isatty() and not (job.output == STDOUT and sys.stdout.isatty())


def _evaluated(
    job: Evaluation,
    streams: Streams,
    stop: StopOnSignal,
    delivery: Delivery,
    started: float,
    beside: Mapping[str, Sequence[TableSink]],
) -> Outcome:
    """Evaluate the streams to their end, and write the outputs; `started` is the job's start, monotonic."""
    at_end = [path for _, path, _ in job.outputs() if not is_appendable(path) and not is_streamed(path)]
    with staged(at_end, True) as places, temporary_folder() as folder, ExitStack() as closing:
        hidden = job.placed(dict(zip(at_end, places, strict=True)))
        kinds = ("rows", "curves", "alerts", "roll-ups", "pairs")
        copies = {kind: str(Path(folder) / f"{kind}.parquet") for kind in kinds}
        sinks = _opened(hidden, copies if job.report is not None or job.output is None else {})
        for kind, more in beside.items():
            sinks[kind] += more
        for sink in chain.from_iterable(sinks.values()):
            closing.callback(sink.close)
        with ProgressLine(enabled=_shows_progress(job)):
            live = LiveEvaluation(job, sinks, delivery)
            _drive(live, streams.cut_off(job.cut()), job.reading_shards, stop)
            for sink in chain.from_iterable(sinks.values()):
                sink.finish()
        outcome = live.outcome(time.monotonic() - started)
        drawn = job.settings.evaluator.curves is not None
        curves = copies["curves"] if drawn else None
        told = outcome
        if job.alerts is not None and job.report is not None:  # those without a file were said as they came
            told = replace(outcome, alerts=pa.parquet.read_table(copies["alerts"]))
        roll_ups = hidden.roll_ups
        if roll_ups is not None and roll_ups.path is not None:
            roll_ups = replace(roll_ups, path=copies["roll-ups"])
        pairs = hidden.pairs and replace(hidden.pairs, path=copies["pairs"])
        copied = replace(hidden, output=copies["rows"], curves=curves, roll_ups=roll_ups, pairs=pairs)
        report_on(copied, told)
        if job.output is None:
            show_models(job, outcome, copies["rows"])
    return outcome


def _drive(live: LiveEvaluation, streams: Streams, shards: int, stop: StopOnSignal) -> None:
    """Read the partitions in step by their times, so that few records have to wait in memory."""
    readers = [StreamReader(source, shards) for source in streams.inputs]
    wait = _WAIT_SECONDS if len(readers) == 1 else 0.0
    asked = False
    try:
        while not asked and not all(reader.ended for reader in readers):
            came = False
            for reader in sorted(readers, key=lambda reader: reader.settled):
                step = reader.step(wait=wait)
                live.take_step(step)
                if came := bool(step.records):
                    break
            live.note_unread(sum(reader.source.partition.unread_partitions() for reader in readers))
            live.tend()
            if not came and not wait:
                time.sleep(_POLL_SECONDS)
            asked = stop.is_asked("the input ends here; once more, and the job ends without its last rows")
        for reader in readers:
            for step in reader.finish():
                live.take_step(step)
                live.tend()
        live.end()
    except InputError as error:
        if live.read:  # the job had begun
            raise RocsteadyError(str(error)) from None
        raise
    finally:
        for reader in readers:
            reader.source.partition.close()
