"""Which sockets of a process and of all that it started listen, and where (Linux)."""

from __future__ import annotations

import contextlib
import ipaddress
import struct
from pathlib import Path
from typing import NamedTuple

LISTENING = "0A"
"""The state of a socket in /proc/net/tcp."""


class Socket(NamedTuple):
    """A socket that listens: whose, and where."""

    pid: int
    host: str
    port: int

    @property
    def is_open(self) -> bool:
        """Whether another machine can reach it."""
        return not ipaddress.ip_address(self.host).is_loopback


def family_of(pid: int) -> set[int]:
    """Return a process and all that descend from it."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def listening(*pids: int) -> set[Socket]:
    """Return the sockets at which processes and all that descend from them listen now."""
    where = {}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING:
                where[fields[9]] = _address(fields[1])
    found = set()
    for pid in set().union(*map(family_of, pids)):
        for descriptor in _descriptors(pid):
            if descriptor.startswith("socket:[") and (at := where.get(descriptor[8:-1])) is not None:
                found.add(Socket(pid, *at))
    return found


def _descriptors(pid: int) -> list[str]:
    found = []
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(str(link.readlink()))
    return found


def _address(text: str) -> tuple[str, int]:
    """Return host and port of words such as 0100007F:1F90, whose numbers of 4 bytes are little-endian."""
    host, _, port = text.partition(":")
    raw = bytes.fromhex(host)
    raw = struct.pack(f">{len(raw) // 4}I", *struct.unpack(f"<{len(raw) // 4}I", raw))
    address = ipaddress.ip_address(raw)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address), int(port, 16)
