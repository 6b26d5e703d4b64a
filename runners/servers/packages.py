"""Fetches the programs of the servers from package registries, once, into one folder.

The folder is $ROCSTEADY_SERVERS, else `rocsteady/servers` in the user's cache folder. Every entry of the
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...core.process.console import show
from .closed_jar import OpenJarError, close
from .processes import HOST, ServerError, java

FLINK_VERSION = "1.19.3"
FLINK_MINOR = FLINK_VERSION.rpartition(".")[0]
KAFKA_VERSION = "4.1.0"

JAVA_IO_TARGET = "sdks:java:io:expansion-service:shadowJar"
"""Beam's name for the jar of its connectors, also in `--beam_services`."""

PRISM_LISTENS = f"{HOST}:%d"
"""The listening address in a Prism compiled by `get prism`. No other Prism's program has this text."""

NAMES = ("flink", "java-io", "kafka", "prism")
COMMAND = "python -m rocsteady.runners.servers"

_HERE = Path(__file__).parent
_FLINK_JARS = ("flink-dist-", "log4j-")
_LOG_LINES = 15
_PRISM_LISTENS_OPENLY = 'net.Listen("tcp", fmt.Sprintf(":%d", port))'

Say = Callable[[str], None]


def servers_folder() -> Path:
    """Return the folder of everything that was fetched."""
    asked = os.environ.get("ROCSTEADY_SERVERS")
    if asked:
        return Path(asked).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rocsteady" / "servers"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rocsteady" / "servers"


def flink_jars() -> Path:
    """Return the folder of Flink's jars; raise ServerError when they were not fetched."""
    return _present(_flink_folder(), "flink")


def job_server_jar() -> Path:
    """Return the jar of Beam's job server for Flink; raise ServerError when it was not fetched."""
    return next(_present(_job_server_folder(), "flink").glob("*.jar"))


def java_io_jar() -> Path:
    """Return the jar of Beam's own connectors; raise ServerError when it was not fetched."""
    return next(_present(_java_io_folder(), "java-io").glob("*.jar"))


def java_io_option() -> str:
    """Return the pipeline option by which Beam uses `java_io_jar` instead of a download."""
    return f"--beam_services={json.dumps({JAVA_IO_TARGET: str(java_io_jar())})}"


def kafka_jars() -> Path:
    """Return the folder of Kafka's jars; raise ServerError when they were not fetched."""
    return _present(_kafka_folder(), "kafka")


def prism_path() -> Path:
    """Return Prism's program; raise ServerError when it was not fetched."""
    return _present(_prism_folder(), "prism") / "prism"


def missing(names: Sequence[str] = NAMES) -> list[str]:
    """Return the names in `names` whose packages were not fetched, or not completely."""
    folders = {
        "flink": (_flink_folder(), _job_server_folder()),
        "java-io": (_java_io_folder(),),
        "kafka": (_kafka_folder(),),
        "prism": (_prism_folder(),),
    }
    return [name for name in names if not all(folder.is_dir() for folder in folders[name])]


def get(name: str, *, build: bool = False, say: Say = show) -> None:
    """Fetch the programs of the server `name`, unless they are present.

    With `build`, Maven makes Beam's jars, and no download of the ready jar is tried. Raises ServerError with
    the remedy when a tool is missing or a registry does not answer.
    """
    getters = {"flink": _get_flink, "java-io": _get_java_io, "kafka": _get_kafka, "prism": _get_prism}
    getters[name](build, say)


def _flink_folder() -> Path:
    return servers_folder() / f"flink-{FLINK_VERSION}"


def _job_server_folder() -> Path:
    return servers_folder() / f"flink-job-server-{FLINK_MINOR}-beam-{_beam_version()}"


def _java_io_folder() -> Path:
    return servers_folder() / f"java-io-beam-{_beam_version()}"


def _kafka_folder() -> Path:
    return servers_folder() / f"kafka-{KAFKA_VERSION}"


def _prism_folder() -> Path:
    return servers_folder() / f"prism-{_beam_version()}-{HOST}"


def _beam_version() -> str:
    from apache_beam.version import __version__

    return str(__version__)


def _present(folder: Path, name: str) -> Path:
    if not folder.is_dir():
        raise ServerError(f"{name} is not in {servers_folder()}: get it with `{COMMAND} get {name}`")
    return folder


