"""Runners by name, Beam's options checked before a job, words of a command line told apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import DirectOptions, GoogleCloudOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.prism_runner import PrismRunner
from rocsteady.runners.presets import FLINK_VERSIONS, RunnerError, choose_runner, join_values, refuse_unknown


@pytest.mark.parametrize("name", ["local", "DirectRunner", "FnApiRunner"])
def test_local_names_the_engine_that_needs_no_download(name):
    runner = choose_runner(name)
    assert type(runner.engine) is FnApiRunner
    assert (runner.name, runner.in_process, runner.here) == (name, True, True)


@pytest.mark.parametrize(
    ("name", "engine", "in_process", "here"),
    [
        ("prism", PrismRunner, False, True),
        ("PrismRunner", PrismRunner, False, True),
        ("flink", FlinkRunner, False, False),
        ("FlinkRunner", FlinkRunner, False, False),
        ("BundleBasedDirectRunner", BundleBasedDirectRunner, True, True),
        ("apache_beam.runners.portability.flink_runner.FlinkRunner", FlinkRunner, False, False),
    ],
)
def test_other_runners_are_beams(name, engine, in_process, here):
    runner = choose_runner(name)
    assert type(runner.engine) is engine
    assert (runner.in_process, runner.here) == (in_process, here)


def test_labels_of_a_job_have_a_name_that_is_no_option_of_evaluate():
    options = choose_runner("dataflow", ["--job_labels=team=credit", "--job_labels=for=tests"]).options
    assert options.view_as(GoogleCloudOptions).labels == ["team=credit", "for=tests"]


def test_worker_processes_are_not_this_one():
    assert choose_runner("local", ["--direct_running_mode=multi_threading"]).in_process
    runner = choose_runner("local", ["--direct_running_mode=multi_processing", "--direct_num_workers=3"])
    assert not runner.in_process
    assert runner.options.view_as(DirectOptions).direct_num_workers == 3


@pytest.mark.parametrize("name", ["nonsense", "no_such_module.Runner", "os.NoRunner", ""])
def test_a_runner_that_cannot_be_had_is_named(name):
    with pytest.raises(RunnerError, match="local, prism, flink, dataflow") as caught:
        choose_runner(name)
    assert repr(name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_nearest_name_is_suggested():
    with pytest.raises(RunnerError, match=r"did you mean flink\?"):
        choose_runner("flnk")


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--direct_num_worker=2", r"--direct_num_worker .*did you mean --direct_num_workers\?"),
        ("--zzzzzzzz", "--zzzzzzzz is neither rocsteady's nor Beam's$"),
        ("--direct_num_workers=two", "'two'"),
        ("--job_name", "expected one argument"),
        ("word", "'word' belongs to no option"),
    ],
)
def test_an_option_that_beam_would_drop_is_an_error(flag, words):
    with pytest.raises(RunnerError, match=words):
        refuse_unknown([flag])
    with pytest.raises(RunnerError, match=words):
        choose_runner("local", [flag])


def test_a_file_behind_two_dashes_is_named_where_files_stand_before_the_options_too():
    with pytest.raises(RunnerError, match=r"'b\.csv' belongs to no option"):
        refuse_unknown(["--", "b.csv"])


def test_values_are_joined_to_beams_options_and_nothing_else_is_touched():
    words = "a.csv --every 5 --job_name nightly --streaming b.csv --direct_num_workers=2 -- --c d"
    joined = words.replace("--job_name nightly", "--job_name=nightly")
    assert " ".join(join_values(words.split(" "), {"--every"})) == joined
    assert join_values([], set()) == []
    assert join_values(["--job_name"], set()) == ["--job_name"]


def test_an_unknown_option_is_compared_with_ours_and_beams():
    with pytest.raises(RunnerError, match=r"--evry .*did you mean --every\?"):
        join_values(["--evry", "5"], {"--every"})
    with pytest.raises(RunnerError, match=r"did you mean --flink_master\?"):
        join_values(["--flink-master=x"], {"--every"})


def test_the_page_names_the_versions_of_flink_that_beam_has_job_servers_for():
    page = Path(__file__).parents[2] / "docs" / "how-to" / "flink.md"
    *others, last = FLINK_VERSIONS
    assert f"job servers for Flink {', '.join(others)} and {last}." in page.read_text("utf-8")
