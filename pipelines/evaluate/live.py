"""`rocsteady evaluate -` and `--follow`: events evaluated as they come, rows written as they fall due.

No runner that works without a server streams well, so a live job is this process: its source is one
partition, validated and evaluated by what evaluates it on Beam, in one table. Rows are those of a file with
the same records in the same order.

Ctrl-C, or SIGTERM, ends the input: what had come by then is evaluated, the last rows are made, and the exit
status is 0. So `tail -f events | rocsteady evaluate -` ends in the same way whether `tail` dies of it before
or after.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from ...core.alerts.table import AlertTable
from ...core.errors import ConfigError, InputError, RocsteadyError
from ...core.events.batch import EventBatch
from ...core.events.records import EndOfInput, StateImport
from ...core.events.rejected import Rejected
from ...core.events.times import NO_TIME
from ...core.ids.sharding import shard_key
from ...core.process.console import say
from ...core.process.temporary_folders import temporary_folder
from ...core.rows.arrow import rows_to_arrow
from ...core.rows.rows import Rows
from ...core.settings.durations import microseconds
from ...core.state.export import ShardState
from ...core.state.take_up import taken_up
from ...core.table.table import warm_up
from ...transforms.beam import metrics, progress
from ...transforms.beam.metrics import RECORD_COUNTERS
from ...transforms.evaluate.shards import TableFactory
from ...transforms.events import time_doubts
from ...transforms.events.dead_letters import DeadLetters
from ...transforms.events.fields import EventFields
from ...transforms.events.rejected import RejectedLetters
from ...transforms.events.time_doubts import tell_ahead
from ...transforms.events.validate import time_span, validate_as
from ...transforms.files.formats import has_scheme
from ...transforms.sinks.alerts import alerts_to_arrow
from ...transforms.sinks.append import STDOUT, TableSink, is_appendable
from ...transforms.sinks.curves import curve_batches
from ...transforms.sinks.kinds import ALERTS, CURVES, DEAD_LETTERS, ROWS
from ...transforms.sinks.open import is_streamed, open_sink
from ...transforms.sinks.parts import is_folder
from ...transforms.sinks.sorted import row_schema
from ...transforms.sources.files.packets import Cut, Packets
from ...transforms.sources.files.partition import with_packet
from ...transforms.sources.streams.live_readers import Arrived, FolderReader, LiveReader, PipeReader
from ...transforms.sources.streams.reader import Step, StreamReader
from ...transforms.state.control import ControlFile
from ...transforms.state.folder import EVALUATORS, write_state
from ..outputs import staged
from ..stopping import StopOnSignal
from .exit_status import status_of
from .job import Evaluation, Outcome, Streams
from .on_beam import report_on
from .row_columns import held_in
from .summary import ProgressLine, remedy_of, summarise, warnings_of

STDIN = "-"

_WAIT_SECONDS = 0.1
"""How long a source is waited for until it is looked whether somebody wants the job to end."""

_POLL_SECONDS = 0.01
"""Between two looks at topics in which nothing is new."""

_ALL = "the live source"
"""The name of the one partition, as the table hears it."""

_COUNTERS = RECORD_COUNTERS["event"]
_TELLING = 10
"""Records after which it is said that all of them were dead letters: an option names a wrong column."""


@dataclass(frozen=True)
class LiveSource:
    """What a live job reads that has no streams: a folder, up to a silence of `idle` seconds, or stdin.

    control  a file by which its state can be asked for
    """

    folder: str | None = None
    idle: float | None = None
    control: str | None = None

    def open(self, fields: EventFields) -> LiveReader:
        """Return its reader, where it is no topic."""
        if self.folder is not None:
            return FolderReader(self.folder, fields, self.idle)
        return PipeReader(_stdin(), fields)


_FOLLOWING = ("flink", "prism", "FlinkRunner", "PrismRunner", "PortableRunner")
"""Runners that can follow a folder: they stream, and their workers may see it."""


def live_source(options: argparse.Namespace, beam_flags: Sequence[str]) -> LiveSource | None:
    """Return the source that the options of `evaluate` name, None where they name files.

    A folder may be followed on a runner that streams, too.

    Raises ConfigError, or InputError, where it cannot be read live, or not with the other options.
    """
    folder = options.sources[0]
    if not options.follow:
        if options.until_idle is not None:
            raise ConfigError(
                f"--until-idle {options.until_idle}: a folder is waited for; say --follow, or leave it out"
            )
        if STDIN not in options.sources:
            if options.control is not None:
                raise ConfigError(
                    f"--control {options.control}: files come to an end, and --export-state writes the state "
                    "there; it is for streams"
                )
            return None
    what = "--follow" if options.follow else f"SOURCE {STDIN}"
    if options.labels:
        raise ConfigError(
            f"--labels {' '.join(options.labels)}: labels are joined to predictions in files, or in Beam by "
            f"JoinLabels, and not with {what} in this version; join before, or leave it out"
        )
    if len(options.sources) > 1:
        raise ConfigError(
            f"{what} takes one source, and {len(options.sources)} are given; put them together before, "
            "as with cat old.jsonl - | rocsteady evaluate -"
        )
    elsewhere = options.follow and options.runner in _FOLLOWING
    if (options.runner != "local" or beam_flags) and not elsewhere:
        said = beam_flags[0] if options.runner == "local" else f"--runner {options.runner}"
        raise ConfigError(f"{said}: {what} is evaluated in this process, without Beam; leave it out")
    if not options.follow:
        _stdin()
        return LiveSource(control=options.control)
    if folder == STDIN:
        raise ConfigError(
            f"--follow is for a folder, and SOURCE {STDIN} is followed without it; leave it out"
        )
    if not Path(folder).is_dir():
        why = "is not a folder" if Path(folder).exists() else "does not exist; create it"
        raise InputError(f"--follow: {folder} {why}")
    idle = None
    if options.until_idle is not None:
        if elsewhere:
            raise ConfigError(
                f"--until-idle {options.until_idle}: on runner {options.runner} a folder is complete when it "
                "has a file _END; leave it out"
            )
        idle = microseconds(options.until_idle, "--until-idle") / 1e6
    return LiveSource(folder, idle, control=options.control)


def _stdin() -> int:
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        raise ConfigError(f"SOURCE {STDIN}: there is no stdin here; name files") from None


def evaluate_live(job: Evaluation, source: LiveSource) -> int:
    """Run a live job to its end and say what became of it; return the exit status.

    Raises RocsteadyError where it fails. Files of lines then hold the rows up to there, others are not there.
    """
    _refuse_overlap(job, source)
    started = time.monotonic()
    visible = sys.stderr.isatty() and not (job.output == STDOUT and sys.stdout.isatty())
    try:
        with StopOnSignal() as stop, _outputs(job) as outputs:
            with ProgressLine(enabled=visible):
                warm_up(job.settings)
                live = LiveEvaluation(job, outputs.take)
                if job.streams is not None:
                    _drive_streams(live, job, job.streams, stop, outputs.tend)
                    unread = 0
                else:
                    reader = source.open(job.fields)
                    if source.folder is None and sys.stdin.isatty():
                        say("JSON lines are read from the terminal, up to Ctrl-D")
                    control = None if source.control is None else ControlFile(source.control)
                    _drive(live, reader, stop, outputs.tend, control)
                    unread = reader.unread
                outputs.finish()
            outcome = live.outcome(time.monotonic() - started)
            outputs.report(outcome)
    except KeyboardInterrupt:
        say("interrupted; the last rows are missing, and files that are written at the end")
        return 130
    summarise(outcome, job)
    if unread:
        what = "1 file, or a part of one," if unread == 1 else f"{unread} files, or parts of them,"
        say(f"{what} could not be read: see the dead letters")
    status = status_of(outcome.counts, job.fail_if)
    return 1 if unread else status


def on_a_stream(job: Evaluation) -> Evaluation:
    """Return the job in one shard, with an order that a stream can have: it is never sorted as a whole."""
    return in_order_of_a_stream(replace(job, settings=replace(job.settings, shards=1)))


def in_order_of_a_stream(job: Evaluation) -> Evaluation:
    """Return the job with an order that a stream can have."""
    evaluator = job.settings.evaluator
    if evaluator.order != "time":
        return job
    settings = replace(job.settings, evaluator=replace(evaluator, order="time:0s"))
    return replace(job, settings=settings, timing=replace(job.timing, lateness=0))


def _drive(
    live: LiveEvaluation,
    reader: LiveReader,
    stop: StopOnSignal,
    tend: Callable[[], None],
    control: ControlFile | None,
) -> None:
    try:
        while (arrived := reader.next(_WAIT_SECONDS)) is not None:
            for each in arrived:
                live.take_in(each)
            tend()
            if control is not None:
                live.look_at(control)
            if stop.is_asked("the input ends here; once more, and the job ends without its last rows"):
                reader.stop()
        live.finish()
    except InputError as error:
        if live.read:  # the job had begun
            raise RocsteadyError(str(error)) from None
        raise


def _drive_streams(
    live: LiveEvaluation, job: Evaluation, streams: Streams, stop: StopOnSignal, tend: Callable[[], None]
) -> None:
    """Read the partitions as far as each other, by their times: so little has to wait in memory."""
    readers = [StreamReader(source, 1) for source in streams.inputs]
    asked = False
    try:
        while not asked and not all(reader.ended for reader in readers):
            came = False
            for reader in sorted(readers, key=lambda reader: reader.settled):
                step = reader.step()
                live.take_step(step)
                if came := bool(step.records):
                    break
            live.note_unread(sum(reader.source.partition.unread_partitions() for reader in readers))
            tend()
            if not came:
                time.sleep(_POLL_SECONDS)
            asked = stop.is_asked("the input ends here; once more, and the job ends without its last rows")
        cut = job.cut()
        for reader in readers:
            live.take_step(reader.finish(cut))
        live.end()
    finally:
        for reader in readers:
            reader.source.partition.close()


def refuse_outputs_in(folder: str, job: Evaluation) -> None:
    """Raise InputError where what is written would be read again: it is in the folder that is followed."""
    for option, path in _tables_here(job):
        into = path if is_folder(path) else Path(path).parent
        if os.path.realpath(into) == os.path.realpath(folder):
            raise InputError(f"{option} {path} is in the folder that is followed; write elsewhere")


def _tables_here(job: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield option and path of the tables that are written to files or folders of this machine."""
    for option, path, content in job.outputs():
        if content != "report" and path != STDOUT and not has_scheme(path):
            yield option, path


