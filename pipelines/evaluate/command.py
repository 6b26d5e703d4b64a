"""`rocsteady evaluate`: makes a checked job from the options, and runs the job on Beam or in this process.

Every mistake that can be found before the job starts ends the command with exit status 2.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import StandardOptions

from ...core.alerts.rules import Span
from ...core.errors import ConfigError
from ...core.join.join_settings import JoinSettings
from ...core.process.console import ConsoleFormatter, say
from ...core.settings.periods import Period
from ...core.settings.table import TableSettings
from ...core.state.compile_ahead import compiled_ahead
from ...core.verdicts.choice import reference_of
from ...runners.preflight import problem
from ...runners.presets import Runner
from ...runners.reasons import RunnerLog
from ...runners.submit import starts_no_job
from ...transforms.beam import metrics
from ...transforms.files.formats import has_scheme
from ...transforms.sinks.kinds import row_schema
from ...transforms.sinks.open import SinkOptions, check_sink, is_streamed
from ...transforms.sources.files.listing import check_columns
from ..arguments import cache_bytes_of, option_of, refuse_given, whole_number
from ..monitoring.otlp import sent
from ..monitoring.prometheus import served
from ..monitoring.series import job_series
from ..outputs import check_csv_safe, check_outputs, check_texts
from .checkpoints import checkpoints_of, refuse_checkpoints
from .exit_status import parse_fail_rule, status_of
from .job import Evaluation, Output
from .on_beam import evaluate_and_report, run_evaluation
from .options import alerts_of, fields_of, runner_of, sources_of, table_of, timing_of
from .pairs import add_score_of_champion, pairs_of
from .recipients import refuse_recipients
from .roll_ups import roll_ups_of
from .streams.growing import GrowingSource, growing_source
from .streams.labels import join_of, label_records_of
from .streams.topics import Topics, refuse_outputs_to, topics_of
from .summary import goes_on
from .take_up import check_savepoint, state_taken_up

if TYPE_CHECKING:  # the packages of the page are an extra
    from ..serve.job import JobPage

_OF_LIVE_JOBS = (
    ": checkpoints are for a stream that this process reads without an end: stdin, --follow, or a topic "
    "without --until, with --runner local; leave it out"
)


def evaluate_command(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Run the command with parsed options and Beam's own options."""
    job = _planned(options, beam_flags)
    page = _page_of(job, options)
    with (
        _monitored(options),
        compiled_ahead(*_settings_to_compile(job)),
        state_taken_up(job, options) as whole,
    ):
        if whole.streams is not None and whole.streams.way == "live":
            from .live.run import evaluate_live

            return evaluate_live(whole, whole.streams, page)
        return _evaluate_on_beam(whole)


@contextmanager
def _monitored(options: argparse.Namespace) -> Iterator[None]:
    """While the block runs, give this process's numbers to monitoring systems, if options ask for that."""
    models = whole_number("--prometheus-models", options.prometheus_models, 0)
    if options.prometheus is None and options.otlp is None:
        yield
        return
    metrics.reset(models)
    series = job_series()
    try:
        with served(options.prometheus, series), sent(options.otlp, series):
            yield
    finally:
        metrics.reset()


def _settings_to_compile(job: Evaluation) -> tuple[TableSettings | JoinSettings, ...]:
    """Return the settings whose kernels a second process compiles: none if other processes do the work."""
    return job.shard_settings() if job.runner.in_process else ()


