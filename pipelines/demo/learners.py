"""Learners that predict, before each departure, whether the flight will land late.

Training is prequential in the order in which flights land. At its scheduled departure, a flight is scored
by a learner trained on the flights that landed strictly before. At its landing, the flight's label trains
the learner. Two time-ordered streams, departures and landings, drive one loop: at the same moment,
predictions come first; within a stream, id breaks ties. Every flight of the schedule is scored, also
cancelled and diverted flights. Their labels never come, so they neither train nor measure any learner.

Invariants
    The rows are the same on every run: learners have no randomness, and each learner runs in a process
    of its own, so that no result depends on the processes' speed. The name of a cached file holds two
    hashes: of everything that the predictions depend on, and of the file's bytes. So a file found in
    the cache is the right file, as it was written.

The entry point is `train`: it returns Parquet files for `rocsteady evaluate PREDICTIONS --labels LABELS
--id id --time time`.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.metadata
import math
import multiprocessing
import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from ...core.arrays import FloatArray
from ...core.errors import RocsteadyError
from ...core.process.imports import missing_package
from ...core.process.temporary_folders import temporary_folder
from ...core.process.user_cache import user_cache
from ..stopping import SignalsHeld
from . import flights as flights_module
from . import models as flight_models
from . import streams as flight_streams
from .flights import DATA_FILES, Flights, Known, data_folder, known_at_departure, read_flights, rows_of
from .models import LEARNERS, Learner
from .streams import streams_of

Progress = Callable[[float, str], None]

MAJORITY_WINDOW = 10_000
"""How many landings the baseline's sliding majority holds; the window of kappa_m has the same size."""

_CHUNK = 4096
_STREAMS = ("predictions", "labels")
_OURS = re.compile(rf"flights-([0-9a-f]{{16}})-(?:{'|'.join(_STREAMS)})-[0-9a-f]{{16}}\.parquet")
"""Names of this demo's files in the cache."""

_OTHERS_KEPT = 2
"""Years of other versions that stay in the cache, for installations that are used in turn."""


@dataclass(frozen=True)
class Training:
    """The predictions of a year, and counts of its flights.

    predictions   Parquet file, `predictions` of `streams.Streams`
    labels        Parquet file, `labels` of `streams.Streams`
    flights       scheduled departures, all predicted
    landed        flights with a label
    unlabelled    flights without a label: cancelled or diverted
    models        the models' names, sorted
    from_cache    whether the files come from the cache, without training
    note          one sentence for the user about the cache, or ""
    """

    predictions: Path
    labels: Path
    flights: int
    landed: int
    unlabelled: int
    models: tuple[str, ...]
    from_cache: bool = False
    note: str = ""


def train(
    progress: Progress | None = None, cache_folder: Path | None = None, *, first: int | None = None
) -> Training:
    """Train all learners over the year, or return an earlier run's files from the cache.

    `cache_folder` is by default rocsteady's folder in the user's cache. If the folder cannot be written, the
    files are in a temporary folder until the process ends. `first` limits training to the
    first departures. Raises MissingPackageError when the packages of the demo are not installed.
    """
    report = progress or (lambda *_: None)
    folder, name = cache_folder or _cache_folder(), f"flights-{_fingerprint(first)}"
    kept, note = _kept(folder, name)
    if kept:
        return kept
    report(0.0, "reading a year of flights; training takes some 40 s of a processor, once")
    flights = read_flights() if first is None else read_flights().first(first)
    tables = _trained(flights, lambda share, text: report(0.05 + 0.89 * share, text))
    report(0.95, "writing the predictions")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        training = _write(tables, folder, name)
    except OSError as problem:
        note = (
            f"The predictions could not be kept in {folder} ({problem.strerror or problem}), so "
            "the next run trains again; set XDG_CACHE_HOME to a folder that can be written."
        )
        until_the_end = contextlib.ExitStack()
        atexit.register(until_the_end.close)
        folder = Path(until_the_end.enter_context(temporary_folder()))
        training = _write(tables, folder, name)
    report(1.0, "trained")
    return replace(training, note=note)


