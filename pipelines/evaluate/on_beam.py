"""Runs a job as a Beam pipeline: reads files or topics of scored events, writes rows of measures.

A job that fails leaves no output (see `outputs`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from apache_beam.metrics.metric import Metrics
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from ...core.alerts.columns import Kind
from ...core.errors import ConfigError
from ...core.join.join_settings import JoinSettings
from ...core.process.console import show
from ...core.process.standard_streams import write_out
from ...core.process.temporary_folders import temporary_folder
from ...core.rows.arrow import rows_to_arrow
from ...core.rows.rows import Rows
from ...core.settings.classes import Classes
from ...core.settings.evaluator import EvaluatorSettings
from ...core.settings.table import TableSettings
from ...transforms.beam.machine import Brings
from ...transforms.beam.metrics import METRICS_NAMESPACE, see
from ...transforms.evaluate.choices import events_at_once
from ...transforms.evaluate.shards import EvaluateShards
from ...transforms.events.fields import EventFields, Role
from ...transforms.files.formats import SourceFile
from ...transforms.sinks.batches import InBatches
from ...transforms.sinks.kinds import (
    ALERTS,
    CURVES,
    DEAD_LETTERS,
    TableKind,
    curve_batches,
    kind_of_rows,
    row_schema,
)
from ...transforms.sinks.open import is_streamed, write_batches
from ...transforms.sources.files.read import EventFiles, FilePartition, ReadEventFiles, ReadFiles
from ...transforms.state.write import ReadStates, WriteStates, brought_state, step_of
from ..outputs import STDOUT, staged
from .counted import BESIDE, run_counted
from .job import Beside, Evaluation, Outcome
from .losses import refusal
from .page import report_on
from .pairs import compared
from .roll_ups import rolled_up
from .summary import ProgressLine, summarise
from .take_up import savepoint_of

_BYTES_AT_ONCE = 1 << 20
"""Bytes of a file of rows copied to stdout at once."""


def evaluate_and_report(job: Evaluation) -> Outcome:
    """Run a job with a progress line, and print its summary. Rows for stdout are printed at the end."""
    sources = job.files()
    total = sum(source.size for source in sources)
    with temporary_folder() as folder:
        rows = job.output
        if rows is None or rows == STDOUT:
            rows = str(Path(folder) / ("rows.parquet" if rows is None else "rows.jsonl"))
        with ProgressLine(enabled=job.runner.in_process, total_bytes=total, total_files=len(sources)):
            outcome = run_evaluation(replace(job, output=rows))
        if job.output == STDOUT:
            with Path(rows).open("rb") as lines:
                while part := lines.readlines(_BYTES_AT_ONCE):
                    write_out(b"".join(part))
        elif job.output is None:
            show_models(job, outcome, rows)
    try:
        outcome = _with_calls(job, outcome)
    except KeyboardInterrupt:  # the outputs are in their places, so the summary is true
        summarise(outcome, job)
        raise
    summarise(outcome, job)
    return outcome


def show_models(job: Evaluation, outcome: Outcome, rows: str) -> None:
    """Print the table of models of a job that keeps no rows. `rows` is a Parquet file."""
    from ...transforms.tables.read import ANY_ROWS, read_tables
    from ..report.glance import glance, width_of_terminal
    from ..report.report_rows import report_rows

    below = "rows: --output rows.parquet (or -: JSON lines); a page with charts: --report report.html"
    confidence, width = job.settings.evaluator.confidence, width_of_terminal()
    files = [rows] if outcome.counts["rows_written"] else []
    of_rows = report_rows(read_tables(files, ANY_ROWS)[0])
    lines = glance(of_rows, confidence, job.reference, [below], width, refused=refusal(outcome, job))
    show(*lines)


def run_evaluation(job: Evaluation) -> Outcome:
    """Build the pipeline, run it, wait for its end, and write the report if one is asked for.

    Raises RocsteadyError, with the reason in a sentence, if the job fails.
    """
    started = time.monotonic()
    outputs = [*(path for _, path, _ in job.outputs()), *(other.output for other in job.beside), job.export]
    paths = [path for path in outputs if path is not None and not is_streamed(path)]
    with staged(paths, job.runner.here) as places, temporary_folder() as folder:
        hidden = job.placed(dict(zip(paths, places, strict=True)))
        if hidden.report and not hidden.curves and job.settings.evaluator.curves is not None:
            hidden = replace(hidden, curves=str(Path(folder) / "curves.parquet"))
        copy = None
        if hidden.alerts is not None and (
            not hidden.alerts.path or hidden.alerts.recipients or hidden.report
        ):
            copy = str(Path(folder) / "alerts.parquet")
            hidden = replace(hidden, alerts=replace(hidden.alerts, copy=copy))
        check = None if job.streams is None else job.streams.check
        outcome = run_counted(_pipeline(hidden), job.runner, check)
        if copy is not None:
            order = [(name, "ascending") for name in ("time", "model", "slice", "row", "rule", "class")]
            outcome = replace(outcome, alerts=pa.parquet.read_table(copy).sort_by(order))
        report_on(hidden, outcome)
    return replace(outcome, seconds=time.monotonic() - started)


def _with_calls(job: Evaluation, outcome: Outcome) -> Outcome:
    """Call the recipients of the job's alerts; return the outcome with the counts of the calls."""
    if job.alerts is None or not job.alerts.recipients or outcome.alerts is None:
        return outcome
    from .delivery import Delivery

    with Delivery(job.alerts.recipients, most=None) as delivery:
        delivery.put(outcome.alerts)
        delivery.finish()
        return replace(outcome, counts=outcome.counts + delivery.counts())


