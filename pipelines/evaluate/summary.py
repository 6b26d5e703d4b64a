"""Prints a job's progress line and its final summary. Both go to stderr, so that stdout holds only data."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from ...core.alerts.columns import Kind
from ...core.events.rejected import Reason
from ...core.events.times import PER_SECOND, SMALL
from ...core.fleet.roll_up_settings import SLICES
from ...core.kernels.announcement import ANNOUNCEMENT
from ...core.process.console import redraw, say, say_below
from ...core.settings.durations import duration_text
from ...core.settings.table import IDLE, slice_forms
from ...core.state.compile_ahead import share_compiled
from ...transforms.beam import metrics, progress
from ...transforms.events import doubts
from ...transforms.events.doubts.classes import tell_classes_at_end
from ...transforms.events.losses import FEW, Loss, losses
from ..sums import EVENTS, LABELS
from ..words import counted
from .job import Alerts, Evaluation, Outcome
from .losses import losses_of, short_text
from .pairs import told_pairs

_SECONDS_BETWEEN = {True: 0.2, False: 10.0}
"""Seconds between two progress lines, on a terminal (True) and in a log. A terminal's line is redrawn, but
every line of a log stays.
"""

_REASONS_SHOWN = 10
_ALERTS_SHOWN = 20
_FEW_EVENTS = 100
"""The least number of events for a warning: with fewer events, all scores may be on one side of the threshold
by chance.
"""
_DAY = 86_400


class ProgressLine:
    """Prints a job's progress from time to time; it is enabled if this process reads the job's files.

    total_bytes, total_files   sizes of the input, for the share that was read
    reports                    the number of reports that the folds of learners make for so many records; None
                               if no learner trains
    """

    def __init__(
        self,
        enabled: bool,
        total_bytes: int = 0,
        total_files: int = 0,
        reports: Callable[[int], int] | None = None,
    ) -> None:
        self._reports = reports
        self._enabled = enabled
        self._total_bytes = total_bytes
        self._total_files = total_files
        self._terminal = sys.stderr.isatty()
        self._stop = threading.Event()
        self._started = time.monotonic()
        self._telling = ExitStack()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> ProgressLine:
        progress.reset()
        doubts.reset()
        self._before = metrics.totals(), metrics.letters_by_reason()
        self._telling.enter_context(progress.told())
        if self._enabled:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        tell_classes_at_end()
        self._stop.set()
        if self._enabled:
            self._thread.join()
        if self._terminal:
            redraw("")
        self._telling.close()

    def _tell(self) -> None:
        while not self._stop.wait(_SECONDS_BETWEEN[self._terminal]):
            line = self._line(progress.read(), time.monotonic() - self._started, self._loss())
            if self._terminal:
                redraw(line)
            else:
                say(line)

    def _loss(self) -> Loss | None:
        """Return the losses so far if there are many, by the counters of this process."""
        counts, letters = metrics.totals() - self._before[0], metrics.letters_by_reason() - self._before[1]
        return next(losses(counts, [(*why, number) for why, number in letters.items()], FEW), None)

    def _line(self, read: progress.Progress, seconds: float, loss: Loss | None = None) -> str:
        line = f"{counted(read.records, 'event' if self._reports is None else 'instance')} read"
        if read.files < self._total_files and self._total_bytes:
            line += f" ({min(read.bytes / self._total_bytes, 1):.0%})"
        if read.dead_letters:
            line += f", {counted(read.dead_letters, 'dead letter')}"
        if loss is not None:
            line += f" ({short_text(loss)})"
        if self._reports is None:
            if self._total_files and read.files >= self._total_files:
                line += ", evaluating"
        elif read.bytes >= self._total_bytes and (reports := self._reports(read.records)):
            # Reports are made while the last records are passed on.
            line += f", training and testing ({min(read.reports / reports, 1):.0%})"
        if ANNOUNCEMENT.is_waiting:
            share = share_compiled()
            line += ", compiling the kernels" + ("" if share is None else f" ({share:.0%})")
        return f"{line}; {seconds:.0f} s"


def summarise(outcome: Outcome, job: Evaluation) -> None:
    """Print how many events were applied or lost, as counters that add up to the input, and warnings."""
    counts, output = outcome.counts, job.output
    where = "on stdout" if output == "-" else "not kept" if output is None else f"in {output}"
    curves = f", {counted(counts['curves_written'], 'curve')} in {job.curves}" if job.curves else ""
    report = f", all of it in {job.report}" if job.report else ""
    if output is None and job.report:
        where, report = f"on the page {job.report}", ""
    say(
        f"{EVENTS.told(counts, 'event' if job.join is None else 'prediction')}; "
        f"{counted(counts['rows_written'], 'row')} {where}{curves}{report} ({outcome.seconds:.1f} s)"
    )
    if job.join is not None:
        say(sum_of_labels(counts))
    if job.pairs is not None:
        for sentence in told_pairs(job.pairs, counts):
            say(sentence)
    if job.roll_ups is not None and job.roll_ups.path is not None and not counts["roll_up_rows_written"]:
        say(job.roll_ups.settings.without_rows)
    if job.export is not None:
        say(
            f"the state is in {job.export}; the last rows come where a job goes on from it with "
            f"--import-state {job.export}, and its input ends"
        )
    if left := counts["evaluators_retired"]:
        say(
            f"silent for longer than --idle-ttl {duration_text(job.settings.parts.get(IDLE, 1))}: "
            f"{counted(left, 'time')} a model or a slice of one gave a last row and left"
        )
    if job.alerts is not None:
        unsaved = outcome.alerts if job.alerts.path is None else None
        _say_alerts(job, job.alerts, counts, [] if unsaved is None else unsaved["message"].to_pylist())
    if added := counts["added_partitions"]:
        say(told_added(added, outcome.letters))
    if outcome.letters:
        _list_letters(outcome, job.dead_letters)
    waits = sum(max(each.missing(counts), 0) for each in (EVENTS, LABELS))
    if waits and goes_on(job, outcome) and not outcome.restarted:
        kept = "the checkpoint" if outcome.stopped else "a savepoint"
        say(f"{counted(waits, 'record')} wait for their turn in the state of the job: {kept} has them")
    for warning in warnings_of(outcome, job):
        say(warning)


def _say_alerts(job: Evaluation, alerts: Alerts, counts: Counter[str], messages: Sequence[str]) -> None:
    """Print how many alerts opened and closed, and the last `messages` if the alerts have no file."""
    opened, closed = counts["alerts_opened"], counts["alerts_closed"]
    if not opened:
        say("no alert opened" + (f"; {alerts.path} has no rows" if alerts.path else ""))
        if counts["rows_written"] and not counts["alert_rows"]:
            say_below(
                f"no {_watched(alerts)} passes 'where' of a rule; check the names in the rules "
                f"({_spelling(job, alerts)})"
            )
        return
    where = f", in {alerts.path}" if alerts.path else "; kept with --alerts PATH" + ":" * bool(messages)
    say(f"{counted(opened, 'alert')} opened, {closed:,} closed, {opened - closed:,} still open{where}")
    if capped := counts["alerts_capped"]:
        say_below(f"{capped:,} more opened beyond 'at most N a day' of their rule, and are not told")
    if calls := counts["alert_calls"]:
        failed = counts["alert_calls_failed"]
        say_below(f"{counted(calls, 'call')} of --alert-exec and --alert-post, {failed:,} of them failed")
    if len(messages) > _ALERTS_SHOWN:
        say_below(f"the last {_ALERTS_SHOWN} of {len(messages):,}:")
    for message in messages[-_ALERTS_SHOWN:]:
        say_below(message)


def _watched(alerts: Alerts) -> str:
    """Return, in words, which rows the rules watch."""
    names: dict[Kind, str] = {
        "row": "model and slice of the rows",
        "roll-up row": "group",
        "pair row": "pair of models",
    }
    return " and no ".join(name for kind, name in names.items() if alerts.rules_of(kind))


def _spelling(job: Evaluation, alerts: Alerts) -> str:
    """Return how the names that the rules test are written."""
    told = []
    if job.roll_ups is not None and alerts.rules_of("roll-up row"):
        told.append(f"groups are {' and '.join(map(_group_form, job.roll_ups.settings.by))}")
    if alerts.rules_of("row") or alerts.rules_of("pair row"):
        told.append(f"slices are spelled {slice_forms(job.fields.slices)}")
    return "; ".join(told)


def _group_form(choice: str) -> str:
    return "model=MODEL,slice=COLUMN" if choice == SLICES else repr(choice)


def sum_of_labels(counts: Counter[str]) -> str:
    """Return, as text, the counters of labels that add up to the number of labels read."""
    return LABELS.told(counts, "label")


def goes_on(job: Evaluation, outcome: Outcome) -> bool:
    """Return whether the job was stopped while its streams go on.

    Counters of such a job do not add up: records in its state were read but not applied. Records from a
    savepoint were read by an earlier job.
    """
    return outcome.stopped or (job.streams is not None and job.streams.way in ("impulse", "source"))


def _gaps(counts: Counter[str]) -> Iterator[str]:
    """Yield a sentence for each group of counters that do not add up."""
    for each, what in ((EVENTS, "events"), (LABELS, "labels")):
        if missing := each.missing(counts):
            yield (
                f"the counters of {what} do not add up: {missing:+,} of those that were read. A runner that "
                "tries a bundle again may count it twice; otherwise this is a defect of rocsteady: please "
                "report it"
            )


def told_added(partitions: int, letters: Sequence[tuple[str, str, int, int]]) -> str:
    """Return a sentence on partitions that were added while the job ran.

    letters  (kind, reason, number, first position) of the dead letters

    >>> told_added(1, [("late", "new partition", 12, 0)])
    '1 partition was added while the job ran, and is read; 12 events of added partitions were late'
    """
    late = sum(number for _, reason, number, _ in letters if reason == Reason.NEW_PARTITION)
    verbs = "was", "is"
    if partitions > 1:
        verbs = "were", "are"
    said = f"{counted(partitions, 'partition')} {verbs[0]} added while the job ran, and {verbs[1]} read"
    were = "was" if late == 1 else "were"
    return f"{said}; {counted(late, 'event')} of added partitions {were} late"


def _list_letters(outcome: Outcome, path: str | None) -> None:
    where = f"in {path}" if path else "kept with --dead-letters PATH"
    say(f"dead letters, {where}:")
    for kind, reason, number, position in outcome.letters[:_REASONS_SHOWN]:
        said = reason if kind == "invalid" else f"{kind}: {reason}"
        first = f" (the first at position {position:,})" if position >= 0 else ""
        say_below(f"{number:,} x {said}{first}")
    if len(outcome.letters) > _REASONS_SHOWN:
        say_below(f"and {len(outcome.letters) - _REASONS_SHOWN} more reasons")


def warnings_of(outcome: Outcome, job: Evaluation) -> Iterator[str]:
    """Yield a warning for every result that suggests a mistake in the options, not in the models."""
    counts, fields, settings = outcome.counts, job.fields, job.settings.evaluator
    if outcome.restarted:
        yield (
            f"the job was begun again after a failure, last at {outcome.restarted}: its runner's counters "
            "lose what was counted between the checkpoint and the failure, or have it twice, and need not "
            "add up; rows and dead letters are not affected"
        )
    elif not goes_on(job, outcome):
        yield from _gaps(counts)
    yield from losses_of(outcome, job)
    applied = counts["events_applied"]
    if not applied:
        return
    if fields.positive is not None and not counts["rows_with_a_positive"]:
        yield (
            f"no event in the rows is positive: no label in {fields.label!r} equals --positive "
            f"{fields.positive}; check its spelling, its case, and the column"
        )
    if counts["events_tied"]:
        remedy = "tell them apart with --id"
        if fields.id is not None:
            remedy = (
                f"--id {fields.id} does not tell them apart; if they were delivered twice, --deduplicate 1d "
                "drops the second"
            )
        yield (
            f"{counted(counts['events_tied'], 'event')} share their time with others of their model, in an "
            f"order that is the same in every run but arbitrary: {remedy}"
        )
    if beyond := counts["events_in_other"]:
        yield (
            f"{counted(beyond, 'event')} of slices are in their slice of others: "
            f"{job.settings.cap_in_words()}"
        )
    small = SMALL / PER_SECOND[fields.time_unit]  # `doubts` reports larger numbers at once
    if outcome.times is not None and outcome.times[0] >= 0 and outcome.times[1] < min(_DAY, small):
        yield (
            f"every time lies on 1 January 1970: --time-unit {fields.time_unit} says that the numbers in "
            f"{fields.time!r} are that long after it; give dates, another unit, or --time-format"
        )
    if fields.predicted is not None or applied < _FEW_EVENTS or not counts["rows_with_counts"]:
        return
    for side, other in (("positive", "negative"), ("negative", "positive")):
        if not counts[f"rows_with_a_predicted_{other}"]:
            yield (
                f"every event in the rows is predicted {side} at threshold {settings.threshold:g}: "
                "set --threshold if that is not meant"
            )
