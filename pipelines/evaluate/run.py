"""A pipeline is run to its end: what it counted, or why it failed, in a sentence."""

from __future__ import annotations

import logging
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType

import apache_beam as beam
import grpc
from apache_beam.runners.portability.job_server import StopOnExitJobServer
from apache_beam.runners.runner import PipelineResult

from ...core.errors import RocsteadyError
from ...core.process.console import say
from ...runners.flink_job import JobWatch, leave, restarted
from ...runners.listening import close_ports, on_this_machine
from ...runners.presets import Runner
from ...transforms.beam.metrics import METRICS_NAMESPACE, letter_metrics
from ...transforms.events.dead_letters import KINDS
from ..stopping import MainThreadOnly
from .job import Outcome
from .runner_log import sentence_in

_STEP = re.compile(r" \[while running '.*?'\]")
"""Beam's remark on the step in which an error occurred: it may stand in the middle of a sentence."""

_CANCELLED = "the job was cancelled on its cluster; its counters are not known, and what was written stays"

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
    if (warning := close_ports(runner.kind, pipeline.options)) is not None:
        say(warning)
    try:
        with on_this_machine(), _signals_are_ours(), JobWatch(runner, say):
            result = pipeline.run()
            state = result.wait_until_finish()
    except KeyboardInterrupt:
        interrupted = True
        # Beam's threads lose their wires from here on, log it and print it; the command puts both back.
        logging.getLogger().handlers[:] = [logging.NullHandler()]
        sys.stderr = MainThreadOnly(sys.stderr)
        _stop_job_server()
        if runner.kind == "flink":
            if (told := leave(runner)) is not None:
                say(told)
        elif result is not None and not runner.here:  # it would go on without us
            with suppress(Exception):
                result.cancel()
        raise
    except Exception as error:
        raise RocsteadyError(reason_of(error)) from error
    finally:
        if not interrupted:  # else its threads may still fall over
            threading.excepthook = complain
    if str(state) == "CANCELLED":
        raise RocsteadyError(_CANCELLED)
    if str(state) not in ("DONE", "None"):
        raise RocsteadyError(f"the job ended in state {state}; the runner's log says why")
    return replace(_outcome(result), restarted=restarted(runner))


@contextmanager
def _signals_are_ours() -> Iterator[None]:
    """While it is entered, job servers of Beam that begin to listen for SIGINT pass it on to us alone.

    Beam's own handler (2.77) stops the server under a lock. Where Ctrl-C came once more meanwhile, the same
    handler waited for that lock, which it held itself, for ever.
    """
    before = StopOnExitJobServer._sigint_handler
    StopOnExitJobServer._sigint_handler = _pass_on  # type: ignore[method-assign]
    try:
        yield
    finally:
        StopOnExitJobServer._sigint_handler = before  # type: ignore[method-assign]


def _pass_on(server: StopOnExitJobServer, number: int, frame: FrameType | None) -> None:
    if callable(server._original_sigint_handler):
        server._original_sigint_handler(number, frame)


def _stop_job_server() -> None:
    """Stop the job server that listens for SIGINT, if there is one."""
    server = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    if isinstance(server, StopOnExitJobServer):
        with suppress(Exception):
            server.stop()


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
    if "JobCancellationException" in str(error):  # Flink makes an error of it
        return _CANCELLED
    last = (str(error).strip().splitlines() or [""])[-1]
    name = type(error).__name__
    said = last if name == "RuntimeError" else f"{name}: {last}"  # a worker's error is text, its name in it
    return f"the job failed: {_without_step(said)}"


def _without_step(sentence: str) -> str:
    return _STEP.sub("", sentence)
