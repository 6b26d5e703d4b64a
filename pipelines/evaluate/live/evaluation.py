"""Evaluates the packets of stream readers in this process, with the same table as on Beam."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa

from ....core.alerts.table import AlertTable
from ....core.events.reasons import Reason
from ....core.events.records import EndOfInput, StateImport
from ....core.events.rejected import Rejected
from ....core.events.times import NO_TIME
from ....core.ids.sharding import shard_key
from ....core.process.console import say
from ....core.rows.arrow import rows_to_arrow
from ....core.rows.rows import Rows
from ....core.state.exported import ShardState
from ....core.state.take_up import taken_up
from ....transforms.beam import metrics, progress
from ....transforms.beam.metrics import RECORD_COUNTERS
from ....transforms.evaluate.shards import TableFactory
from ....transforms.events.dead_letters import DeadLetters
from ....transforms.events.rejected import RejectedLetters
from ....transforms.sinks.alerts import alerts_to_arrow
from ....transforms.sinks.curves import curve_batches
from ....transforms.sources.streams.reader import Step
from ....transforms.state.folder import EVALUATORS, write_state
from ..job import Evaluation, Outcome
from ..row_columns import held_in
from ..summary import remedy_of

_SOURCE = "the live source"
"""The name of the table's gauges."""

_COUNTERS = RECORD_COUNTERS["event"]
_TELLING = 10
"""If all of the first so many records are dead letters, a warning is printed: an option is probably wrong."""


Take = Callable[[str, pa.RecordBatch], None]
"""Takes record batches of a kind: "rows", "dead letters", "curves" or "alerts"."""


class LiveEvaluation:
    """Evaluates the steps of readers, passes rows and dead letters to `take` at once, and counts them."""

    def __init__(self, job: Evaluation, take: Take) -> None:
        self._job = job
        self._take = take
        self._letters = RejectedLetters(job.fields)
        self._table = TableFactory(job.settings, job.begins_with is not None).new(None, shard_key(0))
        self._alerts = None if job.alerts is None else AlertTable(job.alerts.rules)
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
        metrics.set_totals(self._counted())
        table = self._table
        metrics.hold(_SOURCE, {**table.gauges(), "state_bytes": table.snapshot_bytes()})

    def take_step(self, step: Step) -> None:
        """Evaluate one step of a partition's reader; there may be several readers."""
        if step.records:
            self._note_read(step.records, step.letters, step.times)
        for _, packet in step.packets:
            self._apply(packet)
        if step.packets or step.records:
            self._tell_metrics()

    def _note_read(self, records: int, dead: DeadLetters, times: tuple[int, int] | None) -> None:
        """Count records, and write their dead letters."""
        self._counts[_COUNTERS["read"]] += records
        progress.add(records=records, dead_letters=len(dead))
        if len(dead):
            self._note(dead)
            self._take("dead letters", dead.batch)
        if times is not None:
            self._least, self._greatest = min(self._least, times[0]), max(self._greatest, times[1])
            metrics.note_times(*times)

    @property
    def unread(self) -> int:
        """The number of dead letters for files that could not be read, or that changed."""
        whys = (Reason.FILE_UNREADABLE, Reason.FILE_CHANGED)
        return sum(self._reasons.get(("invalid", why), (0, 0))[0] for why in whys)

    def note_unread(self, partitions: int) -> None:
        """Note the number of partitions that the job does not read, if the number has grown."""
        if partitions > self._counts["unread_partitions"]:
            self._counts["unread_partitions"] = partitions
            self._tell_metrics()

    def end(self) -> None:
        """Make the last rows: all partitions have ended."""
        self._apply(EndOfInput().pack())
        self._tell_metrics()

    def outcome(self, seconds: float) -> Outcome:
        """Return the counters in the form of a job on Beam."""
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

    def _apply(self, record: bytes) -> None:
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
        """Apply the alert rules to rows; alerts without a file are printed at once."""
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
