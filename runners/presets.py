"""Chooses the Beam runner of a job and the runner's options.

`local` is the in-process engine of Beam's DirectRunner, named directly: `DirectRunner` itself first looks for
another engine, which it would download. The name of any other runner goes to Beam unchanged. Every option
that Beam knows also goes to Beam. An option that Beam does not know is an error here; Beam would only log a
line. `PRESETS` adds options with which a runner works better, unless the user set the same option.
"""

from __future__ import annotations

import argparse
import json
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, InvalidURL
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import grpc
from apache_beam.options.pipeline_options import FlinkRunnerOptions, GoogleCloudOptions, PipelineOptions
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import create_runner

from ..core.process.near_names import near_names
from .servers.packages import FLINK_MINOR, job_server_jar, prism_path
from .servers.processes import THIS_MACHINE, ServerError

_LOCAL = ("local", "DirectRunner", "FnApiRunner")
_BEAM_NAMES = {"prism": "PrismRunner", "flink": "FlinkRunner", "dataflow": "DataflowRunner"}
_ON_THIS_MACHINE = ("BundleBasedDirectRunner", "PrismRunner")

CLUSTER_SECONDS = 5.0
"""Seconds that a cluster, or a job server, may take to answer."""

NO_ANSWER = (OSError, ValueError, KeyError, TypeError)
"""Errors of a cluster that does not answer, or whose answer is not Flink's."""

PRESETS: dict[str, dict[str, str]] = {
    "flink": {
        # Milliseconds. A longer interval repeats more work after a failure, a shorter one costs more
        # checkpoints.
        "checkpointing_interval": "10000",
        # A bundle costs up to a millisecond for every key in it. Flink gives elements to a worker in pieces
        # of 1 MB and at the end of the bundle, so packets and rows wait for that end.
        "max_bundle_size": "1000",
        "max_bundle_time_mills": "100",
        # Off by default: without this cache every bundle reads all of a shard's state again.
        "max_cache_memory_usage_mb": "100",
        # Off by default: Flink then stores in a checkpoint the outputs of a bundle that it emits while the
        # checkpoint is made. With that default, rows stopped for ever both times that a TaskManager was
        # killed, though the readers went on to the end. With this option, in benchmarks.faults, all rows
        # came.
        "finish_bundle_before_checkpointing": "",
    },
    "dataflow": {"max_cache_memory_usage_mb": "100"},
}
"""Options of Beam that are added for each kind of runner, unless the user set them; "" marks a switch."""

FLINK_VERSIONS: Sequence[str] = tuple(FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS)
"""Versions of Flink, to the minor one, for which Beam has a job server."""

_FLINK_VALUES = (
    "checkpointing_interval", "checkpointing_mode", "checkpoint_timeout_millis",
    "min_pause_between_checkpoints", "num_concurrent_checkpoints", "job_check_interval_in_secs",
    "number_of_execution_retries", "execution_retry_delay", "state_backend", "state_backend_storage_path",
    "max_bundle_size", "max_bundle_time_mills", "latency_tracking_interval", "auto_watermark_interval",
    "execution_mode_for_batch", "savepoint_path", "report_checkpoint_duration", "flink_conf_dir",
    "file_input_split_max_size_m_b",
)  # fmt: skip
_FLINK_SWITCHES = (
    "finish_bundle_before_checkpointing", "unaligned_checkpoint_enabled",
    "force_unaligned_checkpoint_enabled", "object_reuse", "disable_metrics",
    "externalized_checkpoints_enabled", "retain_externalized_checkpoints_on_cancellation",
    "allow_non_restored_state", "re_iterable_group_by_key_result", "faster_copy",
    "enable_stable_input_drain", "force_slot_sharing_group",
)  # fmt: skip
"""Options that Flink's job server knows and Beam's Python does not (FlinkPipelineOptions, Beam 2.70)."""

_REFUSED = {
    "shutdown_sources_after_idle_ms": "it ends sources that are waiting, and what they would have read is "
    "missing from a job that says DONE; leave it out, and say --until to end a stream",
}

JOB_LABELS = "job_labels"
"""Our name for Beam's option `--labels`, the labels of a job on Dataflow, because `evaluate` has an option of
this name itself.
"""


class RunnerError(ValueError):
    """Raised for a runner or an option that is not valid.

    The text names the runner or option, and the remedy.
    """


