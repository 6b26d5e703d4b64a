"""What a job says of events that it had read and not applied."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.pipelines.evaluate.job import Evaluation, Outcome
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