def _get_flink(build: bool, say: Say) -> None:
    java()
    with _made(_flink_folder(), say) as folder:
        if folder is not None:
            _download_flink(folder, say)
    with _made(_job_server_folder(), say) as folder:
        if folder is not None and (
            build or not _download_jar(f"runners:flink:{FLINK_MINOR}:job-server:shadowJar", folder, say)
        ):
            say("building a job server with Maven (250 MB of downloads, some minutes)")
            runner = f"-Dbeam.runner=beam-runners-flink-{FLINK_MINOR}"
            _build_jar("flink_job_server.xml", folder, runner)
        if folder is not None:
            try:
                close(next(folder.glob("*.jar")))
            except OpenJarError as error:
                say(f"the job server will listen on all addresses of this machine: {error}")


def _get_java_io(build: bool, say: Say) -> None:
    java()
    with _made(_java_io_folder(), say) as folder:
        if folder is not None and (build or not _download_jar(JAVA_IO_TARGET, folder, say)):
            say("building Beam's Kafka connector with Maven (140 MB of downloads, two minutes)")
            _build_jar("java_io.xml", folder)


def _get_kafka(_build: bool, say: Say) -> None:
    java()
    with _made(_kafka_folder(), say) as folder:
        if folder is not None:
            say(f"downloading Kafka {KAFKA_VERSION} with Maven (54 MB)")
            version = f"-Dkafka.version={KAFKA_VERSION}"
            _maven("kafka.xml", "dependency:copy-dependencies", version, f"-DoutputDirectory={folder}")


def _get_prism(_build: bool, say: Say) -> None:
    with _made(_prism_folder(), say) as folder:
        if folder is None:
            return
        version = f"v{_beam_version()}"
        go = _tool("go", "install Go 1.21 or later (apt-get install golang-go, or https://go.dev/dl)")
        say(f"compiling Prism {version} with Go (2 to 4 minutes)")
        with tempfile.TemporaryDirectory(dir=folder.parent) as sources:
            module = _prism_sources(go, version, Path(sources))
            _run(
                go, "build", "-o", str(folder / "prism"), "./go/cmd/prism",
                folder=module,
                remedy="Prism needs Go 1.21 or later, and modules from $GOPROXY: is the network there?",
            )  # fmt: skip


def _prism_sources(go: str, version: str, folder: Path) -> Path:
    """Copy Prism's sources, changed to listen on this machine alone; return the folder of the copy."""
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


def _download_flink(folder: Path, say: Say) -> None:
    """Unpack Flink's jar and the jars of its log from PyFlink's package apache-flink-libraries."""
    say(f"downloading Flink {FLINK_VERSION} from the Python package index (230 MB)")
    with tempfile.TemporaryDirectory(dir=folder.parent) as downloads:
        _run(
            sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:", "-d", downloads,
            f"apache-flink-libraries=={FLINK_VERSION}",
            remedy="pip could not download Flink: is the network there?",
        )  # fmt: skip
        archive = next(Path(downloads).glob("apache*flink*libraries*.tar.gz"))
        with tarfile.open(archive) as packed:
            for member in packed:
                name = Path(member.name)
                if name.parent.name == "lib" and name.name.startswith(_FLINK_JARS):
                    jar = packed.extractfile(member)
                    if jar is not None:
                        with jar, (folder / name.name).open("wb") as copy:
                            shutil.copyfileobj(jar, copy)


def _download_jar(target: str, folder: Path, say: Say) -> bool:
    """Let Beam download its ready jar for `target`; return whether the download succeeded."""
    from apache_beam.utils.subprocess_server import JavaJarServer

    logging.getLogger("apache_beam.utils.subprocess_server").setLevel(logging.ERROR)
    try:
        url = JavaJarServer.path_to_beam_jar(target)
        say(f"downloading {url}")
        JavaJarServer.local_jar(url, cache_dir=str(folder))
    except (OSError, RuntimeError) as error:
        reason = str(error).partition(". Also failed")[0].rpartition(": ")[2]
        say(f"it cannot be downloaded ({reason})")
        return False
    return True


def _build_jar(pom: str, folder: Path, *properties: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as target:
        _maven(pom, "package", *properties, f"-Drocsteady.target={target}")
        name = f"{Path(pom).stem.replace('_', '-')}.jar"
        shutil.move(Path(target) / name, folder / name)


@contextmanager
def _made(place: Path, say: Say) -> Iterator[Path | None]:
    """Yield a folder to fill, renamed to `place` at the end; yield None when `place` exists already."""
    if place.is_dir():
        say(f"{place} is there")
        yield None
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        raise ServerError(f"{place.parent} cannot be written ({error}): set ROCSTEADY_SERVERS") from None
    try:
        yield scratch
        scratch.chmod(0o755)
        try:
            scratch.rename(place)
        except OSError:
            if not place.is_dir():  # another process was quicker
                raise
        say(f"{place} is made")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


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
    """Run a command; return its output. Raises ServerError with the output's last lines when it fails."""
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
