"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import sys
import zlib

import pytest
from hypothesis import settings

from tests.support.thorough import THOROUGH

# There is a worker for every core already: threads of linear algebra would only wait for each other, busily.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before numpy is imported

# The first call of a kernel compiles it, so the time that an example takes says nothing about the code.
settings.register_profile("rocsteady", deadline=None)
settings.load_profile("rocsteady")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let .ci/run choose a tenth of the slow tests."""
    about = "of the tests that are slow or at_length, run those whose id has N as its crc32 modulo 10"
    parser.addoption("--tenth", type=int, choices=range(10), metavar="N", help=about)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not in the tenth; tests that are neither slow nor at_length stay."""
    tenth = config.getoption("--tenth")
    if tenth is None:
        return
    left_out = [
        item
        for item in items
        if (item.get_closest_marker("slow") or item.get_closest_marker("at_length"))
        and zlib.crc32(item.nodeid.encode()) % 10 != tenth
    ]
    config.hook.pytest_deselected(items=left_out)
    chosen = {*items} - {*left_out}
    items[:] = [item for item in items if item in chosen]


def pytest_configure(config: pytest.Config) -> None:
    """Refuse the folder "rocsteady-0.1.0" of an unpacked sdist: no package can have that name."""
    if not config.rootpath.name.isidentifier():
        raise pytest.UsageError(f"rename the folder {config.rootpath} to rocsteady: it is the package itself")


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what collecting imported, which lives as long as the process.

    Otherwise it looks through all of that, some million objects, again and again while tests run.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_runtest_setup() -> None:
    """Let Beam remember what it would work out again for every job, as soon as something has imported it."""
    if "apache_beam.runners" in sys.modules and not THOROUGH:
        from tests.support.processes.beam_memory import remember

        remember()
