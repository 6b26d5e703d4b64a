"""A live job from its start to its end: `rocsteady evaluate -`, `--follow`, and topics with `--runner local`.

No runner without a server streams well, so a live job runs in this process. It has the same readers as a job
on a runner, and evaluates their packets in one table. The rows equal those of a file with the same records in
the same order. Rows are written when they are due.

Ctrl-C, or SIGTERM, ends the input: all records read by then are evaluated, the last rows are made, and the
exit status is 0. So `tail -f events | rocsteady evaluate -` ends in the same way whether the signal ends
`tail` before or after this process. A job with checkpoints stops without last rows instead, and continues
when it is started again (`checkpoints`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet

from ....core.errors import InputError, RocsteadyError
from ....core.events.rejected import Reason
from ....core.process.console import say
from ....core.process.temporary_folders import temporary_folder
from ....core.state.compile_ahead import warm_up
from ....transforms.sinks.appended import STDOUT
from ....transforms.sinks.open import is_appendable, is_streamed, open_sink
from ....transforms.sources.streams.folder_partition import FolderPartition
from ....transforms.sources.streams.reader import FEW_RECORDS, StreamReader
from ....transforms.sources.streams.stream_input import StreamInput
from ...outputs import staged
from ...stopping import StopOnSignal
from ..delivery import Delivery
from ..exit_status import status_of
from ..job import Evaluation, Outcome, Streams
from ..on_beam import show_models
from ..page import counters_of, report_on
from ..recipients import Recipient
from ..summary import ProgressLine, summarise
from .checkpoints import LiveCheckpoints, opened, told_of_end
from .evaluation import LiveEvaluation, Sinks, kinds_of

if TYPE_CHECKING:  # the packages of the page are an extra
    from ...serve.job import JobPage, PageFeed

_WAIT_SECONDS = 0.1
"""Seconds to wait for a single partition, before the next check whether the job was asked to end."""

_COUNT_SECONDS = 1.0

_POLL_SECONDS = 0.01
"""Seconds between two looks at partitions without new records."""

_REST_SECONDS = 0.1
"""Seconds between two steps of a partition that had few records and then no more: any step costs 3 ms."""


def _opened(job: Evaluation, copies: Mapping[str, str], closing: ExitStack, *, resumes: bool) -> Sinks:
    """Open the sinks of a job, and files for further copies of the batches of a kind.

    closing  closes the sinks
    resumes  whether the outputs have the rows of an earlier process
    """
    kinds = kinds_of(job)
    sinks: Sinks = {kind: [] for kind in kinds}
    for kind, path in (*((kind, path) for _, path, kind in job.outputs()), *copies.items()):
        if kind in kinds:
            sink = open_sink(path, kinds[kind], job.sinks, resumes=resumes)
            closing.callback(sink.close)
            sinks[kind].append(sink)
    return sinks


def evaluate_live(job: Evaluation, streams: Streams, page: JobPage | None = None) -> int:
    """Run a live job to its end and print its summary; return the exit status.

    page  the page that is served while the job runs

    Raises RocsteadyError if the job fails. Files of lines then hold the rows made so far; other output files
    do not exist.
    """
    started = time.monotonic()
    with ProgressLine(
        enabled=_shows_progress(job)
    ):  # before the handlers that only set a mark, because signals must interrupt compilations
        for settings in job.shard_settings():
            warm_up(settings)
    recipients = () if job.alerts is None else job.alerts.recipients
    with opened(job) as checkpoints, ExitStack() as serving:
        if checkpoints is not None and checkpoints.has_ended:
            checkpoints.check_end(streams, job.reading_shards)
            return 0
        resumes = checkpoints is not None and checkpoints.begun is not None
        feed = None if page is None else serving.enter_context(page.served(resumes=resumes))
        return _run_to_end(job, streams, checkpoints, recipients, started, feed)


def _run_to_end(
    job: Evaluation,
    streams: Streams,
    checkpoints: LiveCheckpoints | None,
    recipients: Sequence[Recipient],
    started: float,
    feed: PageFeed | None,
) -> int:
    """Run a job until its input ends or a signal comes.

    started  the job's start, monotonic
    feed     what gives news to the page of the job; None if there is no page
    """
    try:
        with StopOnSignal() as stop, Delivery(recipients) as delivery:
            outcome, has_ended = _evaluated(job, streams, stop, delivery, checkpoints, feed)
            outcome = replace(outcome, seconds=time.monotonic() - started)
            with suppress(KeyboardInterrupt):  # a second signal leaves out calls, but no rows
                delivery.finish(lambda: stop.signal is not None)
            delivery.give_up()
            outcome = replace(outcome, counts=outcome.counts + delivery.counts())
    except KeyboardInterrupt:
        if job.checkpoints is not None:
            say(f"interrupted; the same command goes on from the last checkpoint in {job.checkpoints.folder}")
        else:
            say("interrupted; the last rows are missing, and files that are written at the end")
        return 130
    summarise(outcome, job)
    if job.checkpoints is not None:
        say(told_of_end(job.checkpoints.folder, has_ended=has_ended))
    of_files = (Reason.FILE_UNREADABLE, Reason.FILE_CHANGED)
    unread = sum(number for _, reason, number, _ in outcome.letters if reason in of_files)
    return status_of(outcome.counts, job.fail_if, goes_on=not has_ended, unread=unread)


def _shows_progress(job: Evaluation) -> bool:
    return sys.stderr.isatty() and not (job.output == STDOUT and sys.stdout.isatty())


def _evaluated(
    job: Evaluation,
    streams: Streams,
    stop: StopOnSignal,
    delivery: Delivery,
    checkpoints: LiveCheckpoints | None,
    feed: PageFeed | None,
) -> tuple[Outcome, bool]:
    """Evaluate the streams, and write the outputs; return also whether the job came to its end.

    A job with checkpoints that is asked to stop does not end: it continues when it is started again.
    """
    begun = None if checkpoints is None else checkpoints.begun
    at_end = [path for _, path, _ in job.outputs() if not is_appendable(path) and not is_streamed(path)]
    with staged(at_end, True) as places, temporary_folder() as folder, ExitStack() as closing:
        hidden = job.placed(dict(zip(at_end, places, strict=True)))
        kinds = ("rows", "curves", "alerts", "roll-ups", "pairs")
        copies = {kind: str(Path(folder) / f"{kind}.parquet") for kind in kinds}
        copied = copies if job.report is not None or job.output is None else {}
        sinks = _opened(hidden, copied, closing, resumes=begun is not None)
        for kind, more in feed.sinks.items() if feed is not None else ():
            sinks[kind] += more
        with ProgressLine(enabled=_shows_progress(job)):
            live = LiveEvaluation(job, sinks, delivery, None if checkpoints is None else checkpoints.state)
            readers = _readers(streams.cut_off(job.cut()), job.reading_shards, checkpoints)
            has_ended = _drive(live, readers, stop, checkpoints, _Counting(job, feed))
            if feed is not None:
                feed.counters(counters_of(job, live.outcome()))
            for sink in chain.from_iterable(sinks.values()):
                sink.finish()
            if checkpoints is not None and has_ended:
                checkpoints.write(live, readers, ended=True)
        outcome = replace(live.outcome(), stopped=not has_ended)
        drawn = job.settings.evaluator.curves is not None
        curves = copies["curves"] if drawn else None
        told = outcome
        # alerts without a file were printed when they came
        if job.alerts is not None and job.report is not None:
            told = replace(outcome, alerts=pa.parquet.read_table(copies["alerts"]))
        roll_ups = hidden.roll_ups
        if roll_ups is not None and roll_ups.path is not None:
            roll_ups = replace(roll_ups, path=copies["roll-ups"])
        pairs = hidden.pairs and replace(hidden.pairs, path=copies["pairs"])
        told_job = replace(hidden, output=copies["rows"], curves=curves, roll_ups=roll_ups, pairs=pairs)
        report_on(told_job, told)
        if job.output is None:
            show_models(job, outcome, copies["rows"])
    return outcome, has_ended


class _Counting:
    """Gives the page of a job the counts of events, once in `_COUNT_SECONDS`."""

    def __init__(self, job: Evaluation, feed: PageFeed | None) -> None:
        self._job = job
        self._feed = feed
        self._due = 0.0

    def tell(self, live: LiveEvaluation) -> None:
        """Give the counts to the page if they are due."""
        if self._feed is not None and (now := time.monotonic()) >= self._due:
            self._due = now + _COUNT_SECONDS
            self._feed.counters(counters_of(self._job, live.outcome()))


def _readers(streams: Streams, shards: int, checkpoints: LiveCheckpoints | None) -> list[StreamReader]:
    """Return the readers of the partitions, at their beginnings or at the places of a checkpoint."""
    if checkpoints is not None:
        return checkpoints.readers(streams, shards)
    return [StreamReader(source, shards) for source in streams.inputs]


def _tell_of_waiting(readers: Sequence[StreamReader]) -> bool:
    """Print that folders of one role are complete while others are not; return whether that was printed."""
    sources: dict[bool, list[StreamInput]] = {True: [], False: []}
    for reader in readers:
        if isinstance(reader.source.partition, FolderPartition) and reader.source.partition.idle is None:
            sources[reader.ended].append(reader.source)
    ended, left = sources[True], sources[False]
    if not ended or not left or {source.role for source in ended} & {source.role for source in left}:
        return False
    complete, others = (", ".join(source.partition.name for source in each) for each in (ended, left))
    say(f"{complete} is complete, and {others} is not: the job goes on until a file _END is there, too")
    return True


def _drive(
    live: LiveEvaluation,
    readers: Sequence[StreamReader],
    stop: StopOnSignal,
    checkpoints: LiveCheckpoints | None,
    counting: _Counting,
) -> bool:
    """Read the partitions in step by their times, so that few records must wait in memory.

    Returns True when the input ends, and False if a job with checkpoints was asked to stop.
    """
    told = "the input ends here; once more, and the job ends without its last rows"
    if checkpoints is not None:
        told = "the job stops here, without last rows"
    wait = _WAIT_SECONDS if len(readers) == 1 else 0.0
    asked = told_of_waiting = False
    rests = dict.fromkeys(readers, 0.0)  # the monotonic time until which each reader rests
    try:
        while not asked and not all(reader.ended for reader in readers):
            if checkpoints is not None:
                checkpoints.write_if_due(live, readers)
            came = rested = False
            for reader in sorted(readers, key=lambda reader: reader.settled):
                if time.monotonic() < rests[reader]:
                    rested = True
                    continue
                step = reader.step(wait=wait)
                if step.at_end and 0 < step.records < FEW_RECORDS:
                    rests[reader] = time.monotonic() + _REST_SECONDS
                if checkpoints is not None and reader.ended and stop.is_asked(told):
                    return False  # the signal also ended the program that writes to stdin
                live.take_step(step, reader.source.role)
                if came := bool(step.records):
                    break
            if not (came or rested or told_of_waiting):
                told_of_waiting = _tell_of_waiting(readers)
            live.note_added(sum(reader.added for reader in readers))
            live.tend()
            counting.tell(live)
            if not came and (not wait or rested):
                time.sleep(_POLL_SECONDS)
            asked = stop.is_asked(told)
        if asked and checkpoints is not None:
            checkpoints.write(live, readers)
            return False
        for reader in readers:
            for step in reader.finish():
                live.take_step(step, reader.source.role)
                live.tend()
        live.end()
    except InputError as error:
        if live.read:  # the job had begun
            raise RocsteadyError(str(error)) from None
        raise
    else:
        return True
    finally:
        for reader in readers:
            reader.close()
