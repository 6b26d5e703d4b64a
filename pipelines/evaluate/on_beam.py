"""Runs a job as a Beam pipeline: reads files or topics of scored events, writes rows of measures.

A job that fails leaves no output (see `outputs`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa

from ...core.errors import ConfigError
from ...core.evaluator.ranking import stride_of
from ...core.events.reasons import Reason
from ...core.join.settings import JoinSettings
from ...core.process.standard_streams import write_out
from ...core.process.temporary_folders import temporary_folder
from ...core.settings.table import TableSettings
from ...transforms.beam.machine import Brings
from ...transforms.evaluate.join_labels import JoinShards
from ...transforms.evaluate.shards import EvaluateShards
from ...transforms.events import time_doubts
from ...transforms.events.fields import EventFields, Role
from ...transforms.files.formats import CHUNK_ROWS, SourceFile
from ...transforms.sinks.curves import curve_batches
from ...transforms.sinks.kinds import CURVES, DEAD_LETTERS
from ...transforms.sinks.open import is_streamed, write_batches
from ...transforms.sources.files.partition import FilePartition
from ...transforms.sources.files.read import EventFiles, ReadEventFiles, ReadFiles
from ...transforms.sources.streams.read import ReadStream
from ...transforms.state.write import ReadStates, WriteStates, brought_state, step_of
from ..outputs import STDOUT, staged
from .alerts import read_messages, watch_rows
from .job import Beside, Evaluation, Outcome
from .row_columns import InColumns, rows_of
from .run import BESIDE, run_pipeline
from .summary import ProgressLine, sum_of_labels, summarise, warnings_of

_EVENTS_AT_ONCE = 1_000_000
"""Rows of a Parquet file read at once, at most. 10M events of 100,000 models took 36 s of processor time with
this value, 48 s with 400,000 rows and 81 s with 100,000."""

_BYTES_AT_ONCE = 1 << 20
"""Bytes of a file of rows copied to stdout at once."""

_ROWS_AT_ONCE = 50_000
"""Rows of whole models that one piece of input may produce, at most: 20 MB of rows."""


def evaluate_and_report(job: Evaluation) -> Outcome:
    """Run a job with a progress line, and print its summary. Rows for stdout are printed at the end."""
    sources = [*job.sources, *(job.join.labels if job.join is not None else ())]
    total = sum(source.size for source in sources)
    with temporary_folder() as folder:
        rows = str(Path(folder) / "rows.jsonl") if job.output == STDOUT else job.output
        with ProgressLine(enabled=job.runner.in_process, total_bytes=total, total_files=len(sources)):
            outcome = run_evaluation(replace(job, output=rows))
        if job.output == STDOUT:
            _print_file(Path(rows))
    summarise(outcome, job)
    return outcome


def _print_file(path: Path) -> None:
    """Copy a file of lines to stdout, a few MB at a time."""
    with path.open("rb") as lines:
        while part := lines.readlines(_BYTES_AT_ONCE):
            write_out(b"".join(part))


def run_evaluation(job: Evaluation) -> Outcome:
    """Build the pipeline, run it, wait for its end, and write the report if one is asked for.

    Raises RocsteadyError, with the reason in a sentence, where the job fails.
    """
    started = time.monotonic()
    told = None if job.alerts is None else job.alerts.path
    wanted = (job.output, job.dead_letters, job.curves, job.report, told, job.export)
    paths = [*(path for path in wanted if path is not None), *(other.output for other in job.beside)]
    paths = [path for path in paths if not is_streamed(path)]
    with staged(paths, job.runner.here) as places, temporary_folder() as folder:
        place_of = dict(zip(paths, places, strict=True))
        output, dead_letters, curves, report, alerts, export = (
            path and place_of.get(path, path) for path in wanted
        )
        if report and not curves and job.settings.evaluator.curves is not None:
            curves = str(Path(folder) / "curves.parquet")
        beside = tuple(replace(other, output=place_of[other.output]) for other in job.beside)
        hidden = replace(
            job, output=output or "", dead_letters=dead_letters, curves=curves, report=report, beside=beside,
            export=export,
        )  # fmt: skip
        if job.alerts is not None:
            alerts = alerts or str(Path(folder) / "alerts.parquet")
            hidden = replace(hidden, alerts=replace(job.alerts, path=alerts))
        outcome = run_pipeline(_pipeline(hidden), job.runner)
        if alerts and not told:
            outcome = replace(outcome, messages=read_messages(alerts))
        if report:
            report_on(hidden, outcome, report, [*time_doubts.told(), *warnings_of(outcome, job)])
    return replace(outcome, seconds=time.monotonic() - started)


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


def report_on(job: Evaluation, outcome: Outcome, path: str, warnings: Iterable[str]) -> None:
    """Write the report about a job whose output files are complete."""
    from ...transforms.tables.read import read_tables, rows_settings
    from ..report.html import TITLE
    from ..report.report import write_report
    from ..report.rows import EventCounters

    files = [
        *([job.output] if outcome.counts["rows_written"] else []),
        *(other.output for other in job.beside),
    ]
    rows, oddities = read_tables(files, "rows")
    curves = None
    if job.curves is not None:
        curves, _ = read_tables([job.curves] if outcome.counts["curves_written"] else [], "curves")
    write_report(
        rows,
        path,
        curves=curves,
        counters=EventCounters(
            outcome.counts["events_read"],
            outcome.counts["events_applied"],
            _not_applied(job, outcome),
        ),
        title=job.title or TITLE,
        confidence=job.settings.evaluator.confidence,
        settings=rows_settings(files),
        notes=[
            *job.notes,
            *([] if job.join is None else [f"{sum_of_labels(outcome.counts)}."]),
            *(f"{warning[0].upper()}{warning[1:]}." for warning in warnings),
            *oddities,
        ],
    )


def _pipeline(job: Evaluation) -> beam.Pipeline:
    try:
        pipeline = beam.Pipeline(runner=job.runner.engine, options=job.runner.options)
    except ValueError as error:
        raise ConfigError(f"Beam refuses its options: {_one_line(error)}") from None
    evaluator = job.settings.evaluator
    stride = stride_of(evaluator)
    parquet_rows = min(_EVENTS_AT_ONCE, max(CHUNK_ROWS, _ROWS_AT_ONCE * stride))
    events = pipeline | "Read" >> _read(job, parquet_rows)
    packets, letters = events.packets, [events.dead_letters]
    states: list[beam.PCollection[bytes]] = []
    awaits = job.begins_with is not None
    if job.join is not None:
        shards = JoinShards(
            job.join.settings, job.fields, job.cache_bytes, label_time=job.join.label_time, awaits=awaits,
            brings=_brings(job, job.join.settings),
        )  # fmt: skip
        packets, unmatched, join_states = _with_states(packets, job, job.join.settings) | "Join" >> shards
        letters.append(unmatched)
        states.append(join_states)
    evaluate = EvaluateShards(
        job.settings, job.fields, job.cache_bytes, awaits=awaits, brings=_brings(job, job.settings)
    )
    rows, refused, evaluator_states = _with_states(packets, job, job.settings) | "Evaluate" >> evaluate
    if job.export is not None or (job.streams is not None and job.streams.gives_state):
        all_states = [*states, evaluator_states] | "All states" >> beam.Flatten()
        _ = all_states | "Write states" >> WriteStates(job.steps(), job.export)
    write = write_batches(job.output, rows_of(job.settings.evaluator), job.sinks)
    _ = rows | "In columns" >> beam.ParDo(InColumns()) | "Write rows" >> write
    for number, other in enumerate(job.beside):
        _evaluate_beside(packets, number, other, job)
    if job.dead_letters is not None:
        all_letters = [*letters, refused] | "All letters" >> beam.Flatten()
        _ = all_letters | "Write dead letters" >> write_batches(job.dead_letters, DEAD_LETTERS, job.sinks)
    if job.alerts is not None:
        watch_rows(rows, job.alerts, job.settings.shards or 1, job.cache_bytes, job.sinks)
    if job.curves is not None:
        curves = rows | "Curves" >> beam.FlatMap(curve_batches).with_output_types(pa.RecordBatch)
        _ = curves | "Write curves" >> write_batches(job.curves, CURVES, job.sinks)
    return pipeline


def _with_states(
    packets: beam.PCollection[tuple[str, bytes]], job: Evaluation, settings: TableSettings | JoinSettings
) -> beam.PCollection[tuple[str, bytes]]:
    """Return the packets for a step together with the states that its shards start from."""
    if job.begins_with is None:
        return packets
    kind = step_of(settings)
    states = packets.pipeline | f"States of the {kind}" >> ReadStates(job.begins_with, kind)
    both: beam.PCollection[tuple[str, bytes]] = (packets, states) | f"With the {kind}" >> beam.Flatten()
    return both


def _brings(job: Evaluation, settings: TableSettings | JoinSettings) -> Brings | None:
    """Return the function that reads a shard's state, if the job starts from an export; else None."""
    return None if job.begins_with is None else partial(brought_state, job.begins_with, settings)


