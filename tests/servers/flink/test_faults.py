"""The short ones of `benchmarks.faults`: after them the rows of a job are those of an undisturbed run."""

from __future__ import annotations

import pytest

from tests.support.requirements import servers


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    servers("flink", "kafka")
    from benchmarks.cluster_jobs import Stage

    with Stage(tmp_path_factory.mktemp("faults")) as started:
        yield started


@pytest.fixture(scope="module")
def trial(stage):
    from benchmarks.cluster_events import Events
    from benchmarks.faults import Trial

    return Trial(stage.folder, Events(32_000), rate=1_500)


@pytest.mark.parametrize("fault", [pytest.param("task-manager", marks=pytest.mark.gate), "rescale"])
def test_no_row_is_lost_or_wrong_after(stage, trial, fault):
    line = trial.run(stage, fault)
    assert (line.lost, line.wrong, line.rows) == (0, 0, 320), line.notes
    assert line.notes == ()
