"""Google's two services on this machine, once for all tests of a process."""

from __future__ import annotations

import pytest

from tests.support.servers.google_cloud import google_cloud


@pytest.fixture(scope="session")
def cloud(tmp_path_factory):
    with google_cloud(tmp_path_factory.mktemp("cloud")) as servers:
        yield servers
