"""Checks before a job whether everything that its runner needs is present, and names each remedy.

The checks start, change and fetch nothing. The exception is `probe`: it runs a job of one element, which
reports facts that only workers know, such as whether a worker can import rocsteady.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import platform
import shutil
import socket
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.version import __version__ as beam_version

from ..core.process.imports import how_to_install
from .listening import close_ports, on_this_machine
from .presets import (
    CLUSTER_SECONDS,
    FLINK_VERSIONS,
    NO_ANSWER,
    Runner,
    ask_cluster,
    cluster_is_here,
    cluster_url,
    minor_of,
)
from .servers.packages import COMMAND, FLINK_MINOR
from .servers.processes import THIS_MACHINE, ServerError, java

_PROBE_SECONDS = 120.0
_PROBE_NAMESPACE = "rocsteady.probe"


@dataclass(frozen=True)
class Finding:
    """One requirement of a runner, checked.

    what    the requirement's name: "Java", "cluster"
    good    whether the requirement is met
    said    the finding of the check, and the command that is the remedy for a requirement that is not met
    """

    what: str
    good: bool
    said: str


def findings(runner: Runner) -> Iterator[Finding]:
    """Check what a runner needs on this machine and of its services. Takes a few seconds at most."""
    yield Finding("Python", True, f"{platform.python_version()}, apache-beam {beam_version}")
    options = runner.options.get_all_options(retain_unknown_options=True)
    if runner.kind == "prism":
        yield _prism(options)
    elif runner.kind == "flink":
        yield from _of_flink(options)
    elif runner.kind == "dataflow":
        yield from _of_dataflow(options)
    elif runner.kind == "PortableRunner":
        yield _job_service(options)


def problem(runner: Runner) -> str | None:
    """Return a sentence about the first requirement that is not met; None if a job can start."""
    return next((f"{found.what}: {found.said}" for found in findings(runner) if not found.good), None)


def _prism(options: dict[str, Any]) -> Finding:
    if (place := options["prism_location"]) is not None:
        return _file("Prism", place, "--prism_location", f"get one with `{COMMAND} get prism`")
    cache = Path.home() / ".apache_beam" / "cache" / "prism" / "bin"
    kept = next(cache.glob(f"*v{beam_version}*"), None) if cache.is_dir() else None
    remedy = f"get it with `{COMMAND} get prism`, or name yours with --prism_location PATH"
    missing = f"it is not on this machine, and Beam would download it from GitHub: {remedy}"
    return _checked("Prism", kept is not None, str(kept), missing)


def _of_flink(options: dict[str, Any]) -> Iterator[Finding]:
    """Check Java, the job server, the cluster, the checkpoints' folder and the workers."""
    master, endpoint = options["flink_master"].strip(), options["job_endpoint"]
    if endpoint:
        yield _job_service(options)
    else:
        try:
            yield Finding("Java", True, java())
        except ServerError as missing:
            yield Finding("Java", False, str(missing))
        yield _job_server(options)
    if master in ("[local]", "[auto]"):
        whose = "the job server runs a Flink of its own, which ends with the job"
        if endpoint:
            whose = "that of the job server"
        said = f"none is named: {whose}; name yours with --flink_master HOST:PORT (its REST port)"
        yield Finding("cluster", True, said)
    else:
        yield from _cluster(master, options)
    yield _checkpoints(options)
    yield from _workers(options, cluster_is_here(master, endpoint))


def _checkpoints(options: dict[str, Any]) -> Finding:
    interval = str(options.get("checkpointing_interval"))
    if interval.isdecimal() and int(interval) > 0:
        return Finding("checkpoints", True, f"every {int(interval):,} ms")
    missing = (
        f"--checkpointing_interval={interval} is no number of milliseconds above 0, and without "
        "checkpoints a job that fails begins anew, without its state; leave it out for 10000"
    )
    return Finding("checkpoints", False, missing)


def _job_server(options: dict[str, Any]) -> Finding:
    if (jar := options["flink_job_server_jar"]) is not None:
        if urllib.parse.urlparse(jar).scheme in ("http", "https"):
            return Finding("job server", True, jar)
        remedy = f"get one with `{COMMAND} get flink`, or leave it out, and Beam downloads its own"
        return _file("job server", jar, "--flink_job_server_jar", remedy)
    name = f"beam-runners-flink-{options['flink_version']}-job-server-{beam_version}.jar"
    kept = Path.home() / ".apache_beam" / "cache" / "jars" / name
    if kept.exists():
        return Finding("job server", True, str(kept))
    host = "repo.maven.apache.org"
    missing = (
        f"{name} is not on this machine and {host} does not answer: get one with `{COMMAND} get flink` "
        f"and say --flink_version={FLINK_MINOR}, or name yours with --flink_job_server_jar PATH"
    )
    found = f"{name}, which Beam will download from {host}"
    return _checked("job server", _answers(host, 443), found, missing)


