"""A job that works off a backlog: checkpoints complete while it does, so that a kill does not begin anew."""

from __future__ import annotations

import pytest

from tests.support.requirements import servers


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    servers("flink", "kafka")
    from benchmarks.cluster_jobs import Stage

    with Stage(tmp_path_factory.mktemp("backlog"), checkpoint_seconds=1) as started:
        yield started


def test_checkpoints_complete_while_a_backlog_is_worked_off(stage):
    """One checkpoint spanned all of it: the ticks of a worker's start had read it in one bundle."""
    from benchmarks.cluster_events import Events, Feed, TopicWatch
    from benchmarks.cluster_jobs import ClusterJob, wait_until

    events = Events(1_200_000, models=100)  # some seconds of work, and a checkpoint each second
    stage.broker.create_topic("backlog", partitions=events.partitions)
    stage.broker.create_topic("rows", partitions=1)
    feed = Feed(stage.broker.address, "backlog", events, at_once=events.number + events.partitions, rate=1)
    feed.start()
    feed.join()
    watch = TopicWatch(stage.broker.address, "rows")
    words = ["--shards", "8", "--output", stage.url("rows")]
    job = ClusterJob(stage, stage.url("backlog"), *events.options(), *words)
    watch.start()
    try:
        job.start()
        wait_until(lambda: watch.new > 0, "rows come", 240)
        before = job.checkpoints()
        wait_until(lambda: job.checkpoints() >= before + 2, "checkpoints come")
        assert watch.new < events.rows, "they came before the backlog was worked off"
        wait_until(lambda: watch.new >= events.rows, "all rows come", 240)
    finally:
        job.cancel()
        watch.stop()
