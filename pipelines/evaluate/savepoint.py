"""Compares a Flink savepoint's settings with a job's settings before the job resumes from the savepoint.

A worker refuses a state of other settings, but only when the first event reaches a shard: minutes after the
start. Every stored snapshot begins with a head that holds the settings. Flink's "canonical" format stores
state values unchanged. So the check searches the savepoint's files for a head, which a hash inside the head
confirms. The check may find no head: RocksDB's "native" format is compressed, the storage cannot be read from
here, or too little input came for a snapshot. Then the worker still refuses.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from ...core.encoding.frames import HEAD_BYTES
from ...core.errors import InputError, OtherConfigurationError, check_settings
from ...core.evaluator import snapshot
from ...core.join import state as label_join_state
from ...core.settings.table import TableSettings
from .job import Evaluation

_MOST_BYTES = 256 << 20
"""Bytes of a savepoint to read, at most. Each shard holds the settings, so an early part is enough."""

_CHUNK = 4 << 20
_HEAD = re.compile(re.escape(snapshot.MAGIC) + b"|" + re.escape(label_join_state.MAGIC))
_LONGEST = 1 << 16
"""Bytes of the settings' text, at most."""


def check_savepoint(job: Evaluation) -> None:
    """Raise InputError where the job resumes from a savepoint of a job with other settings."""
    path = job.runner.options.get_all_options(retain_unknown_options=True).get("savepoint_path")
    if not path:
        return
    wanted: dict[str, dict[str, Any]] = {"evaluators": job.settings.whole_meaning()}
    if job.join is not None:
        wanted["join"] = job.join.settings.meaning()
    for step, there in _settings_in(str(path)):
        here = wanted.pop(step, None)
        if here is None:
            continue
        try:
            check_settings(here, there)
        except OtherConfigurationError as other:
            raise InputError(
                f"--savepoint_path {path}: {other}. With --control on the old job, rocsteady state export "
                "and then --import-state take the state to settings that may change (docs/state.md)"
            ) from None
        if not wanted:
            return


def _settings_in(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (step, settings) of the stored states that are found in the files of a savepoint."""
    folder = urlsplit(path).path if urlsplit(path).scheme == "file" else path
    left = _MOST_BYTES
    with suppress(Exception):  # each file system of Beam has its own errors
        files = FileSystems.match([f"{folder.rstrip('/')}/*"])[0].metadata_list
        for file in sorted(files, key=lambda file: int(file.size_in_bytes)):
            with FileSystems.open(file.path, compression_type=CompressionTypes.UNCOMPRESSED) as content:
                before = b""
                while left > 0 and (chunk := content.read(_CHUNK)):
                    left -= len(chunk)
                    data = before + chunk
                    yield from _heads(data)
                    before = data[-_LONGEST:]


def _heads(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    for found in _HEAD.finditer(data):
        with suppress(ValueError, KeyError, TypeError, struct.error):
            if found[0] == snapshot.MAGIC:
                head = data[found.start() : found.start() + HEAD_BYTES + snapshot.FINGERPRINT_BYTES]
                version, reserved = struct.unpack_from("<HH", head, 4)
                settings = TableSettings.from_json(_text(data, found.start() + len(head)))
                fingerprint = head[8 : 8 + snapshot.FINGERPRINT_BYTES]
                if not reserved and version <= snapshot.VERSION and settings.fingerprint() == fingerprint:
                    yield "evaluators", settings.whole_meaning()
            else:
                said = json.loads(_text(data, found.start() + HEAD_BYTES))
                if isinstance(said, dict) and "evaluator_shards" in said:
                    yield "join", said


def _text(data: bytes, at: int) -> str:
    (length,) = struct.unpack_from("<I", data, at)
    if length > _LONGEST or at + 4 + length > len(data):
        raise ValueError("no settings stand here")
    return data[at + 4 : at + 4 + length].decode()
