"""Runs of a pipeline on the runners that need nothing but Beam itself, named so that nothing is downloaded.

in process       FnApiRunner, the engine of Beam's DirectRunner; passes values in memory
processes        the same with two worker processes: every element and state value goes through its coder
portable         the same behind the portable job service
retrying         BundleBasedDirectRunner: small bundles, TestStream, and four attempts at a bundle
"""

from __future__ import annotations

import itertools
import os
import pickle
import random
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import GlobalWindow

from tests.support import ROOT
from tests.support.thorough import THOROUGH

_FN_API = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
_BUNDLES = "apache_beam.runners.direct.direct_runner.BundleBasedDirectRunner"
RUNNERS: dict[str, list[str]] = {
    "in process": [f"--runner={_FN_API}"],
    "processes": [
        f"--runner={_FN_API}",
        "--direct_running_mode=multi_processing",
        "--direct_num_workers=2",
    ],
    "portable": ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"],
    "retrying": [f"--runner={_BUNDLES}"],
}
PROCESSES = pytest.param("processes", marks=pytest.mark.slow)
"""Starts two workers, five seconds each: where another plain test does so for what this one is about."""

EVERY_RUNNER = [PROCESSES if runner == "processes" else runner for runner in RUNNERS]
COLD_AND_WARM = [
    pytest.param(1 << 30, id="warm"),
    pytest.param(0, id="rebuilt every time"),
]
"""Bytes of machines that a process keeps: all of them, none."""
RUNNERS_AND_CACHES = [
    pytest.param(
        runner,
        *cache.values,
        id=f"{runner}-{cache.id}",
        marks=PROCESSES.marks
        if runner == "processes" or (runner, cache.id) == ("in process", "rebuilt every time")
        else (),
    )
    for runner, cache in itertools.product(RUNNERS, COLD_AND_WARM)
    if THOROUGH or (runner, cache.id) not in (("portable", "warm"), ("retrying", "rebuilt every time"))
]
"""A test's runners with their caches: in a plain run each runner with one of both, and both with one."""


@contextmanager
def pipeline(runner: str = "in process", *options: str) -> Iterator[beam.Pipeline]:
    """Build a pipeline in the block, and run it to its end behind it.

    Worker processes find the modules of tests by PYTHONPATH.
    """
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT) if before is None else os.pathsep.join((before, str(ROOT)))
    try:
        with beam.Pipeline(options=PipelineOptions([*RUNNERS[runner], *options])) as built:
            yield built
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


class InOrder(beam.PTransform[Any, beam.PCollection[Any]]):
    """Gives elements in the order in which they are listed, as `Create` does not promise to."""

    def __init__(self, elements: Iterable[Any], element_type: Any = Any) -> None:
        super().__init__()
        self._elements = list(elements)
        self._element_type = element_type

    def expand(self, begin: beam.Pipeline) -> beam.PCollection[Any]:
        whole = begin | beam.Create([self._elements])
        single: beam.PCollection[Any] = whole | beam.FlatMap(_same).with_output_types(self._element_type)
        return single


def _same(elements: list[Any]) -> list[Any]:
    return elements


class Keep(beam.PTransform[beam.PCollection[Any], beam.PCollection[Any]]):
    """Writes what comes, with its time and window, to files that `kept` reads in any process."""

    def __init__(self, directory: Path, name: str) -> None:
        super().__init__(f"keep {name}")
        self._prefix = str(directory / name)

    def expand(self, elements: beam.PCollection[Any]) -> beam.PCollection[Any]:
        nothing: beam.PCollection[Any] = elements | beam.ParDo(_KeepDoFn(self._prefix))
        return nothing


class _KeepDoFn(beam.DoFn):
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def process(
        self,
        element: Any,
        time: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
    ) -> None:
        value = tuple(element) if isinstance(element, tuple) else element
        pane = None if isinstance(window, GlobalWindow) else (int(window.start), int(window.end))
        with Path(f"{self._prefix}.{uuid.uuid4().hex}").open("wb") as file:
            pickle.dump(Kept(value, time.micros, pane), file)


class Kept(NamedTuple):
    """An element, its Beam timestamp in microseconds, and its window in seconds."""

    value: Any
    time: int
    pane: tuple[int, int] | None


def kept(directory: Path, name: str) -> list[Kept]:
    """Return what `Keep` wrote, in no order."""
    return [pickle.loads(file.read_bytes()) for file in directory.glob(f"{name}.*")]


def shuffled(rows: Iterable[Any], seed: int = 0) -> list[Any]:
    """Single rows in another order, some of them twice."""
    chance = random.Random(seed)
    single = list(rows)
    single += chance.sample(single, 20)
    chance.shuffle(single)
    return single
