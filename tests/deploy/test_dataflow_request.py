"""The request for a job that Dataflow gets: built by Beam's own client, taken by a server on this machine.

What is checked is what the service would read: the job, in the service's own type, and the graph, which the
client stages in Cloud Storage. No job has run on the service.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2 as proto
from rocsteady.pipelines.cli import main

from tests.support.servers import dataflow_worker
from tests.support.servers.dataflow_graph import PARDO, asks_for_what_dataflow_has, stateful
from tests.support.servers.google_cloud import IMAGE

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "dataflow.md"

PRIMITIVES = {
    PARDO,
    common_urns.primitives.IMPULSE.urn,
    common_urns.primitives.GROUP_BY_KEY.urn,
    common_urns.primitives.FLATTEN.urn,
    common_urns.composites.PUBSUB_READ.urn,
}
"""Kinds of steps without steps inside, of those that Dataflow runs."""

EVENTS = [
    {"model": model, "sent": 60 * k, "id": f"{model}{k}", "score": (k * 7 % 10) / 10, "label": k % 2}
    for model in ("a", "b")
    for k in range(300)
]


def lines_of(events, *names):
    return "".join(json.dumps({name: event[name] for name in names}) + "\n" for event in events)


OF_FILES = [
    "--time=sent", "--id=id", "--window=last:50", "--slice=label", "--every=10",
    "--alert=auc < 0.9 for 2 rows where slice = ''",
]  # fmt: skip


def outputs_in(folder):
    return [
        f"--output={folder}/rows.jsonl", f"--dead-letters={folder}/letters.jsonl",
        f"--alerts={folder}/alerts.jsonl", f"--curves={folder}/curves.parquet",
    ]  # fmt: skip


def files(cloud):
    """A bounded job with every output; the last of its events has no score."""
    last = {**EVENTS[0], "score": None}
    events = cloud.write("events.jsonl", lines_of([*EVENTS, last], "model", "sent", "id", "score", "label"))
    outputs = outputs_in(f"{cloud.folder}/files")
    words = ["--runner=dataflow", "--num_workers=3", "--job_labels=team=credit", *cloud.flags]
    assert main(["evaluate", *OF_FILES, events, *outputs, *words]) == 0


def files_joined(cloud):
    """A bounded job of predictions and labels."""
    predictions = cloud.write("predictions.jsonl", lines_of(EVENTS, "model", "sent", "id", "score"))
    labels = cloud.write("labels.jsonl", lines_of(EVENTS, "sent", "id", "label"))
    words = ["--time=sent", "--id=id", f"--output={cloud.folder}/joined/rows.jsonl", "--runner=dataflow"]
    assert main(["evaluate", predictions, "--labels", labels, *words, *cloud.flags]) == 0


def stream(cloud):
    """The job without an end that the page shows: topics of predictions and labels, joined; and alerts."""
    shown = {"__name__": "shown"}
    exec(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[1], shown)
    options = PipelineOptions([*cloud.flags, "--runner=DataflowRunner"])
    with beam.Pipeline(options=options) as pipeline:
        shown["build"](pipeline)


JOBS = {"files": files, "files_joined": files_joined, "stream": stream}


@pytest.fixture(scope="module")
def requests(cloud):
    """The requests by the names of the jobs."""
    found = {}
    for name, start in JOBS.items():
        start(cloud)
        found[name] = cloud.requests.pop()
    return found


@pytest.fixture(params=[*JOBS])
def request_of(request, requests):
    """Each of the requests."""
    return requests[request.param]


def test_files_are_a_batch_job_and_a_stream_is_a_streaming_job(requests):
    types = {name: request.job.type_.name for name, request in requests.items()}
    batch, streaming = "JOB_TYPE_BATCH", "JOB_TYPE_STREAMING"
    assert types == {"files": batch, "files_joined": batch, "stream": streaming}
    kinds = {name: request.json["environment"]["version"]["job_type"] for name, request in requests.items()}
    assert kinds == {"files": "FNAPI_BATCH", "files_joined": "FNAPI_BATCH", "stream": "FNAPI_STREAMING"}
    assert "enable_streaming_engine" in requests["stream"].job.environment.experiments


def test_a_job_goes_to_the_project_and_region_and_by_runner_v2(request_of):
    assert request_of.path == "/v1b3/projects/project-a/locations/europe-west1/jobs"
    assert {"use_runner_v2", "use_unified_worker"} <= {*request_of.job.environment.experiments}


def test_workers_start_our_image_and_no_other(request_of):
    images = {
        proto.DockerPayload.FromString(environment.payload).container_image
        for environment in request_of.graph.components.environments.values()
    }
    (pool,) = request_of.job.environment.worker_pools
    images |= {image.container_image for image in pool.sdk_harness_container_images}
    assert images | {pool.worker_harness_container_image} == {IMAGE}


def test_a_worker_has_nothing_to_install_before_it_starts(request_of):
    names = {
        proto.ArtifactStagingToRolePayload.FromString(file.role_payload).staged_name
        for environment in request_of.graph.components.environments.values()
        for file in environment.dependencies
    }
    assert names <= {"submission_environment_dependencies.txt"}, "a list for the log"


def test_options_of_the_command_arrive(requests):
    files = requests["files"]
    assert files.job.environment.worker_pools[0].num_workers == 3
    assert dict(files.json["labels"]) == {"team": "credit"}
    assert {request.options["max_cache_memory_usage_mb"] for request in requests.values()} >= {100}
    assert files.options["max_cache_memory_usage_mb"] == 100, "of PRESETS"


def test_the_staged_graph_is_the_one_that_the_request_names(request_of):
    assert hashlib.sha256(request_of.staged).hexdigest() == request_of.options["pipelineProtoHash"]
    assert len(json.dumps(request_of.json)) < 100_000, "the service takes 10 MB"


def test_a_graph_asks_for_nothing_that_dataflow_lacks(request_of):
    asks_for_what_dataflow_has(request_of.graph)
    steps = request_of.graph.components.transforms.values()
    assert {step.spec.urn for step in steps if not step.subtransforms and step.outputs} <= PRIMITIVES


def test_joins_evaluators_and_alerts_each_have_state_and_timers(requests):
    found = {
        name: {step.unique_name.partition("/")[0] for step, _ in stateful(request.graph)}
        for name, request in requests.items()
    }
    assert found == {
        "files": {"Evaluate", "Alert"},
        "files_joined": {"Join", "Evaluate"},
        "stream": {"JoinLabels", "EvaluateModels", "Alert"},
    }
    for step, payload in stateful(requests["stream"].graph):
        assert payload.state_specs, step.unique_name
        assert payload.timer_family_specs, step.unique_name


def test_a_job_that_is_built_again_has_the_same_steps_and_state_so_that_update_keeps_it(cloud, requests):
    def names_in(request):
        return {
            step.unique_name: sorted(proto.ParDoPayload.FromString(step.spec.payload).state_specs)
            if step.spec.urn == PARDO
            else []
            for step in request.graph.components.transforms.values()
        }

    stream(cloud)
    assert names_in(cloud.requests.pop()) == names_in(requests["stream"])


def test_a_worker_reads_all_that_is_pickled_and_makes_the_rows_of_the_local_runner(
    cloud, requests, tmp_path, monkeypatch
):
    """The worker is a process that has rocsteady, but none of the tests' modules."""
    monkeypatch.chdir(tmp_path)
    for name, request in requests.items():
        (tmp_path / name).write_bytes(request.staged)
    worker = [sys.executable, "-P", dataflow_worker.__file__, *requests]
    done = subprocess.run(worker, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert main(["evaluate", *OF_FILES, f"{cloud.folder}/events.jsonl", *outputs_in(".")]) == 0
    for name in ("rows.jsonl", "alerts.jsonl", "letters.jsonl"):
        here = (tmp_path / name).read_text("utf-8").splitlines()
        assert sorted(cloud.read(f"{cloud.folder}/files/{name}").decode().splitlines()) == sorted(here)
        assert here


def test_a_dry_run_sends_nothing_and_says_so(cloud, capsys):
    source = cloud.write("few.jsonl", lines_of(EVENTS[:10], "model", "score", "label"))
    words = f"evaluate {source} --output {cloud.folder}/dry/ --runner dataflow --dry_run=True"
    assert main([*words.split(), *cloud.flags]) == 0
    assert cloud.requests == []
    assert "is not started" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("--project", "project: not given: say --project"),
        ("--region", "region: not given: say --region"),
        ("--temp_location", "temp_location: not given: say --temp_location"),
        ("--sdk_container_image", "image: Beam's own image has no rocsteady"),
    ],
)
def test_a_job_that_lacks_something_is_not_sent(cloud, capsys, left_out, said):
    source = cloud.write("few.jsonl", lines_of(EVENTS[:10], "model", "score", "label"))
    flags = [flag for flag in cloud.flags if not flag.startswith(left_out)]
    assert main(["evaluate", source, f"--output={cloud.folder}/no/", "--runner=dataflow", *flags]) == 2
    assert said in capsys.readouterr().err
    assert cloud.requests == []


def test_a_job_without_credentials_is_not_sent(cloud, capsys, monkeypatch):
    source = cloud.write("few.jsonl", lines_of(EVENTS[:10], "model", "score", "label"))
    words = ["evaluate", source, f"--output={cloud.folder}/no/", "--runner=dataflow", *cloud.flags]
    for value, said in (("", "default credentials were not found"), ("/no", "File /no was not found")):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", value)
        assert main(words) == 2
        message = capsys.readouterr().err
        assert said in message
        assert "gcloud auth application-default login" in message
    assert cloud.requests == []