def _planned(options: argparse.Namespace, beam_flags: Sequence[str]) -> Evaluation:
    """Return the job that the options describe, completely checked."""
    check_texts(options, "model_name", "title")
    add_score_of_champion(options)
    fields = fields_of(options)
    settings = table_of(options, fields)
    cache_bytes = cache_bytes_of(options)
    runner = runner_of(options, beam_flags)
    _refuse_report(options, runner)
    records = label_records_of(options)
    source = topics_of(options) or growing_source(options, beam_flags)
    alerts = alerts_of(options, settings.evaluator, fields, runner.here)
    of_groups = () if alerts is None else alerts.rules_of("roll-up row")
    of_pairs = () if alerts is None else alerts.rules_of("pair row")
    roll_ups = roll_ups_of(options, settings.evaluator, of_groups)
    files = sources_of(options.sources) if source is None else ()
    join = join_of(options, fields, settings, records)
    pairs = pairs_of(options, fields, settings, of_pairs, on_stream=source is not None)
    if pairs is not None and runner.in_process:
        pairs = replace(pairs, most_shards=1)
    if pairs is not None and join is not None:
        shards = pairs.shards(settings)
        join = replace(join, settings=replace(join.settings, evaluator_shards=shards))
    if join is not None:  # the join itself finds repeated predictions
        settings = replace(settings, deduplicate=None)
    sinks = SinkOptions(tuple(options.kafka_option), options.parts, options.csv_safe)
    fail_if = tuple(map(parse_fail_rule, options.fail_if))
    job = Evaluation(
        files, fields, settings, options.output, options.dead_letters, cache_bytes, runner, options.curves,
        options.report, options.title, join=join, alerts=alerts, sinks=sinks, fail_if=fail_if,
        reference=reference_of(options.reference), roll_ups=roll_ups, pairs=pairs,
    )  # fmt: skip
    is_live = isinstance(source, GrowingSource) and options.runner == "local"
    shows = job.report is not None or options.serve is not None or job.output is None
    if job.reference is not None and not shows:
        raise ConfigError(
            f"--reference {options.reference!r} is what a page or a table compares with; give --report PATH "
            "or --serve :8080, or leave --output out"
        )
    if isinstance(job.reference, Span | Period) and job.reference.unit == "time" and fields.time is None:
        raise ConfigError(
            f"--reference {options.reference!r} is a time; name the events' times with --time COL"
        )
    if job.output is None and not runner.here:
        raise ConfigError(
            f"--output is missing, and runner {options.runner!r} writes its files elsewhere; name where the "
            "rows go"
        )
    if job.report is not None and job.output is not None and is_streamed(job.output) and not is_live:
        raise ConfigError(
            f"--report {job.report}: the rows go to {job.output}, where they cannot be read again by "
            "this job; make the page from them, with rocsteady rows and rocsteady report"
        )
    if runner.kind == "dataflow":
        _refuse_this_machine(job, options)
    if isinstance(source, Topics):
        refuse_outputs_to(source, job.outputs())
    _check_files(job)
    job = replace(job, timing=timing_of(options, settings.evaluator))
    if not runner.in_process:
        why = (
            f" is for the counters of this process, and runner {options.runner!r} works in others; fetch "
            "Beam's metrics from it, or leave the option out"
        )
        refuse_given(options, why, "prometheus", "otlp")
    if source is None or source.is_bounded or options.runner != "local":
        refuse_checkpoints(options, _OF_LIVE_JOBS)
    return job if source is None else _on_streams(job, source, options)


def _refuse_this_machine(job: Evaluation, options: argparse.Namespace) -> None:
    """Raise ConfigError for a file of this machine.

    Workers of Dataflow would look for the file on their own machines.
    """
    labels = () if job.join is None else job.join.labels
    named = [
        *(("SOURCE", file.path) for file in job.sources),
        *(("--labels", file.path) for file in labels),
        *((option, path) for option, path, _ in job.outputs()),
        *((option_of(name), getattr(options, name)) for name in ("import_state", "export_state", "control")),
    ]
    for option, path in named:
        if path is not None and not has_scheme(path):
            raise ConfigError(
                f"{option} {path} is on this machine, and workers on Dataflow do not see it; give a URL, "
                "such as gs://BUCKET/PATH, or a topic"
            )


def _refuse_report(options: argparse.Namespace, runner: Runner) -> None:
    """Raise ConfigError for a title without a report, or for a report without the files that it needs."""
    if options.title is not None and options.report is None and options.serve is None:
        raise ConfigError(
            f"--title {options.title!r} stands above a report; name its file with --report PATH, "
            "or its address with --serve :8080"
        )
    if options.report is not None and not runner.here:
        raise ConfigError(
            f"--report {options.report}: runner {options.runner!r} writes its files elsewhere; make the page "
            "from the rows, with rocsteady report"
        )


