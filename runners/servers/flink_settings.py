"""Settings of a Flink cluster that `up` starts.

It checks which may be given, and computes the memory that Java needs for them.

Flink ignores a setting that it does not know. So a name is checked against the names in Flink's own classes.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ...core.process.near_names import near_names
from .packages import FLINK_MINOR
from .processes import ServerError

OPTION = "--flink-conf"

BY_OPTION = {"rest.port": "--flink-port", "taskmanager.numberOfTaskSlots": "--slots"}
"""Settings for which `up` has options of its own."""

_LISTENING = (
    "rest.address", "rest.bind-address", "rest.bind-port", "jobmanager.rpc.address", "jobmanager.rpc.port",
    "jobmanager.bind-host", "taskmanager.host", "taskmanager.bind-host", "jmx.server.port",
)  # fmt: skip
"""Settings that decide where processes listen. No port of `up` is open to another machine."""

_BY_SCRIPTS = ("taskmanager.memory.", "jobmanager.memory.", "env.")
"""Beginnings of settings that Flink's start scripts turn into options of Java. `up` runs no such script."""

_NAMED_BY_USERS = ("metrics.reporter.", "fs.")
"""Beginnings of settings whose names contain a user's own words, or belong to another project."""

_BYTES = {"": 0, "b": 0, "bytes": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30}
_MEMORY = re.compile(r"(\d+)\s*([a-z]*)")
_NAME = re.compile(rb"\x01\x00.([a-z][a-z0-9-]*(?:\.[A-Za-z0-9-]+)+)(?=[\x00-\x12])", re.DOTALL)
"""A dotted name as a whole constant of a Java class: its tag, its two bytes of length, and the next tag."""


def parse_settings(words: Sequence[str]) -> dict[str, str]:
    """Return the settings that words KEY=VALUE give. Of two values for a key, the later one counts."""
    settings = {}
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not (key and equals and value):
            raise ServerError(
                f"{OPTION} {word!r}: give KEY=VALUE, such as restart-strategy.type=failure-rate"
            )
        settings[key] = value
    return settings


def check_settings(given: Mapping[str, str], ours: Iterable[str], jars: Path) -> None:
    """Raise ServerError for the first setting that `up` would ignore.

    ours  the names of the settings that `up` sets itself, such as the memory of a TaskManager
    jars  the folder of Flink's jars, whose names are known settings
    """
    known: set[str] = set()
    for key, value in given.items():
        said = f"{OPTION} {key}={value}"
        if key in BY_OPTION:
            raise ServerError(f"{said}: give it by {BY_OPTION[key]}")
        if key in _LISTENING:
            raise ServerError(f"{said}: servers of `up` listen on this machine alone; leave it out")
        for start in _BY_SCRIPTS:
            if key.startswith(start) and key not in ours:
                heeded = ", ".join(name for name in ours if name.startswith(start)) or "none"
                raise ServerError(
                    f"{said}: Flink's own start scripts would heed it, and `up` does not run them. Settings "
                    f"of {start}* that `up` heeds: {heeded}"
                )
        if key in ours:
            if ".memory." in key:
                memory_of(given, key)
            continue
        if key.startswith(_NAMED_BY_USERS):
            continue
        known = known or known_settings(jars)
        if key not in known:
            near = near_names(key, sorted(known))
            hint = f"did you mean {near[0]}?" if near else "its documentation names all settings"
            raise ServerError(f"{said}: Flink {FLINK_MINOR} knows no such setting; {hint}")


def known_settings(jars: Path) -> set[str]:
    """Return the dotted names in the classes of Flink's options; takes 0.2 s.

    A few of them are no settings.
    """
    found: set[str] = set()
    for jar in jars.glob("flink-*.jar"):
        with zipfile.ZipFile(jar) as classes:
            for name in classes.namelist():
                if name.startswith("org/apache/flink/") and name.endswith("Options.class"):
                    found.update(each.decode() for each in _NAME.findall(classes.read(name)))
    return found


def memory_of(settings: Mapping[str, str | int], *keys: str) -> int:
    """Return the sum of settings in bytes. A value is a number of bytes, or a number with a unit: "64 mb"."""
    total = 0
    for key in keys:
        value = str(settings[key])
        found = _MEMORY.fullmatch(value.strip().lower())
        if found is None or found[2] not in _BYTES:
            raise ServerError(f"{key}={value}: give bytes, or a number with k, m or g, such as 64m")
        total += int(found[1]) << _BYTES[found[2]]
    return total
