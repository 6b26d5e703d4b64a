"""Requests to Dataflow for jobs that read a topic: by our reader, and by Beam's connector, which is Java."""

from __future__ import annotations

import subprocess
import sys

import pytest
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2 as proto
from rocsteady.pipelines.cli import main
from rocsteady.runners.servers.packages import java_io_option

from tests.support import ROOT
from tests.support.requirements import servers
from tests.support.servers import beams_kafka_job
from tests.support.servers.dataflow_graph import asks_for_what_dataflow_has, stateful
from tests.support.servers.google_cloud import IMAGE, google_cloud
from tests.support.servers.kafka_topics import events, topic_of


@pytest.fixture
def cloud(tmp_path):
    with google_cloud(tmp_path) as started:
        yield started


def images_of(graph):
    return {
        proto.DockerPayload.FromString(environment.payload).container_image
        for environment in graph.components.environments.values()
    }


def test_a_topic_without_an_end_is_a_streaming_job_of_our_image_alone(broker, cloud, tmp_path):
    topic_of(broker, "to-dataflow", events(100), 2)
    secret = tmp_path / "kafka.options"
    secret.write_text("client.id=a-name-of-mine\n")
    words = (
        f"evaluate kafka://{broker.address}/to-dataflow --time time --output {cloud.folder}/rows/ "
        f"--kafka-option @{secret} --runner dataflow"
    )
    assert main([*words.split(), *cloud.flags]) == 0
    (request,) = cloud.requests
    assert request.job.type_.name == "JOB_TYPE_STREAMING"
    asks_for_what_dataflow_has(request.graph)
    assert images_of(request.graph) == {IMAGE}
    splittable = common_urns.requirements.REQUIRES_SPLITTABLE_DOFN.urn
    assert splittable in request.graph.requirements, "the reader keeps its offset in a restriction"
    assert "a-name-of-mine" not in str(request.json), "options of the client are in the staged graph alone"


def test_beams_own_connector_is_a_step_of_java_before_ours(cloud, tmp_path):
    servers("java-io")
    staged = tmp_path / "staged"
    staged.mkdir()
    words = [*cloud.flags, "--runner=DataflowRunner", f"--staging_location={staged}", java_io_option()]
    job = [sys.executable, "-m", beams_kafka_job.__name__, "request", *words]
    done = subprocess.run(job, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (request,) = cloud.requests
    assert request.job.type_.name == "JOB_TYPE_STREAMING"
    asks_for_what_dataflow_has(request.graph)
    (java,) = images_of(request.graph) - {IMAGE}
    assert "java" in java
    pool = request.job.environment.worker_pools[0]
    assert {image.container_image for image in pool.sdk_harness_container_images} == {IMAGE, java}
    for step, _ in stateful(request.graph):
        environment = request.graph.components.environments[step.environment_id]
        assert proto.DockerPayload.FromString(environment.payload).container_image == IMAGE
