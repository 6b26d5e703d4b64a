"""`rocsteady prequential`: trains, tests, measures and compares learners over folds of a stream."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
from pyarrow import parquet

from ...core.compare.comparisons import OF_CLASSES, ComparisonRow
from ...core.errors import ConfigError, InputError
from ...core.prequential.fold_settings import PrequentialSettings
from ...core.prequential.folds import Folds
from ...core.prequential.instances import Task
from ...core.prequential.learners import LearnerSpec
from ...core.process.console import say
from ...core.settings.classes import class_name, class_text
from ...core.settings.evaluator import EvaluatorSettings
from ...core.state.compile_ahead import compiled_ahead
from ...runners.preflight import problem
from ...runners.presets import Runner
from ...transforms.events.class_fields import by_value, listed
from ...transforms.events.fields import EventFields
from ...transforms.events.lateness import Timing
from ...transforms.events.losses import losses
from ...transforms.files.formats import SourceFile, has_scheme
from ...transforms.kafka.topic import is_kafka
from ...transforms.prequential.prequential import measured_folds
from ...transforms.sinks.batches import InBatches
from ...transforms.sinks.comparisons import COMPARISONS, MEANS
from ...transforms.sinks.kinds import DEAD_LETTERS, TableKind
from ...transforms.sinks.open import PLAIN_SINKS, write_batches
from ...transforms.sources.files.listing import check_columns
from ...transforms.sources.files.read import FilePartition, ReadFiles
from ...transforms.tables.read import ANY_ROWS, read_tables, rows_settings
from ..arguments import cache_bytes_of, level, number, time_format_of, whole_number
from ..evaluate.counted import run_counted
from ..evaluate.exit_status import FailRule, parse_fail_rule, status_of
from ..evaluate.job import Outcome
from ..evaluate.losses import running_text
from ..evaluate.on_beam import InColumns, rows_of
from ..evaluate.options import evaluator_of, runner_of, sources_of, timing_of
from ..evaluate.summary import ProgressLine
from ..outputs import check_texts, staged
from ..tables import compared_measures, summary
from ..words import counted
from .columns import InstanceColumns, instance_columns

COMPARISONS_FILE, LETTERS_FILE = "comparisons.parquet", "dead_letters.parquet"
_TITLE = "How well learners rank and decide on a stream"
FILES = ("rows.parquet", COMPARISONS_FILE, "means.parquet", LETTERS_FILE, "report.html")


@dataclass(frozen=True)
class PrequentialJob:
    """The checked settings of a run.

    output  the folder in which the run writes FILES
    """

    sources: Sequence[SourceFile]
    fields: EventFields
    settings: PrequentialSettings
    timing: Timing
    output: Path
    runner: Runner
    cache_bytes: int
    title: str | None
    fail_if: Sequence[FailRule]


def prequential_command(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Run the command with parsed options and Beam's own options."""
    started = time.monotonic()
    sys.path.insert(0, "")  # as with python -m, a learner may be a module in the working folder
    job = _planned(options, beam_flags)
    if (missing := problem(job.runner)) is not None:
        raise ConfigError(f"runner {job.runner.name}: {missing}")
    size = sum(source.size for source in job.sources)
    paths = [str(job.output / name) for name in FILES]  # a job that fails leaves no file
    with (
        compiled_ahead(*([job.settings.compiled] if job.runner.in_process else [])),
        ProgressLine(job.runner.in_process, size, len(job.sources), partial(_reports_of, job.settings)),
        staged(paths, job.runner.here) as (*tables, report),
    ):
        outcome = run_counted(_pipeline(job, tables), job.runner)
        if job.runner.here:
            _report_on(job, tables, report)
    for line in _said(job, outcome):
        say(line)
    say(f"{job.output}/ ({time.monotonic() - started:.1f} s)")
    return status_of(outcome.counts, job.fail_if, "instances_tested")


