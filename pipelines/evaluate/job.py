"""A job of `rocsteady evaluate`: its settings (`Evaluation`) and its result (`Outcome`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import pyarrow as pa

from ...core.alerts.columns import Kind
from ...core.alerts.rules import AlertRule, Span
from ...core.ids.sharding import Cut
from ...core.join.join_settings import JoinSettings
from ...core.settings.periods import Period
from ...core.settings.table import TableSettings
from ...runners.presets import Runner
from ...transforms.events.fields import EventFields, Role
from ...transforms.events.lateness import ANY_TIME, Timing
from ...transforms.files.formats import SourceFile, everywhere
from ...transforms.sinks.open import PLAIN_SINKS, SinkOptions
from ...transforms.sources.streams.pipe_kinds import LabelRecords
from ...transforms.sources.streams.read import Way
from ...transforms.sources.streams.stream_input import StreamInput
from ...transforms.state.folder import EVALUATORS, JOIN, Export, Step, new_id
from .exit_status import FailRule
from .pairs import Pairs
from .recipients import Recipient
from .roll_ups import RollUps


@dataclass(frozen=True)
class Join:
    """The settings of a join with labels of their own; the job's sources then hold predictions.

    labels      files of labels; empty if labels come in a stream
    label_time  the column of a label's time
    records     which records of stdin are labels; None if labels have sources of their own
    """

    labels: Sequence[SourceFile]
    label_time: str
    settings: JoinSettings
    records: LabelRecords | None = None


@dataclass(frozen=True)
class Streams:
    """The partitions of all streams that a job reads, and how they are read ("live" = without a runner)."""

    inputs: Sequence[StreamInput]
    way: Way | Literal["live"]

    @property
    def gives_state(self) -> bool:
        """Whether the job's state can be requested while the job runs."""
        return any(source.control is not None for source in self.inputs)

    def check(self) -> None:
        """Raise RocsteadyError if a stream is not the stream to which the job's offsets belong."""
        for source in self.inputs:
            if source.partition.is_first:
                source.partition.check()

    def asked_by(self, control: str | None) -> Streams:
        """Return these streams with a control file for requests of the state; None = without requests."""
        path = None if control is None else everywhere(control)
        return replace(self, inputs=[replace(source, control=path) for source in self.inputs])

    def cut_off(self, cut: Cut | None) -> Streams:
        """Return these streams with a cut at the end of every partition; None = without a cut."""
        if cut is None:
            return self
        cut_inputs = [
            replace(source, cut=cut, partition=source.partition.continued()) for source in self.inputs
        ]
        return replace(self, inputs=cut_inputs)


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a live job.

    every        seconds between two checkpoints; 0 = a checkpoint after each read
    begins_anew  whether the folder's checkpoints are removed, and the job begins without them
    """

    folder: str
    every: float
    begins_anew: bool = False


@dataclass(frozen=True)
class Alerts:
    """The alert rules of a job, and where their alerts go.

    rules       rules on rows, on roll-up rows, and on pair rows (`AlertRule.kind`).
    path        path of the alerts; None = alerts are printed on stderr.
    recipients  the commands and URLs that are called for each alert.
    copy        path of a Parquet file that also holds the alerts, for a job on Beam to read at its end.
    """

    rules: tuple[AlertRule, ...]
    path: str | None
    recipients: tuple[Recipient, ...] = ()
    copy: str | None = None

    def rules_of(self, kind: Kind) -> tuple[AlertRule, ...]:
        """Return the rules on a kind of rows."""
        return tuple(rule for rule in self.rules if rule.kind == kind)


@dataclass(frozen=True)
class Beside:
    """A second evaluation of the same events under other settings. Its rows have a file, but no counters.

    The number of shards and the order of events are those of the job.
    """

    settings: TableSettings
    output: str


class Output(NamedTuple):
    """One output of a job.

    option   the option that names the output's place
    path     a path as `sinks` knows them, or - for stdout
    content  "rows", "dead letters", "curves", "pairs", "roll-ups", "alerts" or "report"
    """

    option: str
    path: str
    content: str


@dataclass(frozen=True)
class Evaluation:
    """A job: its input, the settings of the evaluation, and its outputs.

    output        path of the rows as `sinks` knows them, or - for stdout; None = the table of models is
                  printed instead of the rows.
    dead_letters  path of the dead letters; None = dead letters are only counted.
    curves        path of the curves; None = no curves. `settings` say when a curve is due.
    report        path of the page about the job, or None; `title` and `notes` (sentences) are its head.
    beside        evaluations of the same events under other settings, shown on the same page.
    reference     the reference of the latest windows, on the page and in the table.
    alerts        the rules that watch the rows, the roll-up rows and the pair rows, if any.
    roll_ups      the groups whose rows are rolled up, if any.
    sinks         how topics and folders are written.
    streams       the input instead of `sources`.
    export        folder of the state after the last event; the job then makes no last rows.
    begins_with   the state that the job starts from.
    fail_if       the rules by which the exit status is 4.
    pairs         the comparisons of models with a champion, if any.
    checkpoints   where a live job keeps its checkpoints, if anywhere.
    """

    sources: Sequence[SourceFile]
    fields: EventFields
    settings: TableSettings
    output: str | None
    dead_letters: str | None
    cache_bytes: int
    runner: Runner
    curves: str | None = None
    report: str | None = None
    title: str | None = None
    reference: Span | Period | None = None
    notes: Sequence[str] = ()
    beside: Sequence[Beside] = ()
    timing: Timing = ANY_TIME
    join: Join | None = None
    alerts: Alerts | None = None
    sinks: SinkOptions = PLAIN_SINKS
    streams: Streams | None = None
    export: str | None = None
    begins_with: Export | None = None
    fail_if: Sequence[FailRule] = ()
    pairs: Pairs | None = None
    roll_ups: RollUps | None = None
    checkpoints: Checkpoints | None = None

    def files(self) -> list[SourceFile]:
        """Return the files that the job reads: events, or predictions and then labels."""
        return [*self.sources, *(() if self.join is None else self.join.labels)]

    def outputs(self) -> Iterator[Output]:
        """Yield the outputs that the options ask for: its tables, then the report about them."""
        places = (
            ("--output", self.output, "rows"),
            ("--dead-letters", self.dead_letters, "dead letters"),
            ("--curves", self.curves, "curves"),
            ("--pairs", None if self.pairs is None else self.pairs.path, "pairs"),
            ("--roll-ups", None if self.roll_ups is None else self.roll_ups.path, "roll-ups"),
            ("--alerts", None if self.alerts is None else self.alerts.path, "alerts"),
            ("--report", self.report, "report"),
        )
        for option, path, content in places:
            if path is not None:
                yield Output(option, path, content)

    def placed(self, place_of: Mapping[str, str]) -> Evaluation:
        """Return the job with other paths of its outputs.

        An output without an entry in `place_of` keeps its path.
        """

        def place(path: str | None) -> str | None:
            return path and place_of.get(path, path)

        return replace(
            self,
            output=place(self.output),
            dead_letters=place(self.dead_letters),
            curves=place(self.curves),
            report=place(self.report),
            pairs=self.pairs and replace(self.pairs, path=str(place(self.pairs.path))),
            alerts=self.alerts and replace(self.alerts, path=place(self.alerts.path)),
            roll_ups=self.roll_ups and replace(self.roll_ups, path=place(self.roll_ups.path)),
            beside=[replace(other, output=place_of[other.output]) for other in self.beside],
            export=place(self.export),
        )

    @property
    def reading_shards(self) -> int:
        """The shards to which readers send records.

        Those of the join if there is one, otherwise those of evaluators and pairs of models.
        """
        if self.join is not None:
            return self.join.settings.shards
        return (self.settings.shards or 1) if self.pairs is None else self.pairs.shards(self.settings)

    def fields_of(self, role: Role) -> EventFields:
        """Return the roles of the columns of a source whose records have this role."""
        if role == "label" and self.join is not None:
            return replace(self.fields, time=self.join.label_time)
        return self.fields

    @property
    def located(self) -> bool:
        """Whether events keep their positions in their source."""
        by_record = self.pairs is not None and self.pairs.against.by_record
        return self.settings.deduplicate is not None or by_record

    def cut(self) -> Cut | None:
        """Return a new cut at the end of the input, if the state is exported there; otherwise None."""
        return None if self.export is None else Cut(new_id(), self.export)

    def shard_settings(self) -> tuple[TableSettings | JoinSettings, ...]:
        """Return the settings of the shards that process the job's events: evaluators, and a join if any."""
        return (self.settings,) if self.join is None else (self.settings, self.join.settings)

    def steps(self) -> tuple[Step, ...]:
        """Return the steps that an export of the job's state holds."""
        evaluators = Step(EVALUATORS, self.settings.shards or 1, self.settings.meaning())
        if self.join is None:
            return (evaluators,)
        join = self.join.settings
        return Step(JOIN, join.shards, join.meaning()), evaluators


@dataclass(frozen=True)
class Outcome:
    """The counters and other results of a finished job.

        counts        the counters, by the names of Beam metrics
        letters       (kind, reason, count, lowest position) of dead letters; most frequent first
        times         the least and the greatest event time, seconds since 1970; None if events have no times
        seconds       how long the job took
    alerts        alerts in order of time, for a job on Beam that prints them or calls recipients
    restarted     when the runner last restarted the job after a failure (RFC 3339); "" = never
    stopped       whether the job was stopped, and goes on from its checkpoint
    """

    counts: Counter[str]
    letters: list[tuple[str, str, int, int]]
    times: tuple[int, int] | None
    seconds: float = 0.0
    alerts: pa.Table | None = None
    restarted: str = ""
    stopped: bool = False
