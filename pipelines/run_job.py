"""A pipeline is run to its end: what it counted, or why it failed, in a sentence."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections import Counter
from contextlib import suppress

import apache_beam as beam
import grpc
from apache_beam.runners.runner import PipelineResult

from ..core.errors import RocsteadyError
from ..runners.flink_job import leave
from ..runners.presets import Runner
from ..transforms.dead_letters import KINDS
from ..transforms.metrics import METRICS_NAMESPACE, letter_metrics
from .evaluation import Outcome
from .runner_log import sentence_in
from .stopping import MainThreadOnly

_STEP = re.compile(r" \[while running '.*?'\]")
"""Beam's remark on the step in which an error occurred: it may stand in the middle of a sentence."""

BESIDE = "Beside"
"""Begins the names of the steps whose counters are of events that another step has counted."""


def run_pipeline(pipeline: beam.Pipeline, runner: Runner) -> Outcome:
    """Run a pipeline to its end, and return what it counted.

    Raises RocsteadyError, with the reason in a sentence, where the job fails.
    """
    result = None
    complain = threading.excepthook
    interrupted = False
    threading.excepthook = lambda told: None if _is_cut_wire(told) else complain(told)
    try:
        result = pipeline.run()
        state = result.wait_until_finish()
    except KeyboardInterrupt:
        interrupted = True
        # Beam's threads lose their wires from here on, log it and print it; the command puts both back.
        logging.getLogger().handlers[:] = [logging.NullHandler()]
        sys.stderr = MainThreadOnly(sys.stderr)
        if runner.kind == "flink":
            if (told := leave(runner)) is not None:
                print(f"rocsteady: {told}", file=sys.stderr, flush=True)
        elif result is not None and not runner.here:  # it would go on without us
            with suppress(Exception):
                result.cancel()
        raise
    except Exception as error:
        raise RocsteadyError(reason_of(error)) from error
    finally:
        if not interrupted:  # else its threads may still fall over
            threading.excepthook = complain
    if str(state) not in ("DONE", "None"):
        raise RocsteadyError(f"the job ended in state {state}; the runner's log says why")
    return _outcome(result)


def _is_cut_wire(told: threading.ExceptHookArgs) -> bool:
    """Tell whether a thread of Beam lost its wire: the job failed or was interrupted, and says so itself."""
    return isinstance(told.exc_value, grpc.RpcError)


def _outcome(result: PipelineResult) -> Outcome:
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
    reasons = [
        (kind_of[namespace], name, int(letters.count), int(letters.min))
        for (namespace, name), letters in found.items()
        if namespace in kind_of
    ]
    times = found.get((METRICS_NAMESPACE, "event_seconds"))
    return Outcome(
        counts,
        sorted(reasons, key=lambda reason: (-reason[2], reason[:2])),
        None if times is None else (int(times.min), int(times.max)),
    )


def reason_of(error: BaseException) -> str:
    """Find the sentence in what a runner made of an error of ours.

    Runners hand on an error from a worker as text, traceback and all.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, RocsteadyError):
            return _without_step(str(seen))
        if (sentence := sentence_in(str(seen))) is not None:
            return _without_step(sentence)
        seen = seen.__cause__ or seen.__context__
    last = (str(error).strip().splitlines() or [""])[-1]
    name = type(error).__name__
    said = last if name == "RuntimeError" else f"{name}: {last}"  # a worker's error is text, its name in it
    return f"the job failed: {_without_step(said)}"


def _without_step(sentence: str) -> str:
    return _STEP.sub("", sentence)
