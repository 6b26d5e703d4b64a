"""Beam's job server for Flink, changed so that it listens on this machine alone.

One class, `ServerFactory`, makes Beam's Java servers. The class receives an address and uses only the port:
`NettyServerBuilder.forPort(address.getPort())` listens on every address (Beam 2.50 to 2.77, at least). No
option changes the call. A job names commands that its workers run, so whoever reaches the port runs commands.

This module changes the call to `NettyServerBuilder.forAddress(address)`. The address is that of --job-host,
or localhost. Flink's TaskManagers load their classes from the same jar, so the ports by which TaskManagers
talk to Python workers are closed, too.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
import tempfile
import zipfile
from pathlib import Path

_FACTORY = "org/apache/beam/sdk/fn/server/ServerFactory$InetSocketAddressServerFactory.class"
_UTF8, _NAME_AND_TYPE, _METHOD = 1, 12, 10
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2,
          20: 2}  # fmt: skip
"""How many bytes a constant has after its tag, by tag; text has its own length.

Source: The Java Virtual Machine Specification 17, 4.4.
"""
_CALL_VIRTUAL, _CALL_STATIC, _NOTHING = b"\xb6", b"\xb8", b"\x00"


class OpenJarError(ValueError):
    """Raised if a jar's servers cannot be made to listen on this machine alone; the text says why."""


def closed(jar: Path, folder: Path) -> Path:
    """Return a job server that listens on this machine alone: the jar itself, or a copy of it in a folder.

    Each jar is copied once; a copy of 160 MB takes a second. Raises OpenJarError, or OSError.
    """
    try:
        with zipfile.ZipFile(jar) as archive:
            content = archive.read(_FACTORY)
    except (zipfile.BadZipFile, KeyError) as damage:
        raise OpenJarError(f"{jar} is no job server of Beam ({damage})") from None
    changed = _on_its_address(content)
    if changed is None:
        return jar
    found = jar.stat()
    mark = hashlib.sha256(f"{jar.absolute()} {found.st_size} {found.st_mtime_ns}".encode()).hexdigest()[:16]
    copy = folder / f"{jar.stem}-{mark}.jar"
    if not copy.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            unfinished = Path(scratch) / copy.name
            shutil.copyfile(jar, unfinished)
            close(unfinished)
            unfinished.rename(copy)
    return copy


def close(jar: Path) -> None:
    """Change a job server's jar in place, unless it was changed before. Raises OpenJarError, or OSError."""
    with zipfile.ZipFile(jar, "a") as archive:
        before = archive.getinfo(_FACTORY)
        changed = _on_its_address(archive.read(before))
        if changed is None:
            return
        # Readers of a ZIP file use the index at its end, so the old bytes stay in the file without a
        # reference.
        archive.filelist.remove(before)
        del archive.NameToInfo[_FACTORY]
        archive.writestr(_FACTORY, changed, zipfile.ZIP_DEFLATED)


def _on_its_address(content: bytes) -> bytes | None:
    """Return the bytes of `ServerFactory` with its call changed; None if the call was changed before.

    Raises OpenJarError for a class that does not have exactly the call that is known.
    """
    constants, end = _constants(content)
    text = {number: each[3:] for number, each in constants.items() if each[0] == _UTF8}
    methods = {number: _method(constants, each) for number, each in constants.items() if each[0] == _METHOD}
    if any(text.get(name) == b"forAddress" for _, name, _ in methods.values()):
        return None
    port = [n for n, (_, name, kind) in methods.items() if (text[name], text[kind]) == (b"getPort", b"()I")]
    builders = [(n, owner, kind) for n, (owner, name, kind) in methods.items() if text[name] == b"forPort"]
    for get_port in port:
        for builder, owner, kind in builders:
            before = _CALL_VIRTUAL + struct.pack(">H", get_port) + _CALL_STATIC + struct.pack(">H", builder)
            if content.count(before, end) != 1:
                continue
            first = _count(content)
            result = text[kind].partition(b")")[2]
            added = [
                _utf8(b"forAddress"),
                _utf8(b"(Ljava/net/SocketAddress;)" + result),
                struct.pack(">BHH", _NAME_AND_TYPE, first, first + 1),
                struct.pack(">BHH", _METHOD, owner, first + 2),
            ]
            after = _NOTHING * 3 + _CALL_STATIC + struct.pack(">H", first + 3)
            return b"".join((
                content[:8], struct.pack(">H", first + len(added)), content[10:end], *added,
                content[end:].replace(before, after),
            ))  # fmt: skip
    raise OpenJarError("its ServerFactory differs from those of Beam 2.50 to 2.77")


def _count(content: bytes) -> int:
    return int(struct.unpack_from(">H", content, 8)[0])


def _constants(content: bytes) -> tuple[dict[int, bytes], int]:
    """Return the constants of a class by their numbers, each with its tag, and the offset behind the last."""
    found: dict[int, bytes] = {}
    at, number = 10, 1
    while number < _count(content):
        tag = content[at]
        if tag == _UTF8:
            size = 3 + int(struct.unpack_from(">H", content, at + 1)[0])
        elif tag in _SIZES:
            size = 1 + _SIZES[tag]
        else:
            raise OpenJarError(f"its ServerFactory has a constant of the unknown kind {tag}")
        found[number] = content[at : at + size]
        at += size
        number += 2 if tag in (5, 6) else 1
    return found, at


def _method(constants: dict[int, bytes], method: bytes) -> tuple[int, int, int]:
    """Return the numbers of a method's class, of its name and of its type."""
    _, owner, name_and_type = struct.unpack(">BHH", method)
    _, name, kind = struct.unpack(">BHH", constants[name_and_type])
    return owner, name, kind


def _utf8(text: bytes) -> bytes:
    return struct.pack(">BH", _UTF8, len(text)) + text
