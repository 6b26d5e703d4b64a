"""Runs a pipeline by `runners.submit`, and reads from Beam's metrics what the job counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import apache_beam as beam

from ...runners.flink_job import restarted
from ...runners.presets import Runner
from ...runners.submit import run_pipeline, starts_no_job
from ...transforms.beam.metrics import METRICS_NAMESPACE, letter_metrics
from ...transforms.events.dead_letters import KINDS
from .job import Outcome

BESIDE = "Beside"
"""Prefix of the names of steps that evaluate events again: their counters are not added to the job's."""


def run_counted(pipeline: beam.Pipeline, runner: Runner, check: Callable[[], None] | None = None) -> Outcome:
    """Run a pipeline to its end, and return what its job counted; nothing where no job is started.

    Arguments and errors are those of `run_pipeline`.
    """
    result = run_pipeline(pipeline, runner, check)
    if starts_no_job(runner) is not None:
        return Outcome(Counter(), [], None)
    metrics = {
        kind: [metric for metric in found if not (metric.key.step or "").startswith(BESIDE)]
        for kind, found in result.metrics().query().items()
    }
    counts: Counter[str] = Counter()
    for metric in metrics["counters"]:
        if metric.key.metric.namespace == METRICS_NAMESPACE:
            counts[metric.key.metric.name] += int(metric.result)
    found = {
        (each.key.metric.namespace, each.key.metric.name): each.result for each in metrics["distributions"]
    }
    kind_of = {letter_metrics(kind): kind for kind in KINDS}
    letters: list[tuple[str, str, int, int]] = [
        (kind_of[namespace], name, int(told.count), int(told.min))
        for (namespace, name), told in found.items()
        if namespace in kind_of
    ]
    letters.sort(key=lambda letter: (-letter[2], letter[:2]))
    times = found.get((METRICS_NAMESPACE, "event_seconds"))
    span = None if times is None else (int(times.min), int(times.max))
    return Outcome(counts, letters, span, restarted=restarted(runner))
