"""Detects mixed outputs of two runs, left by a process that was killed while it renamed its outputs.

Each rename is atomic, but several renames together are not. So a run with several outputs writes a note
beside the first output before its renames, and removes the note after the last rename. A note that no process
holds locked belongs to a run that was killed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ..core.encoding.json import read_object, reading, text_of
from ..core.errors import InputError, WireError
from ..core.process.console import name_text, say
from ..core.process.temporary_folders import in_use
from ..transforms.files.stored import read_in

_PREFIX, _ENDING = ".rocsteady-", ".renames"

_MOST_BYTES = 1 << 20
"""Bytes of a note, at most. Others may write to the folder: a longer or irregular file is not a note."""


@contextmanager
def renames_noted(places: Sequence[Path], finals: Sequence[Path]) -> Iterator[None]:
    """Keep a note while the block renames each place to its final path.

    After the block, a note of an earlier run is removed if every output that it names has been replaced.
    """
    old = [note for note, moves in _notes(finals) if {final for _, final in moves} <= set(map(str, finals))]
    if len(finals) < 2:
        yield
    else:
        note = finals[0].parent / f"{_PREFIX}{secrets.token_hex(6)}{_ENDING}"
        moves = [[str(place), str(final)] for place, final in zip(places, finals, strict=True)]
        started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        note.write_text(json.dumps({"time": started, "moves": moves}), "utf-8", "surrogateescape")
        try:
            with in_use(note):
                yield
        finally:
            note.unlink(missing_ok=True)
    for note in old:
        with suppress(OSError):
            note.unlink()


def tell_of_unfinished(finals: Sequence[Path]) -> None:
    """Print on stderr which outputs beside these come from a run that was killed between two renames."""
    for note, moves in _notes(finals):
        new = [Path(final).name for place, final in moves if not Path(place).exists()]
        old = [Path(final).name for place, final in moves if Path(place).exists()]
        if not new or not old:  # no output was renamed, or all were
            with suppress(OSError):
                note.unlink()
            continue
        say(
            f"warning: a run was killed while it named its outputs in {name_text(str(note.parent))}: "
            f"{_listed(new)} {_is(new)} of that run, and {_listed(old)} {_is(old)} not; run it again"
        )


def _notes(finals: Sequence[Path]) -> list[tuple[Path, list[tuple[str, str]]]]:
    """Return the notes of ended runs beside some outputs, each with its renames (place, final)."""
    found = []
    for folder in dict.fromkeys(final.parent for final in finals):
        for note in sorted(folder.glob(f"{_PREFIX}*{_ENDING}")):
            with suppress(OSError, WireError, InputError), in_use(note) as is_free:
                if is_free:
                    data = read_in(str(folder), note.name, most=_MOST_BYTES)
                    with reading("a note of renames"):
                        content = read_object(data, "a note of renames")
                        moves = [(text_of(place), text_of(final)) for place, final in content["moves"]]
                    found.append((note, moves))
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(name_text, names))


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
