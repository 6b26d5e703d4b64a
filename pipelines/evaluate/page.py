"""The page about a job of `rocsteady evaluate`, made from the job's outputs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from ...core.events.rejected import Reason
from ...transforms.events import doubts
from ...transforms.sinks.open import is_streamed
from .job import Evaluation, Outcome
from .summary import sum_of_labels, warnings_of

if TYPE_CHECKING:
    from ..report.report_rows import EventCounters


def _not_applied(job: Evaluation, outcome: Outcome) -> tuple[tuple[str, str, int], ...]:
    """Return (kind, reason, count) of the events, or predictions, that were not applied."""
    if job.join is None:
        return tuple((kind, reason, count) for kind, reason, count, _ in outcome.letters)
    whys = (("invalid", "no prediction", "dead_letters"), ("late", Reason.LATE.value, "late"))
    of_predictions = (Reason.NO_LABEL, Reason.NO_LABEL_AT_END, Reason.SECOND_EVENT)
    return (
        *((kind, why, outcome.counts[name]) for kind, why, name in whys if outcome.counts[name]),
        *((kind, why, count) for kind, why, count, _ in outcome.letters if why in of_predictions),
    )


def _letters_by_model(job: Evaluation, outcome: Outcome) -> dict[str, int]:
    """Return the number of dead letters of each model, as far as the job has a file of dead letters."""
    from ...transforms.tables.read import read_tables
    from ..report.report_rows import letters_by_model

    if job.dead_letters is None or is_streamed(job.dead_letters) or not outcome.letters:
        return {}
    return letters_by_model(read_tables([job.dead_letters], "dead letters")[0])


def counters_of(
    job: Evaluation, outcome: Outcome, of_models: Mapping[str, int] = MappingProxyType({})
) -> EventCounters:
    """Return the counts of a job's events in the form that a page shows.

    of_models  the number of dead letters of each model, as far as it is known
    """
    from ..report.report_rows import EventCounters

    return EventCounters(
        outcome.counts["events_read"], outcome.counts["events_applied"], _not_applied(job, outcome), of_models
    )


def report_on(job: Evaluation, outcome: Outcome) -> None:
    """Write the report about a job whose output files are complete, if one is asked for."""
    if not job.report:
        return
    from ...transforms.tables.read import ANY_ROWS, read_tables, rows_settings
    from ..report.facts import TITLE
    from ..report.report import write_report
    from ..report.report_rows import Tables

    files = [
        *([job.output] if job.output and outcome.counts["rows_written"] else []),
        *(other.output for other in job.beside),
    ]
    rows, oddities = read_tables(files, ANY_ROWS)
    curves, elsewhere = None, []
    if job.curves is not None and is_streamed(job.curves):
        elsewhere = [f"The curves are in {job.curves}, which this page does not show."]
    elif job.curves is not None:
        curves, _ = read_tables([job.curves] if outcome.counts["curves_written"] else [], "curves")
    of_jobs = (("roll-ups", job.roll_ups and job.roll_ups.path), ("pairs", job.pairs and job.pairs.path))
    told: dict[str, pa.Table] = {}
    for what, path in of_jobs:
        if path and is_streamed(path):
            elsewhere.append(f"The {what} are in {path}, which this page does not show.")
        elif path:
            told[what], _ = read_tables([path], what)
    write_report(
        rows,
        job.report,
        Tables(
            curves=curves,
            roll_ups=told.get("roll-ups"),
            pairs=told.get("pairs"),
            alerts=outcome.alerts,
            counters=counters_of(job, outcome, _letters_by_model(job, outcome)),
        ),
        title=job.title or TITLE,
        confidence=job.settings.evaluator.confidence,
        reference=job.reference,
        settings=rows_settings(files),
        notes=[
            *job.notes,
            *([] if job.join is None else [f"{sum_of_labels(outcome.counts)}."]),
            *(f"{said[0].upper()}{said[1:]}." for said in (*doubts.told(), *warnings_of(outcome, job))),
            *elsewhere,
            *oddities,
        ],
    )