def _refuse_overlap(job: Evaluation, source: LiveSource) -> None:
    """Raise InputError where what is written would be read again."""
    if job.streams is not None:
        return
    if source.folder is not None:
        refuse_outputs_in(source.folder, job)
        return
    found = os.fstat(_stdin())
    if not stat.S_ISREG(found.st_mode):
        return
    for option, path in _tables_here(job):
        if Path(path).exists() and os.path.samestat(found, Path(path).stat()):
            raise InputError(f"{option} {path} is also the input; write to another file")


Take = Callable[[str, pa.RecordBatch], None]
"""Takes record batches of a kind: "rows", "dead letters", "curves" or "alerts"."""


class LiveEvaluation:
    """Validates and evaluates what arrives, gives what comes of it to `take` at once, and counts."""

    def __init__(self, job: Evaluation, take: Take) -> None:
        self._job = job
        self._take = take
        self._letters = RejectedLetters(job.fields)
        self._table = TableFactory(job.settings, job.begins_with is not None).new(None, shard_key(0))
        self._alerts = None if job.alerts is None else AlertTable(job.alerts.rules)
        self._packets = Packets(_ALL, 0, 1, 1)
        self._timing = job.timing
        self._least, self._greatest = -NO_TIME, NO_TIME
        self._counts: Counter[str] = Counter()
        self._reasons: dict[tuple[str, str], tuple[int, int]] = {}
        self._settled = NO_TIME
        self._told = False
        self._asked = ""
        if job.begins_with is not None:
            state = taken_up(job.begins_with.read(EVALUATORS, 0).snapshot, job.settings)
            self._apply_record(StateImport(job.begins_with.id, state).pack())

    @property
    def read(self) -> int:
        """How many records there were."""
        return self._counts[_COUNTERS["read"]]

    def take_in(self, arrived: Arrived) -> None:
        """Evaluate some records."""
        chunk = arrived.chunk
        self._timing = timing = replace(self._timing, now=time.time_ns() // 1_000)
        located = self._job.settings.deduplicate is not None
        events, letters = validate_as(
            "event", chunk, arrived.fields, arrived.source, arrived.partition, timing, located
        )
        if timing.ahead is None:
            tell_ahead(
                arrived.source, chunk, events, arrived.fields, timing.high_water, timing.lateness, timing.now
            )
        self._timing = timing.after(events)
        self._note_read(chunk.records, DeadLetters.concat([chunk.dead, letters]), time_span(events))
        if isinstance(events, EventBatch) and events.positions is not None:
            events = replace(events, sources=events.event_sources())
        packet = with_packet(events, source=_ALL, high_water=self._timing.high_water)
        self._apply(self._packets.split(packet))
        self._let_time_go_on()
        self._tell_metrics()

    def _tell_metrics(self) -> None:
        """Say what is counted and held, to whoever looks while the job runs."""
        metrics.set_totals(self._counted())
        table = self._table
        metrics.hold(_ALL, {**table.gauges(), "state_bytes": table.snapshot_bytes()})

    def _let_time_go_on(self) -> None:
        """Tell the table how far the source is settled, where events wait for that."""
        lateness, high_water = self._timing.lateness, self._timing.high_water
        if lateness is not None and high_water != NO_TIME and high_water - lateness > self._settled:
            self._settled = high_water - lateness
            self._apply(self._packets.heartbeats(self._settled, high_water))

    def take_step(self, step: Step) -> None:
        """Evaluate what a reader of a partition gave; there may be several readers."""
        if step.records:
            self._note_read(step.records, step.letters, step.times)
        self._apply(step.packets)
        if step.packets:
            self._tell_metrics()

    def _note_read(self, records: int, dead: DeadLetters, times: tuple[int, int] | None) -> None:
        """Count records, and give the dead letters among them."""
        self._counts[_COUNTERS["read"]] += records
        progress.add(records=records, dead_letters=len(dead))
        if len(dead):
            self._note(dead)
            self._take("dead letters", dead.batch.sort_by("position"))
        if times is not None:
            self._least, self._greatest = min(self._least, times[0]), max(self._greatest, times[1])
            metrics.note_times(*times)

    def note_unread(self, partitions: int) -> None:
        """Note how many partitions there are that nobody reads, where they became more."""
        if partitions > self._counts["unread_partitions"]:
            self._counts["unread_partitions"] = partitions
            self._tell_metrics()

    def finish(self) -> None:
        """Make the last rows: the source has ended. Or leave the state instead, where that is asked for."""
        if (cut := self._job.cut()) is not None:
            self._cut(cut)
            return
        self._apply(self._packets.ends(self._timing.high_water))
        self.end()

    def end(self) -> None:
        """Make the last rows: all partitions have ended."""
        self._apply_record(EndOfInput().pack())
        self._tell_metrics()

    def look_at(self, control: ControlFile) -> None:
        """Write the state where somebody asks for it, and go on."""
        if (request := control.request(self._asked)) is not None:
            self._asked = request.id
            self._cut(Cut(request.id, request.folder, stops=False))

    def _cut(self, cut: Cut) -> None:
        position = {"records": self.read}
        self._apply(self._packets.markers(cut, position, self._settled, self._timing.high_water))

    def outcome(self, seconds: float) -> Outcome:
        """Return what was counted, as a job on Beam counts it."""
        reasons = [(*reason, number, first) for reason, (number, first) in self._reasons.items()]
        times = None
        if self._greatest != NO_TIME:
            times = self._least // 1_000_000, self._greatest // 1_000_000
        return Outcome(
            self._counted(),
            sorted(reasons, key=lambda reason: (-reason[2], reason[:2])),
            times,
            seconds,
        )

    def _counted(self) -> Counter[str]:
        counts = self._counts + Counter(self._table.counts())
        return counts if self._alerts is None else counts + Counter(self._alerts.counts())

    def _apply(self, packets: Iterable[tuple[str, bytes]]) -> None:
        for _, packet in packets:
            self._apply_record(packet)

    def _apply_record(self, record: bytes) -> None:
        for given in self._table.apply(record):
            if isinstance(given, ShardState):
                write_state(given.pack(), given.folder, self._job.steps())
                continue
            if isinstance(given, Rejected):
                letters = self._letters(given)
                self._note_reasons(letters)
                self._take("dead letters", letters.batch)
                continue
            if len(given):
                self._counts["rows_written"] += len(given)
                self._counts.update(held_in(given))
                self._take("rows", rows_to_arrow(given))
                metrics.see(given)
                self._watch(given)
            self._counts["curves_written"] += len(given.curves)
            for curves in curve_batches(given):
                self._take("curves", curves)

    def _watch(self, rows: Rows) -> None:
        """Let the rules watch rows; what has no file is said at once."""
        if self._alerts is None or not (alerts := self._alerts.watch(rows)):
            return
        self._take("alerts", alerts_to_arrow(alerts))
        if self._job.alerts is not None and self._job.alerts.path is None:
            for alert in alerts:
                say(alert.message)

    def _note(self, dead: DeadLetters) -> None:
        self._counts.update(_COUNTERS[kind] for kind, _, _ in dead.whys())
        self._note_reasons(dead)
        read = self.read
        if not self._told and read >= _TELLING and read == self._counts[_COUNTERS["invalid"]]:
            self._told = True
            _, often = max(self._reasons, key=lambda reason: self._reasons[reason][0])
            say(f"none of the first {read:,} events can be applied: {remedy_of(often, self._job.fields)}")

    def _note_reasons(self, letters: DeadLetters) -> None:
        for kind, reason, position in letters.whys():
            number, first = self._reasons.get((kind, reason), (0, position))
            self._reasons[kind, reason] = number + 1, min(first, position)


class _Outputs:
    """The sinks of a job, by what they take; its report is made of files of their own."""

    def __init__(self, job: Evaluation, place_of: dict[str, str], folder: str) -> None:
        self._job = job
        self._report = place_of.get(job.report or "")
        kinds = {
            "rows": ROWS._replace(schema=row_schema(job.settings.evaluator)),
            "dead letters": DEAD_LETTERS,
            "curves": CURVES,
            "alerts": ALERTS,
        }
        self._sinks: dict[str, list[TableSink]] = {name: [] for name in kinds}
        for _, path, kind in job.outputs():
            if kind in kinds:
                self._sinks[kind].append(open_sink(place_of.get(path, path), kinds[kind], job.sinks))
        self._copies = {kind: str(Path(folder) / f"{kind}.parquet") for kind in ("rows", "curves")}
        if self._report is not None:
            for kind, path in self._copies.items():
                self._sinks[kind].append(open_sink(path, kinds[kind], job.sinks))

    def take(self, kind: str, batch: pa.RecordBatch) -> None:
        """Write rows of a kind."""
        for sink in self._sinks[kind]:
            sink.write(batch)

    def tend(self) -> None:
        """See to what is due."""
        for sinks in self._sinks.values():
            for sink in sinks:
                sink.tend()

    def finish(self) -> None:
        """Write what is written at the end."""
        for sinks in self._sinks.values():
            for sink in sinks:
                sink.finish()

    def close(self) -> None:
        """Give up what is open."""
        for sinks in self._sinks.values():
            for sink in sinks:
                sink.close()

    def report(self, outcome: Outcome) -> None:
        """Write the report, if one is asked for."""
        if self._report is not None:
            drawn = self._job.settings.evaluator.curves is not None
            copies = replace(
                self._job, output=self._copies["rows"], curves=self._copies["curves"] if drawn else None
            )
            warnings = [*time_doubts.told(), *warnings_of(outcome, self._job)]
            report_on(copies, outcome, self._report, warnings)


@contextmanager
def _outputs(job: Evaluation) -> Iterator[_Outputs]:
    """Yield the sinks of a job; what is written at the end is there if the block succeeds."""
    whole = [path for _, path, _ in job.outputs() if not is_appendable(path) and not is_streamed(path)]
    with staged(whole, True) as places, temporary_folder() as folder:
        outputs = _Outputs(job, dict(zip(whole, places, strict=True)), folder)
        try:
            yield outputs
        finally:
            outputs.close()