def _read(job: Evaluation, parquet_rows: int) -> beam.PTransform[Any, EventFiles]:
    """Return the transform that reads the events, or predictions and labels in step by their times."""
    shards = (job.settings.shards or 1) if job.join is None else job.join.settings.shards
    if job.streams is not None and (way := job.streams.way) != "live":
        return ReadStream(job.streams.cut_off(job.cut()).inputs, shards, way, job.streams.tick)
    if job.join is None:
        return ReadEventFiles(
            job.sources,
            job.fields,
            shards,
            parquet_rows,
            merged=job.settings.evaluator.by_time,
            timing=job.timing,
            located=job.settings.deduplicate is not None,
            cut=job.cut(),
        )
    sides: tuple[tuple[Role, Sequence[SourceFile], EventFields], ...] = (
        ("prediction", job.sources, job.fields),
        ("label", job.join.labels, replace(job.fields, time=job.join.label_time)),
    )
    files = [
        FilePartition(source, number, role, fields, job.timing, True, parquet_rows)
        for role, sources, fields in sides
        for number, source in enumerate(sources)
    ]
    return ReadFiles(files, shards, merged=True, cut=job.cut())


def _evaluate_beside(
    packets: beam.PCollection[tuple[str, bytes]], number: int, other: Beside, job: Evaluation
) -> None:
    """Write rows of the same events under other settings. The job itself reports the dead letters."""
    step = f"{BESIDE} {number}"
    rows, *_ = packets | f"{step} evaluate" >> EvaluateShards(other.settings, job.fields, job.cache_bytes)
    write = write_batches(other.output, rows_of(other.settings.evaluator), job.sinks)
    _ = rows | f"{step} in columns" >> beam.ParDo(InColumns()) | f"{step} write rows" >> write


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
