"""Stored bytes with a damaged content and right checksums, as somebody who means harm would make them.

Every part of the bytes that a checksum stands for is found by its checksum, whatever the form of its head; so
parts within parts are sealed again from the inside out.
"""

from __future__ import annotations

import functools
import json
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np
from rocsteady.core.settings.table import TableSettings

_EXTREMES = (
    0,
    1,
    -1,
    2,
    127,
    255,
    2**15,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**53,
    2**60,
    2**62,
    2**63 - 1,
    -(2**63),
)

_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 7.5, 2**31, 2**60, 2**63 - 1, 2**63, -(2**63), 10**40, 1e308, "", "x", "7d",
    "last:0", "last:1152921504606846976", "\ud800", [], [[]], {}, {"a": 1}, [1, 2, 3],
)  # fmt: skip


class Seal(NamedTuple):
    """A checksum at `at` of [start, end); the length, if there is one, stands at `length`."""

    at: int
    start: int
    end: int
    length: int | None


@functools.cache
def seals_of(data: bytes) -> list[Seal]:
    """Return the checksums in bytes, the innermost first."""
    found = {}
    for at in range(len(data) - 4):
        crc = struct.unpack_from("<I", data, at)[0]
        start = at + 4
        ends = {len(data): None}
        if at >= 8 and (size := struct.unpack_from("<Q", data, at - 8)[0]) <= len(data) - start and size:
            ends[start + size] = at - 8
        for form in ("<I", "<Q"):  # a part whose length is in front of its checksum, and counts it
            before = at - struct.calcsize(form)
            if before >= 0 and 4 < (size := struct.unpack_from(form, data, before)[0]) <= len(data) - at:
                ends.setdefault(at + size, None)
        for end, length in ends.items():
            if end > start and crc and zlib.crc32(data[start:end]) == crc:
                found[at, end] = Seal(at, start, end, length)
    return sorted(found.values(), key=lambda seal: seal.end - seal.start)


def sealed(data: bytes, seals: list[Seal]) -> bytes:
    """Return bytes whose checksums are right again; nothing in front of a checksum has moved."""
    result = bytearray(data)
    for at, start, end, _ in seals:
        struct.pack_into("<I", result, at, zlib.crc32(result[start:end]))
    return bytes(result)


@functools.cache
def texts_of(data: bytes) -> list[tuple[int, int, bool]]:
    """Return the JSON texts in bytes: (start, end, whether their length u32 stands in front)."""
    found = []
    for at in range(4, len(data)):
        if data[at : at + 1] not in (b"{", b"["):
            continue
        size = struct.unpack_from("<I", data, at - 4)[0]
        for end, is_sized in ((at + size, True), (len(data), False)):
            if at + 1 < end <= len(data) and _is_json(data[at:end]):
                found.append((at, end, is_sized))
                break
    return found


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def damaged(data: bytes, random: np.random.Generator) -> bytes:
    """Return bytes with some damage, and with the right checksums."""
    seals, texts = seals_of(data), texts_of(data)
    if texts and random.random() < 0.5:
        return _with_other_text(data, seals, texts[random.integers(len(texts))], random)
    return _with_other_bytes(data, seals, random)


def _with_other_bytes(data: bytes, seals: list[Seal], random: np.random.Generator) -> bytes:
    result = bytearray(data)
    inner = seals[random.integers(len(seals))] if seals else Seal(0, 0, len(data), None)
    for _ in range(random.integers(1, 4)):
        at = int(random.integers(inner.start, inner.end))
        kind = random.integers(6)
        if kind == 0:
            result[at] = random.integers(256)
        elif kind == 1:
            result[at] ^= 1 << random.integers(8)
        elif kind in (2, 3):
            width = int(random.choice([2, 4, 8]))
            value = int(_EXTREMES[random.integers(len(_EXTREMES))]) % 2 ** (8 * width)
            result[at : min(at + width, inner.end)] = value.to_bytes(width, "little")[: inner.end - at]
        elif kind == 4:
            width = min(8, inner.end - at, inner.end - inner.start)
            other = int(random.integers(inner.start, inner.end - width + 1))
            result[at : at + width], result[other : other + width] = (
                result[other : other + width], result[at : at + width],
            )  # fmt: skip
        else:
            number = struct.pack("<d", random.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 5e-324]))
            result[at : at + 8] = number[: len(result[at : at + 8])]
    return sealed(bytes(result[: len(data)]), seals)


def _with_other_text(
    data: bytes, seals: list[Seal], text: tuple[int, int, bool], random: np.random.Generator
) -> bytes:
    start, end, is_sized = text
    said = data[start:end]
    kind = random.integers(10)
    if kind == 0:
        new = b'{"a":' * 100_000
    elif kind == 1:
        new = b"[" * 50_000 + b"]" * 50_000
    elif kind == 2:
        new = said[: len(said) // 2]
    else:
        content = json.loads(said)
        for _ in range(random.integers(1, 3)):
            content = _changed(content, random)
        new = json.dumps(content).encode("utf-8", "surrogatepass")
    more = len(new) - len(said)
    result = bytearray(data[:start] + new + data[end:])
    if is_sized:
        struct.pack_into("<I", result, start - 4, len(new))
    moved = []
    for seal in seals:
        if seal.start <= start and end <= seal.end:
            if seal.length is not None:
                size = struct.unpack_from("<Q", result, seal.length)[0]
                struct.pack_into("<Q", result, seal.length, size + more)
                head = seal.length - 8  # of a frame, in front of which its length may stand
                for outer in (head - 8, head - 24):
                    if outer >= 0 and struct.unpack_from("<Q", result, outer)[0] == seal.end - head:
                        struct.pack_into("<Q", result, outer, seal.end - head + more)
            moved.append(seal._replace(end=seal.end + more))
        elif seal.start >= end:
            moved.append(Seal(seal.at + more, seal.start + more, seal.end + more, None))
        else:
            moved.append(seal)
    _with_fingerprint(result, new)
    return sealed(bytes(result), moved)


def _changed(content: Any, random: np.random.Generator) -> Any:
    """Return JSON in which something is another value, is missing, or is there twice."""
    if isinstance(content, dict) and content and random.random() < 0.85:
        name = list(content)[random.integers(len(content))]
        if random.random() < 0.2:
            return {key: value for key, value in content.items() if key != name}
        return content | {name: _changed(content[name], random)}
    if isinstance(content, list) and content and random.random() < 0.85:
        place = int(random.integers(len(content)))
        if random.random() < 0.3:
            return (
                content[:place]
                + content[place + int(random.random() < 0.5) * 2 :]
                + content[place : place + 1]
            )
        return [*content[:place], _changed(content[place], random), *content[place + 1 :]]
    if type(content) is int and random.random() < 0.5:
        return content + int(random.choice([-1, 1, 2, 64, 1000]))
    return _VALUES[random.integers(len(_VALUES))]


def _with_fingerprint(result: bytearray, text: bytes) -> None:
    """Put the fingerprint of changed settings into the head of a snapshot, where the bytes hold one."""
    try:
        fingerprint = TableSettings.from_json(text.decode("utf-8", "surrogatepass")).fingerprint()
    except Exception:  # whatever it is, it has no fingerprint
        return
    at = result.find(b"RSST")
    if at >= 0:
        result[at + 8 : at + 24] = fingerprint