def _trained(flights: Flights, progress: Progress) -> tuple[pa.Table, ...]:
    """Train all learners; return the tables of the year's streams, with its counts in their metadata."""
    scores = {"majority": majority_scores(flights), **_train_apart(flights, progress)}
    facts = {
        "flights": str(len(flights)),
        "landed": str(len(flights.landing_order)),
        "models": ",".join(sorted(scores)),
    }
    return tuple(table.replace_schema_metadata(facts) for table in streams_of(flights, scores))


def majority_scores(flights: Flights) -> FloatArray:
    """Return 1.0 where most of the last landings before departure were late, else 0.0.

    This is the sliding majority classifier: a tie goes to the class seen last, and to "not late" before
    any label. While the majority does not change, the classifier agrees with the one inside kappa_m, and
    kappa_m is then 0.
    """
    labels = flights.label[flights.landing_order].astype(np.int64)
    late = np.concatenate(([0], np.cumsum(labels)))
    ends = flights.landed_before
    held = np.minimum(ends, MAJORITY_WINDOW)
    lead = 2 * (late[ends] - late[ends - held]) - held
    latest = np.concatenate(([0], labels))[ends]
    return np.where(lead == 0, latest, lead > 0).astype(np.float64)


def prequential(
    learner: Learner,
    flights: Flights,
    known: Iterator[Known],
    tick: Callable[[int], None],
    until: float = math.inf,
) -> FloatArray:
    """Return a learner's score of every flight; `tick` is called now and then with the departures so far.

    The learner does not learn from landings at `until` or later (microseconds UTC).

    Holds the features of flights that have not landed yet: fewer than 300 flights at any time of the year.
    """
    scores = np.empty(len(flights))
    arrivals, landed_before = flights.landing_order.tolist(), flights.landed_before.tolist()
    label = flights.label.tolist()
    in_the_air: dict[int, Known] = {}
    learnt = 0
    for flight, features in enumerate(known):
        while learnt < landed_before[flight]:
            landed = arrivals[learnt]
            features_then = in_the_air.pop(landed)
            if flights.landing[landed] < until:
                learner.learn(features_then, label[landed] == 1)
            learnt += 1
        scores[flight] = learner.score(features)
        if label[flight] >= 0:
            in_the_air[flight] = features
        if flight % _CHUNK == 0:
            tick(flight)
    return scores


def _cache_folder() -> Path:
    """Return rocsteady's folder in the user's cache.

    If there is none, return a path that cannot be written.
    """
    try:
        return user_cache()
    except RuntimeError:
        return Path(os.devnull) / "rocsteady"


def _train_apart(flights: Flights, progress: Progress) -> dict[str, FloatArray]:
    """Train every learner in a process of its own, as many at a time as there are processors.

    Processes are spawned, never forked: a fork copies the threads' locks of Arrow and of the caller.
    The processes end with this call, also when Ctrl-C ends it.
    """
    context = multiprocessing.get_context("spawn")
    known = known_at_departure(flights)
    waiting, done = list(LEARNERS), dict.fromkeys(LEARNERS, 0)
    running: dict[Connection, tuple[str, BaseProcess]] = {}
    scores: dict[str, FloatArray] = {}
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                name = waiting.pop(0)
                ours, theirs = context.Pipe()
                process: BaseProcess = context.Process(target=_work, args=(name, theirs), daemon=True)
                with _without_interrupts():
                    process.start()
                    running[ours] = name, process
                theirs.close()
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    ours.send((flights, known))  # the code below notices a process that died at its start
            ready = wait(list(running))
            for connection in [one for one in running if one in ready]:
                name, process = running[connection]
                try:
                    message = connection.recv()
                except (EOFError, ConnectionResetError):
                    process.join()
                    raise RocsteadyError(
                        f"the process that trains {name!r} ended with status {process.exitcode}; "
                        "what it said stands above, and if that is nothing, memory ran out: free "
                        "some and run it again"
                    ) from None
                if isinstance(message, int):
                    done[name] = message
                else:
                    scores[name], done[name] = message, len(flights)
                    process.join()
                    del running[connection]
                share = sum(done.values()) / len(done) / max(len(flights), 1)
                progress(share, f"training {', '.join(LEARNERS)} on {len(flights):,} flights")
    finally:
        for connection, (_, process) in running.items():
            process.terminate()
            process.join()
            connection.close()
    return scores


