"""What becomes of a job whose launcher ends, where no cluster can be asked; the others in `tests/servers`."""

from __future__ import annotations

import re
from time import sleep

import pytest
from rocsteady.runners import flink_job
from rocsteady.runners.flink_job import JobWatch, leave, restarted
from rocsteady.runners.presets import choose_runner

from tests.support.servers.json_server import json_server


def test_a_job_in_a_cluster_of_its_own_ends_with_it():
    assert leave(choose_runner("flink")) is None


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--job_endpoint=127.0.0.1:1"], "and fails on the cluster of the job server 127.0.0.1:1; cancel it"),
        (["--job_endpoint=far:1", "--environment_type=EXTERNAL"],
         "the job nightly goes on, on the cluster of the job server far:1"),
        (["--flink_master=127.0.0.1:1"],
         "the cluster at http://127.0.0.1:1 does not say what became of the job nightly: .*refused"),
    ],
)  # fmt: skip
def test_what_cannot_be_cancelled_is_told_of(flags, words):
    assert re.search(words, leave(choose_runner("flink", ["--job_name=nightly", *flags])) or "")


def test_a_job_gets_a_name_of_its_own_where_nobody_named_it():
    names = {choose_runner("flink").options.get_all_options()["job_name"] for _ in range(2)}
    assert len(names) == 2
    assert choose_runner("local").options.get_all_options()["job_name"] is None


def cluster_that_says(answers):
    """A REST interface that gives its answers one after the other, and the last one for ever."""
    return json_server(lambda _: answers.pop(0) if len(answers) > 1 else answers[0])


def test_a_job_that_was_sent_is_told_of_with_its_page_and_its_states(monkeypatch):
    monkeypatch.setattr(flink_job, "_WATCH_SECONDS", 0.01)
    job = {"name": "nightly", "jid": "ab12", "start-time": 7, "state": "RUNNING"}
    other = {**job, "name": "daily", "jid": "cd34"}
    states = ["RUNNING", "RUNNING", "RESTARTING", "RUNNING", "FINISHED"]
    answers = [
        {"jobs": [other]},
        {"odd": 1},
        *({"jobs": [other, {**job, "state": state}]} for state in states),
    ]
    said: list[str] = []
    with cluster_that_says(answers) as address:
        runner = choose_runner("flink", [f"--flink_master={address}", "--job_name=nightly"])
        with JobWatch(runner, said.append):
            while len(said) < 4:  # a state is told after the answer that brought it has gone out
                sleep(0.001)
    page = f"http://{address}/#/job/running/ab12/overview"
    assert said == [
        f"the job nightly is ab12 on the cluster; its page: {page}",
        "the job nightly: RUNNING",
        "the job nightly: RESTARTING",
        "the job nightly: RUNNING",
    ]


def test_a_job_without_a_cluster_of_its_own_is_not_watched():
    with JobWatch(choose_runner("local"), pytest.fail), JobWatch(choose_runner("flink"), pytest.fail):
        pass


@pytest.mark.parametrize(
    ("answers", "moment"),
    [
        ([{"timestamps": {"RESTARTING": 1_700_000_000_000, "RUNNING": 5}}], "2023-11-14T22:13:20Z"),
        ([{"timestamps": {"RESTARTING": 0, "RUNNING": 5}}], ""),
        ([{"errors": []}], ""),
    ],
)
def test_when_a_job_was_begun_again_is_asked_of_the_cluster(answers, moment):
    job = {"name": "nightly", "jid": "ab12", "start-time": 7, "state": "FINISHED"}
    with cluster_that_says([{"jobs": [job]}, *answers]) as address:
        runner = choose_runner(
            "flink", [f"--flink_master={address}", "--job_name=nightly", "--flink_version=1.19"]
        )
        assert restarted(runner) == moment


def test_a_job_of_no_cluster_was_not_begun_again_as_far_as_is_known():
    assert restarted(choose_runner("local")) == ""
    assert restarted(choose_runner("flink", ["--flink_master=127.0.0.1:1"])) == ""