@dataclass(frozen=True)
class Runner:
    """A Beam runner with its options.

    name        the runner's name as the user gave it.
    kind        "local", "prism", "flink", "dataflow", or the name of Beam's class.
    in_process  whether the job runs in this process, so that its counters can be watched.
    here        whether the job runs on this machine, so that it sees this machine's files.
    engine      the argument `runner` of `beam.Pipeline`.
    options     the argument `options` of `beam.Pipeline`.
    added       the options that `preset_flags` added to the user's, as flags.
    """

    name: str
    kind: str
    in_process: bool
    here: bool
    engine: Any
    options: PipelineOptions
    added: Sequence[str] = ()


def choose_runner(name: str, flags: Sequence[str] = ()) -> Runner:
    """Return the runner of a name, with Beam's own options from `flags`.

    Raise RunnerError for a name or an option that is not valid.
    """
    beam_name = _BEAM_NAMES.get(name, name)
    refuse_unknown(flags)
    kind = _kind_of(beam_name, flags)
    added = preset_flags(kind, flags)
    options = PipelineOptions([flag.replace(f"--{JOB_LABELS}=", "--labels=", 1) for flag in (*flags, *added)])
    named = options.view_as(GoogleCloudOptions)
    if kind == "flink" and named.job_name is None:
        # the name by which the job is found on its cluster
        named.job_name = f"rocsteady-{uuid.uuid4().hex[:12]}"
    if kind == "local":
        mode = options.get_all_options().get("direct_running_mode")
        return Runner(name, kind, mode != "multi_processing", True, FnApiRunner(), options, added)
    try:
        engine = create_runner(beam_name)
    except (ValueError, ImportError, AttributeError) as error:
        near = near_names(name, [*_LOCAL, *_BEAM_NAMES, *_BEAM_NAMES.values()])
        hint = f"did you mean {near[0]}? " if near else ""
        raise RunnerError(
            f"runner {name!r} cannot be had: {hint}There are local, {', '.join(_BEAM_NAMES)}, and what Beam "
            f"says ({error})"
        ) from None
    here = beam_name in _ON_THIS_MACHINE
    return Runner(name, kind, beam_name == "BundleBasedDirectRunner", here, engine, options, added)


def _kind_of(beam_name: str, flags: Sequence[str]) -> str:
    """Return the kind of a runner.

    PortableRunner may stand for any kind, so the function asks its job service.
    """
    if beam_name in _LOCAL:
        return "local"
    class_name = beam_name.rpartition(".")[2]
    if class_name == "PortableRunner" and _serves_flink(dict(_said(flags)).get("job_endpoint", "")):
        return "flink"
    return next((kind for kind, name in _BEAM_NAMES.items() if name == class_name), class_name)


def _serves_flink(endpoint: str) -> bool:
    """Return whether a job service knows Flink's options; False if it does not answer."""
    if endpoint in ("", "embed"):
        return False
    try:
        with grpc.insecure_channel(endpoint) as channel:
            known = beam_job_api_pb2_grpc.JobServiceStub(channel).DescribePipelineOptions(
                beam_job_api_pb2.DescribePipelineOptionsRequest(), timeout=CLUSTER_SECONDS
            )
    except (grpc.RpcError, ValueError):
        return False
    return any(option.name == "flink_master" for option in known.options)


def preset_flags(kind: str, flags: Sequence[str]) -> list[str]:
    """Return the options added to the user's: options of `PRESETS`, and options for this machine.

    A Prism or a Flink job server that `runners.servers` fetched is used. A cluster on this machine runs its
    Python code in the launching process. A cluster that answers states its own version of Flink.
    """
    said = dict(_said(flags))
    added = {**PRESETS.get(kind, {})}
    if kind == "prism" and (prism := _fetched(prism_path)) is not None:
        added["prism_location"] = prism
    if kind == "flink":
        if cluster_is_here(said.get("flink_master", "[auto]"), said.get("job_endpoint")):
            added["environment_type"] = "LOOPBACK"
        if "job_endpoint" not in said:
            added |= _of_cluster(said)
    return [
        f"--{name}={value}" if value else f"--{name}" for name, value in added.items() if name not in said
    ]


