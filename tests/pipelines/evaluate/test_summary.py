"""What a job says of events that it had read and not applied, and what it lets through of its runner's log.

Like lines of the log come rarely, errors of ours as their sentence, remarks on checked options not at all.
"""

from __future__ import annotations

import io
import logging
from collections import Counter
from dataclasses import replace

import pytest
from rocsteady.core.errors import InputError
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.pipelines.evaluate.job import Evaluation, Outcome
from rocsteady.pipelines.evaluate.run import RunnerLog
from rocsteady.pipelines.evaluate.streams.growing import GrowingSource
from rocsteady.pipelines.evaluate.summary import ProgressLine, summarise
from rocsteady.runners.presets import choose_runner
from rocsteady.transforms.beam.progress import Progress
from rocsteady.transforms.events.fields import EventFields


@pytest.fixture
def job(tmp_path):
    runner, fields, settings = choose_runner("flink"), EventFields(), TableSettings(EvaluatorSettings())
    job = Evaluation((), fields, settings, "rows/", None, 0, runner)
    return replace(job, streams=GrowingSource(str(tmp_path)).streams(job))


def said(capsys, job, **counts):
    summarise(Outcome(Counter(counts), [], None), job)
    return capsys.readouterr().err.splitlines()


def test_what_waits_when_a_stream_is_stopped_is_no_defect(job, capsys):
    lines = said(capsys, job, events_read=200, events_applied=144, rows_written=1)
    assert lines == [
        "rocsteady: 200 events read = 144 applied + 0 dead letters; 1 row in rows/ (0.0 s)",
        "rocsteady: 56 records wait for their turn in the state of the job: a savepoint has them",
    ]


def test_what_a_savepoint_held_is_no_defect(job, capsys):
    assert len(said(capsys, job, events_read=44, events_applied=100, rows_written=1)) == 1


def test_counters_of_a_job_that_was_begun_again_are_told_to_be_so(job, capsys):
    """They may be more or fewer than were read, and say nothing of what waits."""
    for applied in (144, 210):
        counts = Counter(events_read=200, events_applied=applied, rows_written=1)
        summarise(Outcome(counts, [], None, restarted="2026-11-23T10:00:00Z"), job)
        first, second = capsys.readouterr().err.splitlines()
        assert f"200 events read = {applied} applied" in first
        assert "begun again after a failure, last at 2026-11-23T10:00:00Z: its runner's counters" in second


def test_learners_are_trained_behind_what_was_read():
    line = ProgressLine(False, 10, 1, reports=lambda instances: instances // 25)
    assert line._line(Progress(40, 0, 4), 1.0) == "40 instances read (40%); 1 s"
    trained = line._line(Progress(100, 0, 10, 1, 3), 9.0)
    assert trained == "100 instances read, training and testing (75%); 9 s"


@pytest.fixture
def logged():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RunnerLog())
    logger = logging.Logger("runner")
    logger.addHandler(handler)

    def lines(*calls):
        for call in calls:
            call(logger)
        return stream.getvalue().splitlines()

    return lines


def failed(logger, error):
    logger.error("%s [while running 'Apply']", error, exc_info=error)


def test_an_error_of_ours_is_a_sentence_and_comes_once(logged):
    said = "window was 'last:5'"
    texts = [f"instruction {n}:\n  File x\nrocsteady.core.errors.InputError: {said}" for n in range(3)]
    calls = [lambda logger, text=text: logger.error(text) for text in texts]
    assert logged(lambda logger: failed(logger, InputError(said)), *calls) == [said]


def test_other_lines_pass_with_their_tracebacks(logged):
    lines = logged(lambda logger: failed(logger, ValueError("not ours")))
    assert lines == ["not ours [while running 'Apply']", "ValueError: not ours"]


def test_options_that_were_checked_are_not_remarked_on(logged):
    assert logged(
        lambda logger: logger.warning("Unparseable argument: --max_bundle_size=1000"),
        lambda logger: logger.warning("Waiting for a channel"),
    ) == ["Waiting for a channel"]
