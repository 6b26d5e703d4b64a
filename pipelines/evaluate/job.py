"""A job of `rocsteady evaluate`: its settings (`Evaluation`), and its result (`Outcome`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ...core.alerts.rules import AlertRule
from ...core.join.settings import JoinSettings
from ...core.settings.table import TableSettings
from ...runners.presets import Runner
from ...transforms.events.fields import EventFields
from ...transforms.events.lateness import ANY_TIME, Timing
from ...transforms.files.formats import SourceFile, everywhere
from ...transforms.sinks.open import PLAIN_SINKS, SinkOptions
from ...transforms.sources.files.partition import Cut
from ...transforms.sources.streams.read import Way
from ...transforms.sources.streams.reader import StreamInput
from ...transforms.state.folder import EVALUATORS, JOIN, Export, Step, new_id
from .exit_status import FailRule


@dataclass(frozen=True)
class Join:
    """The settings of a join with labels from separate files; the job's sources then hold predictions."""

    labels: Sequence[SourceFile]
    label_time: str
    settings: JoinSettings


@dataclass(frozen=True)
class Streams:
    """The partitions of all topics that a job reads, and how they are read ("live": without a runner)."""

    inputs: Sequence[StreamInput]
    way: Way | Literal["live"]

    @property
    def gives_state(self) -> bool:
        """Whether the job's state can be requested while the job runs."""
        return any(source.control is not None for source in self.inputs)

    def asked_by(self, control: str | None) -> Streams:
        """Return these streams with a control file for requests of the state; None: without requests."""
        path = None if control is None else everywhere(control)
        return replace(self, inputs=[replace(source, control=path) for source in self.inputs])

    def cut_off(self, cut: Cut | None) -> Streams:
        """Return these streams with a cut at the end of every partition; None: without a cut."""
        if cut is None:
            return self
        cut_inputs = [
            replace(source, cut=cut, partition=source.partition.continued()) for source in self.inputs
        ]
        return replace(self, inputs=cut_inputs)


@dataclass(frozen=True)
class Alerts:
    """The alert rules of a job, and the path of their alerts. Path None: the alerts go to stderr."""

    rules: tuple[AlertRule, ...]
    path: str | None


@dataclass(frozen=True)
class Beside:
    """A second evaluation of the same events under other settings. Its rows have a file, but no counters.

    The number of shards and the order of events are the job's.
    """

    settings: TableSettings
    output: str


class Output(NamedTuple):
    """One output of a job.

    option   the option that names the output's place
    path     a path as `sinks` knows them, or - for stdout
    content  "rows", "dead letters", "curves", "alerts" or "report"
    """

    option: str
    path: str
    content: str


@dataclass(frozen=True)
class Evaluation:
    """A job: its input, the settings of the evaluation, and its outputs.

    output        path of the rows as `sinks` knows them, or - for stdout.
    dead_letters  path of the dead letters; None: they are only counted.
    curves        path of the curves; None: no curves. `settings` say when a curve is due.
    report        path of the page about the job, or None; `title` and `notes` (sentences) are its head.
    beside        evaluations of the same events under other settings, shown on the same page.
    alerts        the rules that watch the rows, if any.
    sinks         how topics and folders are written.
    streams       the input instead of `sources`.
    export        folder of the state after the last event; the job then makes no last rows.
    begins_with   the state that the job starts from.
    fail_if       the rules by which the exit status is 4.
    """

    sources: Sequence[SourceFile]
    fields: EventFields
    settings: TableSettings
    output: str
    dead_letters: str | None
    cache_bytes: int
    runner: Runner
    curves: str | None = None
    report: str | None = None
    title: str | None = None
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

    def outputs(self) -> Iterator[Output]:
        """Yield the outputs that the job was asked for: its tables, then the report about them."""
        places = (
            ("--output", self.output, "rows"),
            ("--dead-letters", self.dead_letters, "dead letters"),
            ("--curves", self.curves, "curves"),
            ("--alerts", None if self.alerts is None else self.alerts.path, "alerts"),
            ("--report", self.report, "report"),
        )
        for option, path, content in places:
            if path is not None:
                yield Output(option, path, content)

    def placed(self, place_of: Mapping[str, str]) -> Evaluation:
        """Return the job with other paths of its outputs; an output without an entry in `place_of` stays."""

        def place(path: str | None) -> str | None:
            return path and place_of.get(path, path)

        return replace(
            self,
            output=place_of.get(self.output, self.output),
            dead_letters=place(self.dead_letters),
            curves=place(self.curves),
            report=place(self.report),
            alerts=self.alerts and replace(self.alerts, path=place(self.alerts.path)),
            beside=[replace(other, output=place_of[other.output]) for other in self.beside],
            export=place(self.export),
        )

    def cut(self) -> Cut | None:
        """Return a new cut at the end of the input, if the state is exported there; else None."""
        return None if self.export is None else Cut(new_id(), self.export)

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
    times         the least and the greatest event time, seconds since 1970; None without times
    seconds       how long the job took
    messages      the messages of alerts that have no file, in order of time
    restarted     when the runner last restarted the job after a failure (RFC 3339); empty: never
    """

    counts: Counter[str]
    letters: list[tuple[str, str, int, int]]
    times: tuple[int, int] | None
    seconds: float = 0.0
    messages: Sequence[str] = ()
    restarted: str = ""
