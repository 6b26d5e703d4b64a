"""What a test needs and a machine may lack: it skips with the reason, or fails where CI requires it."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest
from rocsteady.runners.servers.packages import COMMAND, missing


def lacking(message: str, *, required_by: str) -> Any:
    """Skip the test; fail it when the variable `required_by` is 1."""
    if os.environ.get(required_by) == "1":
        pytest.fail(message)
    pytest.skip(message)


def deploy(*modules: str) -> None:
    """Skip (with ROCSTEADY_REQUIRE_DEPLOY=1: fail) unless modules of the extra `deploy` can be imported."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as missing:
            lacking(f"{missing}: pip install '.[deploy]'", required_by="ROCSTEADY_REQUIRE_DEPLOY")


def servers(*names: str) -> None:
    """Skip (with ROCSTEADY_REQUIRE_SERVERS=1: fail) unless the servers were fetched and can be talked to."""
    absent = missing(names)
    if absent:
        lacking(
            f"{', '.join(absent)} not fetched: {COMMAND} get {' '.join(absent)}",
            required_by="ROCSTEADY_REQUIRE_SERVERS",
        )
    if "kafka" in names:
        try:
            import confluent_kafka  # noqa: F401
        except ImportError:
            lacking(
                "confluent-kafka is not installed: pip install '.[kafka]'",
                required_by="ROCSTEADY_REQUIRE_SERVERS",
            )