def _cluster(master: str, options: dict[str, Any]) -> Iterator[Finding]:
    url = cluster_url(master)
    try:
        said = ask_cluster(master)
        version, slots = str(said["flink-version"]), int(said["slots-total"])
        free = int(said["slots-available"])
    except NO_ANSWER as error:
        missing = (
            f"no Flink answers at {url} ({_why(error)}): start it, or name yours with --flink_master "
            f"HOST:PORT (its REST port); `{COMMAND} up flink` starts one on this machine"
        )
        yield Finding("cluster", False, missing)
        return
    asked = options["flink_version"]
    # The job service knows the version of its own Flink.
    minor = minor_of(version)
    fits = minor == asked or bool(options["job_endpoint"])
    there = f"Flink {version} at {url}"
    missing = f"{there}, and the job server is for {asked}: say --flink_version={minor}"
    if minor not in FLINK_VERSIONS:
        missing = f"{there}; Beam {beam_version} has job servers for {', '.join(FLINK_VERSIONS)}"
    yield _checked("cluster", fits, there, missing)
    needed = max(1, options["parallelism"])
    there = f"{free} of {slots} are free"
    remedy = "stop a job, start a TaskManager, or give a smaller --parallelism"
    yield _checked("slots", free >= needed, there, f"{there}, and the job needs {needed}: {remedy}")


def _workers(options: dict[str, Any], cluster_is_here: bool) -> Iterator[Finding]:
    kind = options["environment_type"] or "DOCKER"
    config = options["environment_config"] or ""
    if kind == "LOOPBACK":
        missing = (
            "--environment_type=LOOPBACK is for a cluster on this machine; give each TaskManager a "
            "worker pool and say --environment_type=EXTERNAL --environment_config=localhost:50000"
        )
        yield _checked("workers", cluster_is_here, "LOOPBACK: Python runs in the launching process", missing)
    elif kind == "EXTERNAL":
        host, _, port = config.rpartition(":")
        pool = f"a worker pool at {config}"
        if host in THIS_MACHINE and not cluster_is_here:
            yield Finding("workers", True, f"{pool} beside each TaskManager; not to be seen from here")
        elif not port.isdigit():
            missing = f"--environment_config={config!r} is no HOST:PORT of a pool"
            yield Finding("workers", False, missing)
        else:
            missing = (
                f"no worker pool answers at {config}: start `rocsteady-worker --pool {port}` there, in "
                "the environment that has rocsteady"
            )
            yield _checked("workers", _answers(host, int(port)), pool, missing)
    elif kind == "DOCKER":
        named = "docker_container_image="
        asked = [word for word in options["environment_options"] or () if word.startswith(named)]
        image = config or "".join(asked).removeprefix(named)
        there = bool(image) and (shutil.which("docker") is not None or not cluster_is_here)
        other = "EXTERNAL with a worker pool beside each TaskManager"
        if cluster_is_here:
            other = f"LOOPBACK for a cluster here, or {other}"
        what = "Docker, which is not on this machine" if image else "an image, as Beam's own has no rocsteady"
        missing = (
            f"containers need {what}: say --environment_type={other}, or name your image with "
            "--environment_type=DOCKER --environment_config=IMAGE"
        )
        yield _checked("workers", there, f"containers of {image}, started by Docker", missing)
    elif kind == "PROCESS":
        try:
            program = str(json.loads(config)["command"])
        except (ValueError, KeyError, TypeError):
            program = config
        there = bool(program) and (not cluster_is_here or shutil.which(program) is not None)
        missing = (
            f'--environment_config={config!r} names no program that is here; give \'{{"command": "PATH"}}\''
        )
        yield _checked("workers", there, f"processes of {program}", missing)
    elif not kind.startswith("beam:env:"):
        missing = f"--environment_type={kind} is none of LOOPBACK, EXTERNAL, DOCKER and PROCESS"
        yield Finding("workers", False, missing)


def _job_service(options: dict[str, Any]) -> Finding:
    endpoint = options["job_endpoint"] or ""
    if endpoint == "embed":
        return Finding("job service", True, "in this process")
    host, _, port = endpoint.rpartition(":")
    missing = (
        f"nothing answers at --job_endpoint={endpoint}: start the job server, or leave it out for "
        "--runner flink, which starts its own"
    )
    return _checked("job service", port.isdigit() and _answers(host, int(port)), endpoint, missing)


