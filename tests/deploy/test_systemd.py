"""The unit of systemd for a pool of workers, against the page and the package that it is for."""

from __future__ import annotations

import re
import tomllib

from tests.support import ROOT

UNIT = (ROOT / "examples" / "deploy" / "rocsteady-pool.service").read_text("utf-8")
PAGE = (ROOT / "docs" / "how-to" / "flink.md").read_text("utf-8")


def test_the_pool_is_a_command_of_the_package_at_the_port_of_the_page():
    (folder, name, port) = re.search(r"^ExecStart=(.+)/(\S+) --pool (\d+)$", UNIT, re.MULTILINE).groups()
    assert name in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert f"--environment_config localhost:{port}" in PAGE
    assert f"{folder}/rocsteady doctor --compile" in PAGE
    assert f"Environment=PATH={folder}:" in UNIT, "a worker starts as `python`"


def test_workers_find_the_kernels_that_the_page_compiles():
    settings = re.search(r"export (.+)", PAGE)[1].split()
    assert [f"Environment={each}" for each in settings] == re.findall("Environment=[RN].+", UNIT)


def test_a_pool_that_ends_is_started_again():
    assert "\nRestart=always\n" in UNIT
