"""Servers of this folder's tests, started when a test first asks for them; and runners that stream."""

from __future__ import annotations

import pytest
from rocsteady.runners.servers.flink import FlinkCluster
from rocsteady.runners.servers.packages import prism_path

from tests.support.requirements import servers
from tests.support.servers.secure_broker import SecureBroker


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A broker that takes messages of 20 MB; also with a password, and with TLS, each at its own address."""
    servers("kafka")
    settings = {"message.max.bytes": 20_000_000}
    with SecureBroker(tmp_path_factory.mktemp("kafka"), settings=settings) as started:
        yield started


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A Flink session cluster of two slots."""
    servers("flink")
    with FlinkCluster(tmp_path_factory.mktemp("flink")) as started:
        yield started


@pytest.fixture(params=["prism", "flink"])
def runner(request):
    """The options of a runner that streams."""
    servers(request.param)
    if request.param == "prism":
        return ["--runner", "prism", "--prism_location", str(prism_path())]
    options = request.getfixturevalue("cluster").options()
    return ["--runner", "flink", "--parallelism", "1", "--checkpointing_interval", "2000", *options]