def _page_of(job: Evaluation, options: argparse.Namespace) -> JobPage | None:
    """Return the page of --serve; None without --serve.

    Raises ConfigError for a page of a job that does not read a stream in this process.
    """
    if options.serve is None:
        if options.serve_token is not None:
            raise ConfigError("--serve-token: it is for a page; name its address with --serve :8080")
        return None
    if job.streams is None or job.streams.way != "live":
        raise ConfigError(
            f"--serve {options.serve}: a page is served of a stream that this process reads (-, --follow, or "
            "topics on runner local); make a page of files with --report"
        )
    from ..report.facts import TITLE
    from ..serve.job import JobPage
    from ..serve.pages import Look

    settings = job.settings.evaluator
    tables = (("alerts", job.alerts), ("roll-ups", job.roll_ups), ("pairs", job.pairs))
    places = {what: made.path for what, made in tables if made is not None}
    places |= {} if job.curves is None else {"curves": str(job.curves)}
    look = Look(job.title or TITLE, settings.confidence, job.reference, tuple(places))
    places = {"rows": job.output, **places}
    metadata = row_schema(settings).metadata
    return JobPage.of(options.serve, options.serve_token, look, metadata, places, job.sinks.kafka)


def _check_files(job: Evaluation) -> None:
    """Check that outputs can be written and are not inputs, and that inputs have the needed columns."""
    check_csv_safe(job.sinks.csv_safe, [output.path for output in job.outputs()])
    check_outputs([(*output, _check_of(output, job.sinks)) for output in job.outputs()], job.files())
    check_columns(job.sources, job.fields, "event" if job.join is None else "prediction")
    if job.join is not None:
        check_columns(job.join.labels, job.fields_of("label"), "label")


def _check_of(output: Output, sinks: SinkOptions) -> Callable[[str], None]:
    """Return the function that checks whether an output's path can be written."""
    if output.content == "report":
        from ..report.report import check_report_path

        return check_report_path
    return lambda path: check_sink(path, sinks, f"{output.option} {path}")


def _on_streams(job: Evaluation, source: Topics | GrowingSource, options: argparse.Namespace) -> Evaluation:
    """Return the job with the partitions of the streams that it reads."""
    evaluator = job.settings.evaluator
    if not source.is_bounded and evaluator.order == "time":  # a stream is never sorted as a whole
        settings = replace(job.settings, evaluator=replace(evaluator, order="time:0s"))
        job = replace(job, settings=settings, timing=replace(job.timing, lateness=0))
    streams = source.streams(job)
    job = replace(job, streams=streams.asked_by(options.control))
    if streams.way == "live":  # in this process, where one shard is the fastest
        job = _in_one_shard(job)
        return replace(job, checkpoints=checkpoints_of(options, job, streams))
    if streams.way != "bounded":
        if job.alerts is not None and job.alerts.recipients:
            refuse_recipients(job.alerts.recipients, f"on runner {options.runner} the job goes on for ever")
        if options.export_state is not None:
            raise ConfigError(
                f"--export-state {options.export_state}: on runner {options.runner} the job goes on for "
                "ever; give it --control FILE, and ask with rocsteady state export"
            )
        _refuse_files(job)
        job.runner.options.view_as(StandardOptions).streaming = True
    return job


def _in_one_shard(job: Evaluation) -> Evaluation:
    """Return the job with one shard of the join, and one of the evaluators."""
    join = job.join
    job = replace(job, settings=replace(job.settings, shards=1), join=None)
    if join is None:
        return job
    settings = replace(join.settings, shards=1, evaluator_shards=job.reading_shards)
    return replace(job, join=replace(join, settings=settings))


def _refuse_files(job: Evaluation) -> None:
    """Raise ConfigError if a job without an end has an output file that is written only at the end."""
    for option, path, _ in job.outputs():
        if not is_streamed(path):
            raise ConfigError(
                f"{option} {path}: it would be there at the end of a stream, which has none; write to a "
                "folder, such as rows/, or to a topic, or read a topic up to --until latest"
            )


def _evaluate_on_beam(job: Evaluation) -> int:
    """Run a job on its runner. Raises ConfigError if a requirement of the runner is not met."""
    if (missing := problem(job.runner)) is not None:
        raise ConfigError(f"runner {job.runner.name}: {missing}")
    check_savepoint(job)
    if not job.runner.here:  # log every line of the runner, but repeated lines rarely
        handler = logging.StreamHandler()
        handler.setFormatter(ConsoleFormatter())
        handler.addFilter(RunnerLog())
        logging.getLogger().handlers[:] = [handler]
    if (why := starts_no_job(job.runner)) is not None:
        run_evaluation(job)
        say(why)
        return 0
    outcome = evaluate_and_report(job)
    return status_of(outcome.counts, job.fail_if, goes_on=goes_on(job, outcome))