def _reports_of(settings: PrequentialSettings, instances: int) -> int:
    """Return how many reports a run makes for a number of instances; 0 = not known."""
    every = settings.evaluator.every
    if not every.events:
        return 0
    return len(settings.learners) * settings.folds.count * -(-instances // every.events)


def _planned(options: argparse.Namespace, beam_flags: Sequence[str]) -> PrequentialJob:
    check_texts(options, "title", "output")
    runner = runner_of(options, beam_flags)
    if stream := next((path for path in options.sources if path == "-" or is_kafka(path)), None):
        raise ConfigError(
            f"SOURCE {stream}: learners are trained here on files and made-up streams; on a stream that goes "
            "on, apply rs.Prequential to it in a pipeline of your own"
        )
    sources = sources_of(options.sources)
    columns = instance_columns(sources[0], _instance_fields(options), options.feature, options.category)
    for doubt in columns.doubts:
        say(doubt)
    if (names := _class_names(options, columns)) is not None:
        columns = columns._replace(fields=replace(columns.fields, class_names=names))
    settings = _settings(options, columns)
    settings.try_learners(columns.fields.features, columns.fields.slice_columns)
    check_columns(sources, columns.fields, "instance")
    return PrequentialJob(
        sources, columns.fields, settings,
        timing_of(options, settings.evaluator), _folder(options.output, sources), runner,
        cache_bytes_of(options), options.title, tuple(map(parse_fail_rule, options.fail_if)),
    )  # fmt: skip


def _instance_fields(options: argparse.Namespace) -> EventFields:
    """Return the roles of the columns, without the features."""
    several = [name for name in ("multiclass", "class_scores") if getattr(options, name)]
    if several and options.positive is not None:
        raise ConfigError(
            f"--positive {options.positive} with --{several[0].replace('_', '-')}: classes have no positive "
            "one; leave one out"
        )
    if len(several) > 1:
        raise ConfigError(
            f"--multiclass with --class-scores {options.class_scores}: labels are classes already; leave "
            "--multiclass out"
        )
    return EventFields(
        label=options.label,
        positive=options.positive,
        model_name="instances",
        time=options.time,
        time_unit=options.time_unit,
        time_format=time_format_of(options),
        id=options.id,
        classes=bool(several),
    )


def _class_names(options: argparse.Namespace, columns: InstanceColumns) -> tuple[str, ...] | None:
    """Return the classes, if learners give a score of each class; None if they do not."""
    if (asked := options.class_scores) is None:
        return None
    if asked == "*":
        return tuple(sorted(columns.classes, key=by_value))
    if "*" in asked:
        raise ConfigError(
            f"--class-scores {asked}: learners give the scores, so there are no columns of them; give '*' "
            "for all classes of the labels, or name the classes, such as cat,dog"
        )
    return tuple(class_name(name) for _, name in listed(asked))


def _settings(options: argparse.Namespace, columns: InstanceColumns) -> PrequentialSettings:
    """Return the settings of the run. Raises ConfigError for options that do not go together."""
    evaluator = evaluator_of(options, None)
    noise = number("--noise", options.noise)
    batch = whole_number("--batch", options.batch, 1)
    learners = tuple(
        LearnerSpec.parse(text, noise, batch, trust=options.trust_learners) for text in options.learner
    )
    folds = Folds(
        options.method,
        whole_number("--folds", options.folds, 2),
        whole_number("--seed", options.seed, 0),
        not options.no_prequential,
    )
    names = columns.fields.class_names
    known = names or (tuple(map(class_text, columns.classes)) if options.multiclass else ())
    task = Task(not columns.fields.classes, evaluator.threshold, known, scores=bool(names))
    alpha = level(f"--alpha {options.alpha}", options.alpha, ".05")
    return PrequentialSettings(learners, folds, evaluator, task, _compared(options, evaluator), alpha)


def _compared(options: argparse.Namespace, evaluator: EvaluatorSettings) -> tuple[str, ...]:
    """Return the measures by which learners are compared.

    Raises ConfigError for a measure that cannot be compared.
    """
    measures = compared_measures("--compare", options.compare)
    for name in measures:
        if name not in (*OF_CLASSES, *(evaluator.measures or ())):
            raise ConfigError(f"--compare {name}: it is not among --measures; add it there")
    return measures


def _folder(path: str, sources: Sequence[SourceFile]) -> Path:
    """Return the output folder; make the folder if it does not exist.

    Raises InputError if the folder cannot be written to.
    """
    if has_scheme(path) or not path:
        raise InputError(f"--output {path!r}: name a folder of this machine")
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {path} cannot be a folder: {error.strerror}; name another") from None
    for source in sources:
        if Path(source.path).resolve() in {(folder / name).resolve() for name in FILES}:
            raise InputError(f"--output {path}: {source.path} there is also an input; name another folder")
    return folder


def _pipeline(job: PrequentialJob, places: Sequence[str]) -> beam.Pipeline:
    settings = job.settings
    files = [
        FilePartition(source, number, "instance", job.fields, job.timing, True)
        for number, source in enumerate(job.sources)
    ]
    pipeline = beam.Pipeline(runner=job.runner.engine, options=job.runner.options)
    read = pipeline | "Read" >> ReadFiles(files, 1, merged=settings.evaluator.by_time)
    rows, compared, late = measured_folds(read.packets, settings, job.fields, job.cache_bytes)
    letters = [read.dead_letters, late] | "All letters" >> beam.Flatten()
    comparisons = compared.comparisons | "Comparisons in columns" >> InBatches(COMPARISONS)
    means = compared.means | "Means in columns" >> InBatches(MEANS)
    written: list[tuple[str, beam.PCollection[pa.RecordBatch], TableKind]] = [
        (
            "rows",
            rows | "In columns" >> beam.ParDo(InColumns()),
            rows_of(settings.evaluator, settings.classes),
        ),
        ("comparisons", comparisons, COMPARISONS),
        ("means", means, MEANS),
        ("dead letters", letters, DEAD_LETTERS),
    ]
    for (name, batches, kind), place in zip(written, places, strict=True):
        _ = batches | f"Write {name}" >> write_batches(place, kind, PLAIN_SINKS)
    return pipeline


def _report_on(job: PrequentialJob, tables: Sequence[str], path: str) -> None:
    """Write the report about a job whose tables are complete."""
    from ..report.report import write_report
    from ..report.report_rows import Tables, count_dead_letters

    rows_path, comparisons_path, means_path, letters_path = tables
    rows, oddities = read_tables([rows_path], ANY_ROWS)
    comparisons, _ = read_tables([comparisons_path], "comparisons")
    means, _ = read_tables([means_path], "means")
    write_report(
        rows,
        path,
        Tables(
            counters=count_dead_letters(read_tables([letters_path], "dead letters")[0]),
            comparisons=comparisons,
            means=means,
        ),
        title=job.title or _TITLE,
        confidence=job.settings.evaluator.confidence,
        settings=rows_settings([rows_path]),
        notes=[_about(job), *oddities],
    )


def _about(job: PrequentialJob) -> str:
    """Return a sentence on how instances were dealt to the folds."""
    folds = job.settings.folds
    how = {
        "bootstrap": "each fold trains on an instance Poisson(1) times",
        "cv": "all folds but one train on an instance",
        "split": "one fold trains on an instance",
    }[folds.method]
    tests = (
        "a fold tests exactly what it trains on, just before" if folds.prequential
        else "a fold tests what it does not train on"
    )  # fmt: skip
    noise = max(spec.noise for spec in job.settings.learners)
    flipped = f" Predictions are flipped with probability {noise:g}." if noise else ""
    evaluator = job.settings.evaluator
    unit = " instances" if evaluator.every.events else ""
    names = [source.name.rpartition("/")[2] for source in job.sources]
    sources = ", ".join(names[:5]) + ", ..." * (len(names) > 5)
    return (
        f"{counted(folds.count, 'fold')} of every learner, by {folds.method}: {how}; {tests}.{flipped} "
        f"Window {evaluator.window} of what a fold tested, a checkpoint every {evaluator.every}{unit}, seed "
        f"{folds.seed}. Source: {sources}."
    )


def _said(job: PrequentialJob, outcome: Outcome) -> Iterator[str]:
    """Yield sentences: the counts of the instances, and which learner is better than which at the end.

    The counts of the instances, and which learner is better than which other at the end.
    """
    counts = outcome.counts
    settings = job.settings
    yield (
        f"{counted(counts['events_read'], 'instance')}, {counted(len(settings.learners), 'learner')} of "
        f"{counted(settings.folds.count, 'fold')}: tested {counts['instances_tested']:,} times, learnt "
        f"{counts['instances_learnt']:,} times"
    )
    for kind, reason, count, _ in outcome.letters:
        yield f"{count:,} {kind}: {reason}; see {job.output / LETTERS_FILE}"
    for loss in losses(counts, [letter[:3] for letter in outcome.letters]):
        yield running_text(loss, job.fields, "instance")
    if job.runner.here:
        of_wilcoxon = [("test", "=", "wilcoxon")]
        rows = parquet.read_table(job.output / COMPARISONS_FILE, filters=of_wilcoxon).to_pylist()
        yield from summary([ComparisonRow(**row) for row in rows])