def _pipeline(job: Evaluation) -> beam.Pipeline:
    try:
        pipeline = beam.Pipeline(runner=job.runner.engine, options=job.runner.options)
    except ValueError as error:
        raise ConfigError(f"Beam refuses its options: {' '.join(str(error).split())}") from None
    events = pipeline | "Read" >> _read(job, events_at_once(job.settings.evaluator))
    packets, letters = events.packets, [events.dead_letters]
    states: list[beam.PCollection[bytes]] = []
    awaits = job.begins_with is not None
    if job.join is not None:
        from ...transforms.evaluate.join_labels import JoinShards

        packets, brings = _with_states(packets, job, job.join.settings)
        shards = JoinShards(
            job.join.settings, job.fields, job.cache_bytes, label_time=job.join.label_time, awaits=awaits,
            brings=brings,
        )  # fmt: skip
        packets, unmatched, join_states = packets | "Join" >> shards
        letters.append(unmatched)
        states.append(join_states)
    pairs = None
    if job.pairs is not None:
        packets, pairs = compared(packets, job.pairs, job.settings, job.fields, job.cache_bytes, job.sinks)
    begun, brings = _with_states(packets, job, job.settings)
    evaluate = EvaluateShards(
        job.settings,
        job.fields,
        job.cache_bytes,
        awaits=awaits,
        brings=brings,
        tells=job.roll_ups is not None,
    )
    rows, refused, evaluator_states = begun | "Evaluate" >> evaluate
    if job.export is not None or (job.streams is not None and job.streams.gives_state):
        all_states = [*states, evaluator_states] | "All states" >> beam.Flatten()
        _ = all_states | "Write states" >> WriteStates(job.steps(), job.export)
    write = write_batches(job.output or "", rows_of(job.settings.evaluator, job.settings.classes), job.sinks)
    _ = rows | "In columns" >> beam.ParDo(InColumns()) | "Write rows" >> write
    for number, other in enumerate(job.beside):
        _evaluate_beside(packets, number, other, job)
    if job.dead_letters is not None:
        all_letters = [*letters, refused] | "All letters" >> beam.Flatten()
        _ = all_letters | "Write dead letters" >> write_batches(job.dead_letters, DEAD_LETTERS, job.sinks)
    rolled = None
    if job.roll_ups is not None:
        rolled = rolled_up(rows, job.roll_ups, job.settings.shards, job.cache_bytes, job.sinks)
    if job.alerts is not None:
        from ...transforms.evaluate.alert import Alert

        watched = []
        of_kinds: tuple[tuple[str, Any, Kind], ...] = (
            ("Alert", rows, "row"),
            ("Alert of groups", rolled, "roll-up row"),
            ("Alert of pairs", pairs, "pair row"),
        )
        for label, watched_rows, kind in of_kinds:
            if rules := job.alerts.rules_of(kind):
                watch = Alert(*rules, shards=job.settings.shards or 1, cache_bytes=job.cache_bytes)
                watched.append(watched_rows | label >> watch)
        alerts = watched[0] if len(watched) == 1 else watched | "All alerts" >> beam.Flatten()
        alerts = alerts | "Alerts in columns" >> InBatches(ALERTS)
        for label, path in (("Write alerts", job.alerts.path), ("Keep alerts", job.alerts.copy)):
            if path is not None:
                _ = alerts | label >> write_batches(path, ALERTS, job.sinks)
    if job.curves is not None:
        curves = rows | "Curves" >> beam.FlatMap(curve_batches).with_output_types(pa.RecordBatch)
        _ = curves | "Write curves" >> write_batches(job.curves, CURVES, job.sinks)
    return pipeline


