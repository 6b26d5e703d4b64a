"""A live job from its start to its end: `rocsteady evaluate -`, `--follow`, and topics with `--runner local`.

No runner without a server streams well, so a live job runs in this process. It has the same readers as a job
on a runner, and evaluates their packets in one table. The rows equal those of a file with the same records in
the same order.

Ctrl-C, or SIGTERM, ends the input: all records read by then are evaluated, the last rows are made, and the
exit status is 0. So `tail -f events | rocsteady evaluate -` ends in the same way whether the signal ends
`tail` before or after this process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from ....core.errors import InputError, RocsteadyError
from ....core.process.console import say
from ....core.table.table import warm_up
from ....transforms.sinks.append import STDOUT
from ....transforms.sources.streams.reader import StreamReader
from ...stopping import StopOnSignal
from ..exit_status import status_of
from ..job import Evaluation, Streams
from ..summary import ProgressLine, summarise
from .evaluation import LiveEvaluation
from .outputs import live_outputs

_WAIT_SECONDS = 0.1
"""Seconds to wait for a single partition, before the next check whether the job was asked to end."""

_POLL_SECONDS = 0.01
"""Seconds between two reads of several partitions without new records."""


def evaluate_live(job: Evaluation, streams: Streams) -> int:
    """Run a live job to its end and print its summary; return the exit status.

    Raises RocsteadyError where the job fails. Files of lines then hold the rows made so far; other output
    files do not exist.
    """
    started = time.monotonic()
    visible = sys.stderr.isatty() and not (job.output == STDOUT and sys.stdout.isatty())
    try:
        with StopOnSignal() as stop, live_outputs(job) as outputs:
            with ProgressLine(enabled=visible):
                warm_up(job.settings)
                live = LiveEvaluation(job, outputs.write)
                _drive(live, streams.cut_off(job.cut()), stop, outputs.tend)
                outputs.finish()
            outcome = live.outcome(time.monotonic() - started)
            outputs.report(outcome)
    except KeyboardInterrupt:
        say("interrupted; the last rows are missing, and files that are written at the end")
        return 130
    summarise(outcome, job)
    if live.unread:
        what = "1 file, or a part of one," if live.unread == 1 else f"{live.unread} files, or parts of them,"
        say(f"{what} could not be read: see the dead letters")
    status = status_of(outcome.counts, job.fail_if)
    return 1 if live.unread else status


def _drive(live: LiveEvaluation, streams: Streams, stop: StopOnSignal, tend: Callable[[], None]) -> None:
    """Read the partitions in step by their times, so that few records have to wait in memory."""
    readers = [StreamReader(source, 1) for source in streams.inputs]
    wait = _WAIT_SECONDS if len(readers) == 1 else 0.0
    asked = False
    try:
        while not asked and not all(reader.ended for reader in readers):
            came = False
            for reader in sorted(readers, key=lambda reader: reader.settled):
                step = reader.step(wait=wait)
                live.take_step(step)
                if came := bool(step.records):
                    break
            live.note_unread(sum(reader.source.partition.unread_partitions() for reader in readers))
            tend()
            if not came and not wait:
                time.sleep(_POLL_SECONDS)
            asked = stop.is_asked("the input ends here; once more, and the job ends without its last rows")
        for reader in readers:
            for step in reader.finish():
                live.take_step(step)
                tend()
        live.end()
    except InputError as error:
        if live.read:  # the job had begun
            raise RocsteadyError(str(error)) from None
        raise
    finally:
        for reader in readers:
            reader.source.partition.close()
