"""What a runner needs: found, or missing with a remedy, without starting anything."""

from __future__ import annotations

import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.version import __version__ as beam_version
from rocsteady.pipelines.cli import main
from rocsteady.runners.preflight import findings, probe, problem
from rocsteady.runners.presets import PRESETS, RunnerError, ask_cluster, choose_runner, preset_flags

from tests.support.servers.json_server import json_server
from tests.support.thorough import first


def cluster(version="1.19.3", slots=2, free=1, body=None):
    """Answer as the REST interface of a Flink cluster does; yield host:port."""
    said = {"flink-version": version, "slots-total": slots, "slots-available": free}

    def answer(path):
        assert path == "/overview"
        return said if body is None else body

    return json_server(answer)


@pytest.fixture(autouse=True)
def nothing_fetched(monkeypatch, tmp_path):
    monkeypatch.setenv("ROCSTEADY_SERVERS", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))


def jar(tmp_path):
    path = tmp_path / "job-server.jar"
    path.write_bytes(b"PK")
    return f"--flink_job_server_jar={path}"


def found(*flags):
    return {each.what: each for each in findings(choose_runner("flink", flags))}


@pytest.mark.slow
def test_a_cluster_that_answers_says_its_version_and_slots(tmp_path):
    with cluster() as address:
        there = found(f"--flink_master={address}", jar(tmp_path))
        assert there["cluster"].good
        assert address in there["cluster"].said
        assert (there["slots"].good, there["slots"].said) == (True, "1 of 2 are free")
        assert there["workers"].said.startswith("LOOPBACK")
        assert f"--flink_version={1.19}" in preset_flags("flink", [f"--flink_master={address}"])


def test_a_job_server_for_another_flink_is_told_of(tmp_path):
    with cluster(version="1.20.1") as address:
        wrong = found(f"--flink_master={address}", jar(tmp_path), "--flink_version=2.0")["cluster"]
        assert not wrong.good
        assert wrong.said.endswith("say --flink_version=1.20")


@pytest.mark.parametrize("version", ["1.18.1", "1.9.3", "99.0"])
def test_a_flink_that_beam_has_no_job_server_for_is_told_of(version, tmp_path, capsys):
    (tmp_path / "s.csv").write_text("score,label\n.1,0\n.9,1\n")
    with cluster(version=version) as address:
        flags = ["--runner", "flink", f"--flink_master={address}", jar(tmp_path)]
        assert main(["doctor", *flags]) == 1
        said = f"cluster: Flink {version} at http://{address}; Beam {beam_version} has job servers for 1.19, "
        captured = capsys.readouterr()
        assert f"NOT {said}" in captured.out
        assert captured.err == ""
        assert main(["evaluate", f"{tmp_path}/s.csv", "--output", f"{tmp_path}/r.csv", *flags]) == 2
        assert said in capsys.readouterr().err


def test_a_cluster_with_too_few_slots_is_told_of(tmp_path):
    remedy = "stop a job, start a TaskManager, or give a smaller --parallelism"
    with cluster(free=0) as address:
        slots = found(f"--flink_master={address}", jar(tmp_path))["slots"]
        assert (slots.good, slots.said) == (False, f"0 of 2 are free, and the job needs 1: {remedy}")
    with cluster(slots=8, free=3) as address:
        slots = found(f"--flink_master={address}", jar(tmp_path), "--parallelism=4")["slots"]
        assert (slots.good, slots.said) == (False, f"3 of 8 are free, and the job needs 4: {remedy}")
        assert found(f"--flink_master={address}", jar(tmp_path), "--parallelism=3")["slots"].good