def _with_states(
    packets: beam.PCollection[tuple[str, bytes]], job: Evaluation, settings: TableSettings | JoinSettings
) -> tuple[beam.PCollection[tuple[str, bytes]], Brings | None]:
    """Return a step's packets together with its shards' first states, and the function that reads a state.

    The function is None if the job does not start from an export.
    """
    if job.begins_with is None:
        return packets, None
    kind = step_of(settings)
    states = packets.pipeline | f"States of the {kind}" >> ReadStates(job.begins_with, kind)
    both = (packets, states) | f"With the {kind}" >> beam.Flatten()
    return both, partial(brought_state, job.begins_with, settings)


def _read(job: Evaluation, parquet_rows: int) -> beam.PTransform[Any, EventFiles]:
    """Return the transform that reads the events, or predictions and labels in step by their times."""
    shards = job.reading_shards
    if job.streams is not None and (way := job.streams.way) != "live":
        from ...transforms.sources.streams.read import ReadStream

        inputs, resumes = job.streams.cut_off(job.cut()).inputs, bool(savepoint_of(job))
        return ReadStream(inputs, shards, way, resumes=resumes)
    if job.join is None:
        return ReadEventFiles(
            job.sources,
            job.fields,
            shards,
            parquet_rows,
            merged=job.settings.evaluator.by_time,
            timing=job.timing,
            located=job.located,
            cut=job.cut(),
        )
    sides: tuple[tuple[Role, Sequence[SourceFile], EventFields], ...] = (
        ("prediction", job.sources, job.fields),
        ("label", job.join.labels, job.fields_of("label")),
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
    """Evaluate the job's packets under the settings of `other` too, and write the rows to its output.

    The dead letters of this evaluation are dropped: the job's own evaluation reports the same dead letters.
    """
    step = f"{BESIDE} {number}"
    rows, *_ = packets | f"{step} evaluate" >> EvaluateShards(other.settings, job.fields, job.cache_bytes)
    write = write_batches(other.output, rows_of(other.settings.evaluator), job.sinks)
    _ = rows | f"{step} in columns" >> beam.ParDo(InColumns()) | f"{step} write rows" >> write


def rows_of(settings: EvaluatorSettings, classes: Classes | None = None) -> TableKind:
    """Return the table kind of rows, with the evaluator's settings in the schema's metadata.

    Only Parquet files keep the metadata.
    """
    return kind_of_rows(row_schema(settings, classes))


_GATHERED = 10_000


_COUNTED = {
    "rows_with_a_positive": ("positives",),
    "rows_with_a_predicted_positive": ("tp", "fp"),
    "rows_with_a_predicted_negative": ("tn", "fn"),
    "rows_with_counts": ("tp", "fp", "tn", "fn"),
}


def held_in(rows: Rows) -> dict[str, int]:
    """Return, for the name of each counter, the number of rows in which one of its columns is above 0."""
    counts = {}
    for name, columns in _COUNTED.items():
        held = sum((rows.number(column) > 0 for column in columns), np.zeros(len(rows), np.bool_))
        # NaN, the value of a measure that was not asked for, is not > 0
        counts[name] = int(np.count_nonzero(held))
    return counts


class InColumns(beam.DoFn):
    """Turns rows into record batches; counts rows by `held_in`, for the warnings of the summary.

    The warnings only ask whether a counter is 0, so a retried bundle does no harm. Rows come a few at a
    time, and a batch of 50 columns costs the same for one row as for thousands. So the rows of a bundle are
    gathered into one batch.
    """

    def __init__(self) -> None:
        self._counters = {name: Metrics.counter(METRICS_NAMESPACE, name) for name in _COUNTED}

    def start_bundle(self) -> None:
        """Begin without rows."""
        self._held: list[Rows] = []
        self._count = 0

    def process(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """Hold rows; yield a batch when enough rows are held."""
        see(rows)
        self._held.append(rows)
        self._count += len(rows)
        if self._count >= _GATHERED:
            yield self._gathered()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield a batch of the rows that are left: curves, or a word on time, may come without rows."""
        if self._count:
            yield GlobalWindows.windowed_value(self._gathered())

    def _gathered(self) -> pa.RecordBatch:
        rows = Rows.concat(self._held)
        self._held, self._count = [], 0
        for name, number in held_in(rows).items():
            if number:
                self._counters[name].inc(number)
        return rows_to_arrow(rows)
