"""A job of `rocsteady evaluate`, as it was asked for, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ...core.join.settings import JoinSettings
from ...core.settings.table import TableSettings
from ...runners.presets import Runner
from ...transforms.events.fields import EventFields
from ...transforms.events.timing import ANY_TIME, Timing
from ...transforms.files.formats import SourceFile, everywhere
from ...transforms.sinks.open import PLAIN_SINKS, SinkOptions
from ...transforms.sources.files.packets import Cut
from ...transforms.sources.streams.read import TICK_SECONDS, Way
from ...transforms.sources.streams.reader import StreamInput
from ...transforms.state.folder import EVALUATORS, JOIN, Export, Step, new_id
from .alerts import Alerts
from .exit_status import FailRule


@dataclass(frozen=True)
class Join:
    """Labels that come from files of their own: the sources of a job then hold predictions."""

    labels: Sequence[SourceFile]
    label_time: str
    settings: JoinSettings


@dataclass(frozen=True)
class Streams:
    """What a job reads: partitions of all its topics, and how a runner reads them; "live": without one."""

    inputs: Sequence[StreamInput]
    way: Way | Literal["live"]
    tick: float = TICK_SECONDS

    @property
    def is_bounded(self) -> bool:
        """Whether every partition has an end."""
        return all(source.end is not None for source in self.inputs)

    @property
    def gives_state(self) -> bool:
        """Whether its state can be asked for."""
        return any(source.control is not None for source in self.inputs)

    def asked_by(self, control: str | None) -> Streams:
        """Return the same, whose state can be asked for by a control file, if there is one."""
        path = None if control is None else everywhere(control)
        return replace(self, inputs=[replace(source, control=path) for source in self.inputs])

    def cut_off(self, cut: Cut | None) -> Streams:
        """Return the same, cut off at the end of every partition, if at all."""
        return replace(self, inputs=[replace(source, cut=cut) for source in self.inputs])


@dataclass(frozen=True)
class Beside:
    """The same events once more, under other settings: rows in a file of their own, which no counter counts.

    Shards, and the order in which events apply, are those of the job.
    """

    settings: TableSettings
    output: str


class Output(NamedTuple):
    """What a job writes to one place.

    option   that names the place
    path     as `sinks` knows them, or - for stdout
    content  in words: "rows", "dead letters", "curves", "alerts" or "report"
    """

    option: str
    path: str
    content: str


@dataclass(frozen=True)
class Evaluation:
    """A job: what is read, how it is evaluated, where it goes.

    output is a path, as `sinks` knows them, or - for stdout; dead_letters too, or None: then they are only
    counted; curves too, or None: then none are drawn. When, the settings say. report is the path of a page
    about all that, or None; title and notes, sentences, stand above it. beside are evaluations of the same
    events under other settings, shown on the same page. alerts are the rules that watch the rows, if there
    are any. sinks says how topics and folders are written. streams are what is read instead of sources.
    export is the folder that the state goes to behind the last event, instead of last rows; begins_with the
    state that it begins with. fail_if are rules by which its exit status is 4.
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
        """Yield what it was asked to write: its tables, and at last the page about them."""
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

    def cut(self) -> Cut | None:
        """Return a cut at the end of the input, where the state is wanted there; a new one each time."""
        return None if self.export is None else Cut(new_id(), self.export)

    def steps(self) -> tuple[Step, ...]:
        """Return what an export of its state holds."""
        evaluators = Step(EVALUATORS, self.settings.shards or 1, self.settings.meaning())
        if self.join is None:
            return (evaluators,)
        join = self.join.settings
        return Step(JOIN, join.shards, join.meaning()), evaluators


@dataclass(frozen=True)
class Outcome:
    """What a finished job counted.

    counts        by the names of Beam metrics
    letters       per kind and reason: how many, and the lowest position of one; most frequent first
    times         the least and the greatest event time, seconds since 1970; None without times
    seconds       that the job took
    messages      of alerts that have no file, in order of time
    restarted     when the runner last began the job again after a failure (RFC 3339); empty: it did not
    """

    counts: Counter[str]
    letters: list[tuple[str, str, int, int]]
    times: tuple[int, int] | None
    seconds: float = 0.0
    messages: Sequence[str] = ()
    restarted: str = ""
