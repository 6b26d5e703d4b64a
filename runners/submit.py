"""Submits a pipeline to its runner, such as Flink, and waits for the end of the job.

A job that fails raises an error with the reason in a sentence. Ctrl-C cancels the job or leaves the job on
its cluster.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import GoogleCloudOptions, TestOptions
from apache_beam.runners.portability.job_server import StopOnExitJobServer
from apache_beam.runners.runner import PipelineResult

from ..core.errors import RocsteadyError
from ..core.process.console import say
from ..core.process.standard_streams import MainThreadOnly
from .flink_job import JobWatch, cancel, leave
from .listening import close_ports, on_this_machine
from .presets import Runner
from .reasons import CANCELLED, reason_of

_LOST = "the server of the job does not answer any more (its process may have ended)"

_CHECK_SECONDS = 5.0
"""Seconds between two checks of a job on Flink."""


class _Checked:
    """A context in which a thread calls `check` from time to time, and cancels the job when `check` raises.

    Flink begins a job again after each error of a worker, so an error that stays would never end the job.

    error  the error that `check` raised; None if it raised none
    """

    def __init__(self, runner: Runner, check: Callable[[], None] | None) -> None:
        self.error: RocsteadyError | None = None
        self._runner = runner
        self._check = check
        self._ended = threading.Event()

    def __enter__(self) -> _Checked:
        if self._check is not None and self._runner.kind == "flink":
            threading.Thread(target=self._watch, args=(self._check,), name="checks", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _watch(self, check: Callable[[], None]) -> None:
        while not self._ended.wait(_CHECK_SECONDS):
            try:
                check()
            except RocsteadyError as error:
                self.error = error
                cancel(self._runner)
                return


def run_pipeline(
    pipeline: beam.Pipeline, runner: Runner, check: Callable[[], None] | None = None
) -> PipelineResult:
    """Run a pipeline to its end, and return Beam's result, which has the job's metrics.

    check  a function that is called from time to time while a job runs on Flink; an error that it raises ends
           the job

    Raises RocsteadyError, with the reason in a sentence, if the job fails.
    """
    result = None
    complain = threading.excepthook
    threads_may_fail = False
    # A thread that lost its connection prints nothing: the job reports its own failure or interruption.
    threading.excepthook = lambda told: None if isinstance(told.exc_value, grpc.RpcError) else complain(told)
    if (warning := close_ports(runner.kind, pipeline.options)) is not None:
        say(warning)
    checked = _Checked(runner, check)
    try:
        with on_this_machine(), _signals_are_ours(), JobWatch(runner, say), checked:
            result = pipeline.run()
            state = result.wait_until_finish()
    except KeyboardInterrupt:
        threads_may_fail = True
        _silence_threads()
        _stop_job_server()
        if runner.kind == "flink":
            if (told := leave(runner)) is not None:
                say(told)
        elif result is not None and not runner.here:  # the job would go on after this process
            with suppress(Exception):
                result.cancel()
        raise
    except Exception as error:
        if checked.error is not None:
            raise checked.error from None
        if result is None or not _is_lost(error):
            raise RocsteadyError(reason_of(error)) from error
        threads_may_fail = True
        _silence_threads()
        told = leave(runner) if runner.kind == "flink" else "its state is lost: start the job again"
        raise RocsteadyError("; ".join(filter(None, (_LOST, told)))) from error
    finally:
        if not threads_may_fail:
            threading.excepthook = complain
    if checked.error is not None:
        raise checked.error
    if str(state) == "CANCELLED":
        raise RocsteadyError(CANCELLED)
    if str(state) not in ("DONE", "None"):
        raise RocsteadyError(f"the job ended in state {state}; the runner's log says why")
    return result


def _silence_threads() -> None:
    """Let no thread log or print. Beam's threads do so when they lose their connections.

    The command restores the log handlers and stderr.
    """
    logging.getLogger().handlers[:] = [logging.NullHandler()]
    sys.stderr = MainThreadOnly(sys.stderr)


def _is_lost(error: Exception) -> bool:
    """Return whether the connection to the server that runs the job, or gives it to a cluster, was lost."""
    return isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.UNAVAILABLE


@contextmanager
def _signals_are_ours() -> Iterator[None]:
    """While the block runs, make Beam's new job servers pass SIGINT only to our handler.

    Beam's own handler (2.77) stops the server while the handler holds a lock. A second Ctrl-C ran the handler
    again in the same thread. The second run waited for ever for the lock of the first run.
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


def starts_no_job(runner: Runner) -> str | None:
    """Return, in a sentence, what a run does instead of starting a job; None if the run starts a job."""
    if runner.kind != "dataflow":
        return None
    if runner.options.view_as(TestOptions).dry_run:
        return "--dry_run: the job can be described to Dataflow, and is not started"
    if (place := runner.options.view_as(GoogleCloudOptions).template_location) is not None:
        return f"the job is described in {place}, and Dataflow starts it"
    return None