def test_a_port_where_something_else_listens_is_told_of_without_what_it_says(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with server.accept()[0] as wire:
                wire.sendall(b"\x00\x00\x12\x04 no HTTP\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(OSError, match=r"^what is there speaks no HTTP$"):
            ask_cluster(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()


def test_without_a_cluster_it_is_said_that_none_was_looked_at(tmp_path):
    assert found(jar(tmp_path))["cluster"].said.startswith(
        "none is named: the job server runs a Flink of its"
    )


@pytest.mark.parametrize("body", first(1, [b"<html>", b"", b"[]", b"{}"]))
def test_what_is_no_flink_is_told_of(tmp_path, body):
    with cluster(body=body) as address:
        assert "no Flink answers at" in found(f"--flink_master={address}", jar(tmp_path))["cluster"].said


@pytest.mark.parametrize(
    ("flags", "what", "words"),
    [
        (["--flink_master=127.0.0.1:1"], "cluster", "Connection refused.*--flink_master HOST:PORT"),
        (["--flink_master=localhost:808x"], "cluster", "nonnumeric port: '808x'"),
        (["--flink_job_server_jar=no.jar"], "job server", "no.jar is no file.*get flink"),
        (["--checkpointing_interval=-1"], "checkpoints", "without its state; leave it out"),
        (["--checkpointing_interval=often"], "checkpoints", "=often is no number of milliseconds"),
        (["--flink_master=far:8081", "--environment_type=LOOPBACK"], "workers", "EXTERNAL"),
        (["--environment_type=EXTERNAL", "--environment_config=localhost:1"], "workers",
         "`rocsteady-worker --pool 1` there"),
        (["--environment_type=EXTERNAL", "--environment_config=x"], "workers", "no HOST:PORT"),
        (["--flink_master=far:8081"], "workers", "Beam's own has no rocsteady.*EXTERNAL.*=IMAGE"),
        (["--environment_type=DOCKER"], "workers", "LOOPBACK for a cluster here, or EXTERNAL.*=IMAGE"),
        (["--environment_type=external", "--environment_config=localhost:1"], "workers",
         "=external is none of LOOPBACK, EXTERNAL"),
        (["--environment_type=PROCESS", '--environment_config={"command": "/no/it"}'], "workers", "/no/it"),
        (["--job_endpoint=localhost:1"], "job service", "nothing answers"),
    ],
)  # fmt: skip
def test_what_is_missing_comes_with_its_remedy(flags, what, words):
    missing = found(*flags)[what]
    assert not missing.good
    assert re.search(words, missing.said)


@pytest.mark.parametrize(
    "image", ["--environment_config=mine:1", "--environment_options=docker_container_image=mine:1"]
)
def test_containers_of_ones_own_image_are_taken(image):
    workers = found("--flink_master=far:8081", "--environment_type=DOCKER", image)["workers"]
    assert (workers.good, workers.said) == (True, "containers of mine:1, started by Docker")


def test_options_that_a_user_gives_are_not_added():
    flags = ["--max_bundle_size", "7", "--environment_type=EXTERNAL", "--checkpointing_interval=500"]
    added = preset_flags("flink", flags)
    names = [flag.partition("=")[0] for flag in added]
    assert names == [
        "--max_bundle_time_mills", "--max_cache_memory_usage_mb", "--finish_bundle_before_checkpointing",
    ]  # fmt: skip
    assert "--finish_bundle_before_checkpointing" in added, "a switch"
    assert preset_flags("flink", [*flags, *added]) == []
    assert preset_flags("local", []) == []


@contextmanager
def job_service(*names):
    """Answer as a job service that knows some options does; yield host:port."""

    class Service(beam_job_api_pb2_grpc.JobServiceServicer):
        def DescribePipelineOptions(self, *_):  # noqa: N802
            return beam_job_api_pb2.DescribePipelineOptionsResponse(
                options=[beam_job_api_pb2.PipelineOptionDescriptor(name=name) for name in names]
            )

    server = grpc.server(ThreadPoolExecutor(1))
    beam_job_api_pb2_grpc.add_JobServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def test_a_job_service_says_whether_it_is_flinks():
    with job_service("parallelism", "flink_master", "checkpointing_interval") as address:
        runner = choose_runner("PortableRunner", [f"--job_endpoint={address}"])
        assert runner.kind == "flink"
        assert {f"--{name}={value}".removesuffix("=") for name, value in PRESETS["flink"].items()} < {
            *runner.added
        }
        assert {each.what: each.good for each in findings(runner)} == {
            "Python": True, "job service": True, "cluster": True, "checkpoints": True, "workers": True,
        }  # fmt: skip
        never = choose_runner("PortableRunner", [f"--job_endpoint={address}", "--checkpointing_interval=-1"])
        assert "checkpoints: --checkpointing_interval=-1 is no number" in (problem(never) or "")
        assert choose_runner("flink", [f"--job_endpoint={address}"]).added == runner.added


@pytest.mark.parametrize("names", [[], ["spark_master"]])
def test_another_job_service_gets_no_options_of_flink(names):
    with job_service(*names) as address:
        runner = choose_runner("PortableRunner", [f"--job_endpoint={address}"])
        assert (runner.kind, runner.added, problem(runner)) == ("PortableRunner", [], None)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:1", "nonsense", "embed", "[::1"])
def test_a_job_service_that_does_not_answer_is_not_known(endpoint):
    runner = choose_runner("PortableRunner", [f"--job_endpoint={endpoint}"])
    assert (runner.kind, runner.added) == ("PortableRunner", [])
    assert (problem(runner) is None) == (endpoint == "embed")


def test_an_option_that_loses_data_is_refused():
    with pytest.raises(RunnerError, match=r"--shutdown_sources_after_idle_ms: it ends sources.*--until"):
        choose_runner("flink", ["--shutdown_sources_after_idle_ms=5"])


def test_a_job_that_cannot_run_is_refused_before_it_starts(tmp_path, capsys):
    events = tmp_path / "s.csv"
    events.write_text("score,label\n.1,0\n.9,1\n")
    words = ["evaluate", str(events), "--output", str(tmp_path / "r.csv"), "--runner", "flink"]
    assert main([*words, "--flink_master=127.0.0.1:1", jar(tmp_path)]) == 2
    assert "runner flink: cluster: no Flink answers at http://127.0.0.1:1" in capsys.readouterr().err


def test_local_needs_nothing_and_a_job_goes_through(capsys):
    assert problem(choose_runner("local")) is None
    said = probe(choose_runner("local"))
    assert said.good
    assert "rocsteady 0." in said.said
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("runner local\n  ok  kernels: ")
    assert "one element went through" in out


def test_doctor_says_not_and_ends_with_status_1(capsys):
    assert main(["doctor", "--runner", "flink", "--flink_master", "127.0.0.1:1"]) == 1
    out = capsys.readouterr().out
    assert "\n  NOT cluster: no Flink answers" in out
    assert "a job: not tried" in out


def test_dataflow_names_every_option_that_is_missing(capsys, monkeypatch):
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    assert main(["doctor", "--runner", "dataflow", "--region", "europe-west1"]) == 1
    out = capsys.readouterr().out
    assert "NOT project: not given: say --project" in out
    assert "ok  region: europe-west1" in out
    assert "NOT image: " in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runner", "flnk"], "did you mean flink"),
        (["--runner", "flink", "--flink_mastr=x"], "did you mean --flink_master"),
        (["more"], "'more' belongs to no option"),
    ],
)
def test_doctor_refuses_in_words(words, said, capsys):
    assert main(["doctor", *words]) == 2
    assert said in capsys.readouterr().err