def _of_dataflow(options: dict[str, Any]) -> Iterator[Finding]:
    found = [importlib.util.find_spec(name) for name in ("google.cloud", "google.auth")]
    missing = f"its libraries are not installed: {how_to_install('dataflow')}"
    yield _checked("Google Cloud", None not in found, "its libraries are installed", missing)
    for option in ("project", "region", "temp_location"):
        yield _checked(option, bool(options[option]), options[option], f"not given: say --{option}")
    image = options["sdk_container_image"]
    missing = (
        "Beam's own image has no rocsteady, nor its compiled kernels: build one (docs/how-to/dataflow.md) "
        "and say --sdk_container_image"
    )
    yield _checked("image", bool(image), image, missing)
    if None not in found:
        yield _credentials(options)


def _credentials(options: dict[str, Any]) -> Finding:
    """Ask Google's library for credentials.

    Credentials of a file, of gcloud, or of a machine at Google itself.

    If there are none, the library waits some seconds for the answer of a machine at Google.
    """
    if options["no_auth"]:
        return Finding("credentials", True, "none, as --no_auth says")
    google_auth = importlib.import_module("google.auth")
    try:
        found, _ = google_auth.default()
    except google_auth.exceptions.GoogleAuthError as error:
        why = str(error).partition(". ")[0].rstrip(".")
        remedy = "gcloud auth application-default login, or name a file in GOOGLE_APPLICATION_CREDENTIALS"
        return Finding("credentials", False, f"{why}: {remedy}")
    return Finding("credentials", True, type(found).__module__)


def _checked(what: str, good: bool, said: str, missing: str) -> Finding:
    """Return a finding. It says `said` if the requirement is met (`good`), otherwise `missing`."""
    return Finding(what, good, said if good else missing)


def _file(what: str, path: str, option: str, remedy: str) -> Finding:
    return _checked(what, Path(path).is_file(), path, f"{option} {path} is no file: {remedy}")


def _answers(host: str, port: int) -> bool:
    try:
        with closing(socket.create_connection((host or "localhost", port), CLUSTER_SECONDS)):
            return True
    except OSError:
        return False


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason or type(error).__name__)


def say_versions(_: int) -> int:
    """Report a worker's versions as Beam counters. A worker without rocsteady cannot import this function."""
    package = importlib.import_module(__name__.partition(".")[0])
    for name in (
        f"Python {platform.python_version()}",
        f"apache-beam {beam_version}",
        f"{package.__name__} {package.__version__}",
    ):
        Metrics.counter(_PROBE_NAMESPACE, name).inc()
    return 1


def probe(runner: Runner, seconds: float = _PROBE_SECONDS) -> Finding:
    """Run a job of one element; return its worker's versions, or the failure and its remedy."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    try:
        pipeline = beam.Pipeline(runner=runner.engine, options=runner.options)
        close_ports(runner.kind, pipeline.options)
        _ = pipeline | beam.Create([1]) | beam.Map(say_versions)
        with on_this_machine():
            result = pipeline.run()
            state = str(result.wait_until_finish(duration=int(seconds * 1000)))
        counters = result.metrics().query()["counters"]
    except Exception as error:
        return Finding("a job", False, _of_failure(error))
    if state in ("RUNNING", "STARTING", "PENDING", "UNKNOWN"):
        with suppress(Exception):
            result.cancel()
        late = (
            f"a job of one element has not ended after {seconds:.0f} s: look whether slots are free, and "
            "into the log of the worker pool; it needs `python` on its PATH"
        )
        return Finding("a job", False, late)
    if state not in ("DONE", "None"):
        return Finding("a job", False, f"a job of one element ended as {state}: the runner's log says why")
    has = sorted(
        found.key.metric.name for found in counters if found.key.metric.namespace == _PROBE_NAMESPACE
    )
    return Finding("a job", True, "one element went through; its worker has " + ", ".join(has))


def _of_failure(error: Exception) -> str:
    said = str(error)
    lines: Sequence[str] = [line.strip() for line in said.splitlines() if line.strip()] or [""]
    if "No module named" in said:
        module = said.rpartition("No module named")[2].split("\n")[0].strip(" '\"")
        return (
            f"the workers cannot import {module}: install rocsteady in their environment, or in "
            "your image, the same version as here"
        )
    return f"a job of one element failed: {lines[-1]}"
