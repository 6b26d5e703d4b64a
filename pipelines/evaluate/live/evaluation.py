"""The evaluation of a live job: it takes records, writes rows to the sinks at once, and counts both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from ....core.alerts.alert_rows import SomeRows
from ....core.alerts.table import AlertTable
from ....core.encoding.json import reading
from ....core.events.records import EndOfInput
from ....core.events.rejected import Rejected
from ....core.events.times import NO_TIME
from ....core.fleet.members import MemberRows, Settled
from ....core.fleet.table import FleetTable
from ....core.ids.sharding import number_of, shard_key
from ....core.process.console import say
from ....core.rows.arrow import rows_to_arrow
from ....core.rows.pairs import PairRow
from ....core.rows.rows import Rows
from ....core.state.exported import ShardState
from ....transforms.beam import metrics, progress
from ....transforms.events.dead_letters import DeadLetters, RejectedLetters, in_columns
from ....transforms.events.fields import RECORD_COUNTERS, Role
from ....transforms.events.losses import LossRole, losses, role_of
from ....transforms.sinks.kinds import (
    ALERTS,
    CURVES,
    DEAD_LETTERS,
    PAIRS,
    ROLL_UPS,
    ROWS,
    TableKind,
    TableSink,
    curve_batches,
)
from ....transforms.sources.streams.reader import Step
from ....transforms.state.folder import write_state
from ....transforms.state.write import brought_state
from ..delivery import Delivery
from ..job import Evaluation, Outcome
from ..losses import running_text
from ..on_beam import held_in, rows_of
from .machines import LiveMachines, adds_anew

_SOURCE = "the live source"
"""The step that the gauges of the evaluators' table name."""

_TELLING = 10
"""If all of the first so many records are dead letters, a warning is printed: an option is probably wrong."""

KINDS = {
    "rows": ROWS,
    "dead letters": DEAD_LETTERS,
    "curves": CURVES,
    "pairs": PAIRS,
    "roll-ups": ROLL_UPS,
    "alerts": ALERTS,
}
"""The kinds of tables by `Output.content`; `kinds_of` has the columns of a job's rows."""


def kinds_of(job: Evaluation) -> dict[str, TableKind]:
    """Return the kinds of a job's tables by `Output.content`."""
    return KINDS | {"rows": rows_of(job.settings.evaluator, job.settings.classes)}


Sinks = dict[str, list[TableSink]]
"""The sinks of a job by the kind of their batches, such as "rows"; see `Output.content`."""