def _work(name: str, connection: Connection) -> None:
    """Train one learner in a child process: receive flights; send counts of departures, then the scores."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the parent ends its children
    with contextlib.suppress(BrokenPipeError, EOFError):  # the parent has ended
        flights, known = connection.recv()
        learner = LEARNERS[name]()
        connection.send(prequential(learner, flights, rows_of(known), connection.send))


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold signals back while a child process starts.

    Otherwise the child would report that its parent sent too little.

    The child inherits a blocked SIGINT, so Ctrl-C never reaches it. The resource tracker of multiprocessing
    is started first: its start would unblock SIGINT again.
    """
    with SignalsHeld():
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fingerprint(first: int | None) -> str:
    """Return a hash of the predictions' inputs: the code, the learners' package, the data, and `first`."""
    try:
        version = importlib.metadata.version("river")
    except importlib.metadata.PackageNotFoundError:
        raise missing_package("river", "rocsteady demo", "demo") from None
    digest = hashlib.sha256(f"{version} {first}".encode())
    modules = [__file__, flight_models.__file__, flight_streams.__file__, flights_module.__file__]
    for path in [*map(Path, modules), *(data_folder() / name for name in DATA_FILES)]:
        digest.update(_digest(path).encode())
    return digest.hexdigest()[:16]


def _kept(folder: Path, name: str) -> tuple[Training | None, str]:
    """Return the training that the cache holds under a name, or None, and a note on damaged files."""
    found, note = [], ""
    with contextlib.suppress(OSError):
        for stream in _STREAMS:
            for path in folder.glob(f"{name}-{stream}-*.parquet"):
                if path.stem == f"{name}-{stream}-{_digest(path)}":
                    found.append(path)
                    break
                note = f"The {stream} in {path} were damaged and have been made anew."
        if len(found) == len(_STREAMS):
            for path in found:
                with contextlib.suppress(OSError):  # the cache may be read-only
                    os.utime(path)
            return replace(_training(*found), from_cache=True), ""
    return None, note


def _training(predictions: Path, labels: Path) -> Training:
    metadata = parquet.read_schema(predictions).metadata
    facts = {key.decode(): value.decode() for key, value in metadata.items()}
    flights, landed = int(facts["flights"]), int(facts["landed"])
    return Training(predictions, labels, flights, landed, flights - landed, tuple(facts["models"].split(",")))


def _write(tables: Iterable[pa.Table], folder: Path, name: str) -> Training:
    """Write the streams of a year, and remove old years from the folder."""
    paths = [
        _write_stream(table, folder, f"{name}-{stream}")
        for stream, table in zip(_STREAMS, tables, strict=True)
    ]
    _forget(folder, but=name)
    return _training(*paths)


def _write_stream(table: pa.Table, folder: Path, name: str) -> Path:
    """Write a Parquet file under a temporary name, then rename it.

    So readers never see a part of the file.
    """
    handle, temporary_name = tempfile.mkstemp(dir=folder, prefix=".flights-", suffix=".tmp")
    os.close(handle)
    temporary = Path(temporary_name)
    try:
        parquet.write_table(table, temporary, compression="zstd", row_group_size=1 << 17)
        return temporary.replace(folder / f"{name}-{_digest(temporary)}.parquet")
    finally:
        temporary.unlink(missing_ok=True)


def _forget(folder: Path, but: str) -> None:
    """Remove years of other versions, except the few that were used last. Files with other names stay."""
    with contextlib.suppress(OSError):
        years = {path: found[1] for path in folder.iterdir() if (found := _OURS.fullmatch(path.name))}
        last_used_first = sorted(years, key=lambda path: path.stat().st_mtime_ns, reverse=True)
        others = dict.fromkeys(years[path] for path in last_used_first if f"flights-{years[path]}" != but)
        for path in last_used_first:
            if years[path] in [*others][_OTHERS_KEPT:]:
                path.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