def _said(flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each option: `--name=value`, or `--name value` in two words."""
    for flag, after in pairwise([*flags, ""]):
        if flag.startswith("--"):
            name, equals, value = flag.removeprefix("--").partition("=")
            yield name, value if equals or after.startswith("--") else after


def _of_cluster(said: Mapping[str, str]) -> dict[str, str]:
    """Return the options that tell our job server the Flink cluster of a job."""
    added = {}
    master = said.get("flink_master", "[auto]")
    version = said.get("flink_version")
    if not version and cluster_host(master) is not None:
        with suppress(*NO_ANSWER):
            version = str(ask_cluster(master)["flink-version"])
    if version and (minor := minor_of(version)) in FLINK_VERSIONS:  # preflight reports any other version
        added["flink_version"] = minor
    if added.get("flink_version", FLINK_MINOR) == FLINK_MINOR:
        jar = _fetched(job_server_jar)
        if jar is not None:
            added |= {"flink_job_server_jar": jar, "flink_version": FLINK_MINOR}
    return added


def minor_of(version: str) -> str:
    """Return a version of Flink without its patch number.

    >>> minor_of("1.19.3"), minor_of("2.0")
    ('1.19', '2.0')
    """
    return ".".join(version.split(".")[:2])


def _fetched(path: Callable[[], Path]) -> str | None:
    try:
        return str(path())
    except ServerError:
        return None


def cluster_host(master: str) -> str | None:
    """Return the host of a Flink cluster; None if the job server runs a cluster of its own."""
    if master in ("[local]", "[auto]"):
        return None
    return urllib.parse.urlparse(master if "://" in master else f"//{master}").hostname or ""


def cluster_is_here(master: str, endpoint: str | None) -> bool:
    """Return whether a Flink cluster is on this machine.

    `master` may name no cluster ("[auto]", "[local]"). Then the cluster is where its job server is.

    >>> cluster_is_here("[auto]", None), cluster_is_here("[auto]", "far:8099")
    (True, False)
    """
    host = cluster_host(master)
    if host is None and endpoint:
        host = cluster_host(endpoint)
    return host is None or host in THIS_MACHINE


def cluster_url(master: str) -> str:
    """Return the address of a Flink cluster's REST interface.

    >>> cluster_url("localhost:8081"), cluster_url("https://flink.example.com")
    ('http://localhost:8081', 'https://flink.example.com')
    """
    return master if "://" in master else f"http://{master}"


def ask_cluster(master: str, path: str = "/overview", method: str = "GET") -> Any:
    """Return a Flink cluster's JSON answer to a REST request; the default path describes the cluster itself.

    Raises OSError or ValueError if the cluster does not answer.
    """
    request = urllib.request.Request(f"{cluster_url(master)}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=CLUSTER_SECONDS) as answer:
            return json.loads(answer.read())
    except InvalidURL as error:  # its text quotes the part behind a colon, which may be a password
        raise OSError("its URL is not valid" if "@" in master else str(error)) from None
    except HTTPException:  # its text may quote the bytes received
        raise OSError("what is there speaks no HTTP") from None


def join_values(arguments: Sequence[str], own: Collection[str]) -> list[str]:
    """Join each Beam option to its value in one word, `--name=value`.

    Our options, Beam's options and file names may follow each other in any order. Without the join, a
    Beam option's value could be taken for a file name. Options in `own` are left unchanged. Raises
    RunnerError for an option that is neither in `own` nor Beam's; the error suggests the nearest known name.
    """
    actions = _beam_parser()._option_string_actions
    joined: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if word == "--":
            return [*joined, word, *words]
        value = None
        if name.startswith("--") and name not in own:
            if name not in actions:
                raise RunnerError(_unknown(name, [*own, *actions]))
            if not equals and actions[name].nargs not in (0, argparse.OPTIONAL):
                value = next(words, None)
        joined.append(word if value is None else f"{word}={value}")
    return joined


def refuse_unknown(flags: Sequence[str]) -> None:
    """Raise RunnerError for the first flag that Beam does not know, or whose value it refuses."""
    parser = _beam_parser()
    _, unknown = parser.parse_known_args(list(flags))
    for flag in flags:
        name = flag.partition("=")[0]
        if (why := _REFUSED.get(name.removeprefix("--"))) is not None:
            raise RunnerError(f"option {name}: {why}")
    for flag in unknown:
        if flag == "--":
            continue  # argparse leaves it there if files stand before the options and after them
        name = flag.split("=")[0]
        if name.startswith("-"):
            raise RunnerError(_unknown(name, parser._option_string_actions))
        raise RunnerError(f"the argument {flag!r} belongs to no option; put it right after the one it is for")


def _unknown(name: str, names: Iterable[str]) -> str:
    near = near_names(name, names)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"option {name} is neither rocsteady's nor Beam's{hint}"


def _refuse(why: str) -> NoReturn:
    raise RunnerError(why) from None


def _beam_parser() -> Any:
    """Return a parser of every option that Beam defines; it raises RunnerError for a value it refuses."""
    from apache_beam.options.pipeline_options import _BeamArgumentParser

    parser: Any = _BeamArgumentParser(allow_abbrev=False, add_help=False)
    parser.error = _refuse  # argparse's own method would print the text and exit
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(parser)
    for name in (JOB_LABELS, *_FLINK_VALUES, *_REFUSED):
        parser.add_argument(f"--{name}")
    for name in _FLINK_SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    return parser
