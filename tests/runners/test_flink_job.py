"""What becomes of a job whose launcher ends, where no cluster can be asked; the others in `tests/servers`."""

from __future__ import annotations

import re

import pytest
from rocsteady.runners.flink_job import leave
from rocsteady.runners.presets import choose_runner


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