class LiveEvaluation:
    """Evaluates the steps of readers, writes rows and dead letters to sinks at once, and counts both.

    begun  the machines of an earlier process, and what that process had `counted`; None if the job begins
    """

    def __init__(
        self,
        job: Evaluation,
        sinks: Sinks,
        delivery: Delivery,
        begun: tuple[LiveMachines, Mapping[str, Any]] | None = None,
    ) -> None:
        self._job = job
        self._kinds = kinds_of(job)
        self._sinks = sinks
        self._delivery = delivery
        label_time = None if job.join is None else job.join.label_time
        self._letters = RejectedLetters(job.fields, label_time)
        self._machines = LiveMachines.of(job)
        self._least, self._greatest = -NO_TIME, NO_TIME
        self._counts: Counter[str] = Counter()
        self._reasons: dict[tuple[str, str], tuple[int, int]] = {}
        self._told: set[tuple[str, str]] = set()
        if begun is not None:
            self._go_on_from(*begun)
        elif job.begins_with is not None:
            key = shard_key(0)
            if job.join is not None:
                self._join(brought_state(job.begins_with, job.join.settings, key))
            self._apply(brought_state(job.begins_with, job.settings, key))

    @property
    def read(self) -> int:
        """The number of records read."""
        return self._counts["events_read"] + self._counts["labels_read"]

    def _tell_metrics(self) -> None:
        """Update this process's counters and gauges, for display while the job runs; warn of losses."""
        letters = {why: number for why, (number, _) in self._reasons.items()}
        counts = self._counted()
        metrics.set_totals(counts + self._delivery.counts(), letters)
        metrics.hold(_SOURCE, shard_key(0), self._machines.gauges())
        self._tell_of_losses(counts)

    def take_step(self, step: Step, role: Role) -> None:
        """Evaluate one step of a reader; the records of its partition have this role."""
        if step.records:
            self._note_read(step, role)
        for key, packet in step.packets:
            if self._machines.join is None:
                self._send(key, packet)
            else:
                self._join(packet)
        if step.packets or step.records:
            self._tell_metrics()

    def _note_read(self, step: Step, role: Role) -> None:
        """Count the records of a step, and write their dead letters."""
        counters = RECORD_COUNTERS[role]
        self._counts[counters["read"]] += step.records
        progress.add(records=step.records, dead_letters=len(step.letters))
        if len(step.letters):
            self._counts.update(counters[kind] for kind, _, _ in step.letters.whys())
            self._put(step.letters, "label" if role == "label" else "event")
        if step.times is not None:
            least, greatest = step.times
            self._least, self._greatest = min(self._least, least), max(self._greatest, greatest)
            metrics.note_times(least, greatest, role)

    def note_added(self, partitions: int) -> None:
        """Store the number of partitions that were added while the job runs, if the number has grown."""
        if partitions > self._counts["added_partitions"]:
            self._counts["added_partitions"] = partitions
            self._tell_metrics()

    def tend(self) -> None:
        """Let every sink do the work that is due."""
        for sink in chain.from_iterable(self._sinks.values()):
            sink.tend()

    def _take(self, kind: str, batch: pa.RecordBatch) -> None:
        """Write a batch of a kind, and count its items."""
        if (counter := self._kinds[kind].counter) is not None:
            self._counts[counter] += self._kinds[kind].number(batch)
        for sink in self._sinks[kind]:
            sink.write(batch)

    def _take_records(self, kind: str, records: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        """Write records of a kind; return them in columns."""
        batch = in_columns(records, self._kinds[kind].schema)
        self._take(kind, batch)
        return batch

    def end(self) -> None:
        """Make the last rows, because all partitions have ended."""
        self._join(EndOfInput().pack())
        self._apply(EndOfInput().pack())
        self._compare(EndOfInput().pack())
        self._tell_metrics()

    def outcome(self) -> Outcome:
        """Return the counters in the form that a job on Beam has."""
        letters = [(*reason, number, first) for reason, (number, first) in self._reasons.items()]
        letters.sort(key=lambda letter: (-letter[2], letter[:2]))
        times = None
        if self._greatest != NO_TIME:
            times = self._least // 1_000_000, self._greatest // 1_000_000
        return Outcome(self._counted(), letters, times)

    def _counted(self) -> Counter[str]:
        return self._counts + self._machines.counts()

    # ---- checkpoints

    def _go_on_from(self, machines: LiveMachines, counted: Mapping[str, Any]) -> None:
        """Continue with the machines and counts of an earlier process."""
        self._machines = machines
        with reading("the counts of a checkpoint"):
            self._counts = Counter(counted["counts"])
            self._reasons = {(kind, reason): (number, at) for kind, reason, number, at in counted["reasons"]}
            self._least, self._greatest = counted["times"]
            self._delivery.go_on_with(counted["calls"])
        self._tell_metrics()

    def counted(self) -> dict[str, Any]:
        """Return the counts so far, and the calls for alerts that wait, as JSON values."""
        return {
            "counts": self._counted(),
            "reasons": [[*reason, *number] for reason, number in self._reasons.items()],
            "times": [self._least, self._greatest],
            "calls": self._delivery.waiting(),
        }

    def cut(self) -> dict[str, bytes]:
        """Return the snapshots of all machines; all rows up to them are then in their outputs."""
        for sink in chain.from_iterable(self._sinks.values()):
            sink.settle()
        snapshots = self._machines.snapshots()
        if adds_anew(self._job):
            self._counts = self._counted()
            self._machines = LiveMachines.of(self._job, snapshots)
        return snapshots

    # ---- records

    def _join(self, record: bytes) -> None:
        """Give a record to the join, if there is one, and its joined events to the evaluators."""
        join = self._machines.join
        for given in () if join is None else join.apply(record):
            if isinstance(given, ShardState):
                write_state(given.pack(), given.folder, self._job.steps())
            elif isinstance(given, Rejected):
                self._put(self._letters(given), role_of(given))
            else:
                self._send(*given)

    def _send(self, key: str, record: bytes) -> None:
        """Give a record to the shard of a key."""
        if number_of(key):  # this is the shard that compares models
            self._compare(record)
        else:
            self._apply(record)

    def _compare(self, record: bytes) -> None:
        """Give a record to the pairs of models, if there are any.

        Late events are dead letters of the evaluators.
        """
        pairs = self._machines.pairs
        given = [] if pairs is None else pairs.apply(record)
        if rows := [row for row in given if isinstance(row, PairRow)]:
            self._take_records("pairs", rows)
            self._watch(self._machines.pair_alerts, rows)

    def _apply(self, record: bytes) -> None:
        for given in self._machines.table.apply(record):
            if isinstance(given, ShardState):
                write_state(given.pack(), given.folder, self._job.steps())
                continue
            if isinstance(given, Rejected):
                self._put(self._letters(given), role_of(given))
                continue
            if len(given):
                self._counts.update(held_in(given))
                self._take("rows", rows_to_arrow(given))
                metrics.see(given)
                self._watch(self._machines.alerts, given)
            for curves in curve_batches(given):
                self._take("curves", curves)
            if self._machines.fleet is not None:
                self._roll_up(self._machines.fleet, given)

    def _roll_up(self, fleet: FleetTable, rows: Rows) -> None:
        """Roll up rows; write and watch the roll-up rows of the grid points that are then closed."""
        members = MemberRows.of_rows(rows, fleet.settings).on_a_grid()
        if rows.settled is not None:  # the one shard gives its rows in order
            members = replace(members, word=Settled(0, 1, NO_TIME, rows.settled[-1]))
        if found := fleet.receive(members):
            self._take_records("roll-ups", found)
            self._watch(self._machines.group_alerts, found)

    def _watch(self, table: AlertTable | None, rows: SomeRows) -> None:
        """Apply alert rules to rows; alerts without a file are printed at once."""
        if table is None or not (alerts := table.watch(rows)):
            return
        batch = self._take_records("alerts", alerts)
        self._delivery.put(pa.Table.from_batches([batch]))
        if self._job.alerts is not None and self._job.alerts.path is None:
            for alert in alerts:
                say(alert.message)

    def _tell_of_losses(self, counts: Counter[str]) -> None:
        """Print, once for each role and reason, that many of the records so far are dead letters, and why."""
        letters = [(*why, number) for why, (number, _) in self._reasons.items()]
        for loss in losses(counts, letters, _TELLING):
            if (loss.role, loss.reason) not in self._told:
                self._told.add((loss.role, loss.reason))
                say(running_text(loss, self._job.fields))

    def _put(self, letters: DeadLetters, role: LossRole) -> None:
        """Write dead letters, and count their reasons; `role` is the role of their records."""
        progress.note_refused(letters, role)
        self._take("dead letters", letters.batch)
        for kind, reason, position in letters.whys():
            number, first = self._reasons.get((kind, reason), (0, position))
            self._reasons[kind, reason] = number + 1, min(first, position)
