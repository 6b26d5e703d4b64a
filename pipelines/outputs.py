"""The output files of a command.

They are checked before the command's work, and are complete or absent after it.

A job on this machine writes its outputs into a hidden folder beside their final place. When the job is done,
the outputs move to their place. So a job that fails or is interrupted leaves no output, whatever its threads
were doing.

Each rename is atomic, but several renames together are not. So a run with several outputs writes a note
beside the first output before its renames, and removes the note after the last rename. A note that no process
holds locked belongs to a run that was killed. Then its outputs and those of an earlier run may be mixed.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ..core.encoding.json import read_object, reading, text_of
from ..core.errors import ConfigError, InputError, RocsteadyError, WireError
from ..core.process.console import name_text, say
from ..core.process.temporary_folders import in_use
from ..transforms.files.formats import SourceFile, has_scheme
from ..transforms.files.stored import read_in
from ..transforms.sinks.open import is_streamed
from ..transforms.sinks.table import is_csv, try_folder
from .arguments import option_of

STDOUT = "-"

_NAME = "rows"
"""The name of an unfinished output in the hidden folder. The final name may be too long to extend."""

_NOTE_PREFIX, _NOTE_ENDING = ".rocsteady-", ".renames"

_MOST_BYTES = 1 << 20
"""The most bytes of a note. Other users may write to the folder, so a longer or irregular file is not a note.
"""


def check_csv_safe(csv_safe: bool, outputs: Iterable[str]) -> None:
    """Raise ConfigError for --csv-safe without any output that is a CSV file."""
    if csv_safe and not any(is_csv(path) and not is_streamed(path) for path in outputs):
        raise ConfigError(
            "--csv-safe is for CSV, and no output is CSV; name one that ends in .csv or .csv.gz, or leave "
            "--csv-safe out"
        )


def check_outputs(
    named: Sequence[tuple[str, str | None, str, Callable[[str], None]]], sources: Sequence[SourceFile]
) -> None:
    """Raise InputError if an output cannot be written, or would replace an input or another output.

    named  (option, path, content, check of the path) of each output; the path is None if the output is not
           asked for. Only the path of --output may be STDOUT

    Raises ConfigError for another path that is STDOUT.
    """
    outputs = []
    for option, path, content, check in named:
        if path == STDOUT and option != "--output":
            raise ConfigError(f"{option} -: stdout is for rows; name a file")
        if path is not None and path != STDOUT:
            outputs.append((option, path, content, check))
    for place, (option, path, _, check) in enumerate(outputs):
        _check_place(option, path)
        check(path)
        for source in sources:
            if _same_file(path, source.path):
                raise InputError(f"{option} {path} is also an input; write to another file")
        for _, other, content, _ in outputs[:place]:
            if _same_file(path, other):
                what = "place" if is_streamed(path) else "file"
                raise InputError(f"{option} {path} is the {what} of the {content}; name another")


def _check_place(option: str, path: str) -> None:
    """Raise InputError where `path`, with links followed, cannot become an output file.

    `check_output` checks the rest.
    """
    if has_scheme(path):
        return
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG  # `path` will be a regular file
    except OSError as error:
        raise InputError(f"{option} {path} cannot be written: {error.strerror}; name another file") from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(
            f"{option} {path} is a pipe, a socket or a device; name a file (--output - is stdout)"
        )
    if not Path(path).is_symlink():
        return
    final = Path(os.path.realpath(path))
    if not final.parent.is_dir():
        raise InputError(
            f"{option} {path} is a link to {final}, and the folder {final.parent} does not exist; create it, "
            "or write elsewhere"
        )
    try:
        try_folder(final.parent)
    except OSError as error:
        raise InputError(
            f"{option} {path} is a link to {final}, and the folder {final.parent} cannot be written to "
            f"({error.strerror}); write elsewhere"
        ) from None


def _same_file(one: str, other: str) -> bool:
    if has_scheme(one) or has_scheme(other):
        return one == other
    return os.path.realpath(one) == os.path.realpath(other)


@contextmanager
def staged(paths: Sequence[str], here: bool) -> Iterator[list[str]]:
    """Yield temporary paths for files; all files are renamed to `paths` only if the block succeeds.

    A job on other machines does not see the folders of this machine: it writes to `paths` directly.
    """
    if not paths or not here or any(map(has_scheme, paths)):
        yield list(paths)
        return
    with ExitStack() as folders:
        places = []
        finals = [Path(os.path.realpath(path)) for path in paths]  # a link keeps its target
        tell_of_unfinished(finals)
        for path, final in zip(paths, finals, strict=True):
            with told(path):
                folder = tempfile.TemporaryDirectory(
                    dir=final.parent, prefix=".rocsteady-", suffix=".tmp", ignore_cleanup_errors=True
                )
            places.append(Path(folders.enter_context(folder)) / f"{_NAME}{_ending(path)}")
        yield list(map(str, places))
        with told(paths[0]), renames_noted(places, finals):
            for place, path, final in zip(places, paths, finals, strict=True):
                with told(path):
                    if final.exists():
                        place.chmod(stat.S_IMODE(final.stat().st_mode))
                    place.replace(final)


@contextmanager
def told(path: str) -> Iterator[None]:
    """While the block runs, make system errors name the output as the user knows it, no temporary file."""
    try:
        yield
    except OSError as error:
        raise RocsteadyError(f"output {path} cannot be written: {error.strerror or error}") from None


@contextmanager
def renames_noted(places: Sequence[Path], finals: Sequence[Path]) -> Iterator[None]:
    """Keep a note while the block renames each place to its final path.

    After the block, a note of an earlier run is removed if every output that it names has been replaced.
    """
    old = [note for note, moves in _notes(finals) if {final for _, final in moves} <= set(map(str, finals))]
    if len(finals) < 2:
        yield
    else:
        note = finals[0].parent / f"{_NOTE_PREFIX}{secrets.token_hex(6)}{_NOTE_ENDING}"
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
    """Print on stderr which of these outputs come from a run that was killed between two renames.

    A note of a run that renamed none of its outputs, or all of them, is removed.
    """
    for note, moves in _notes(finals):
        new = [Path(final).name for place, final in moves if not Path(place).exists()]
        old = [Path(final).name for place, final in moves if Path(place).exists()]
        if not new or not old:  # no output was renamed, or all were
            with suppress(OSError):
                note.unlink()
            continue
        say(
            f"warning: a run was killed while it named its outputs in {name_text(str(note.parent))}: "
            f"{_are(new)} of that run, and {_are(old)} not; run it again"
        )


def _notes(finals: Sequence[Path]) -> list[tuple[Path, list[tuple[str, str]]]]:
    """Return the notes of ended runs beside some outputs, each with its renames (place, final)."""
    found = []
    for folder in dict.fromkeys(final.parent for final in finals):
        for note in sorted(folder.glob(f"{_NOTE_PREFIX}*{_NOTE_ENDING}")):
            with suppress(OSError, WireError, InputError), in_use(note) as is_free:
                if is_free:
                    data = read_in(str(folder), note.name, most=_MOST_BYTES)
                    with reading("a note of renames"):
                        content = read_object(data, "a note of renames")
                        moves = [(text_of(place), text_of(final)) for place, final in content["moves"]]
                    found.append((note, moves))
    return found


def _are(names: Sequence[str]) -> str:
    return f"{', '.join(map(name_text, names))} {'is' if len(names) == 1 else 'are'}"


def _ending(path: str) -> str:
    """Return the ending that decides the format: the ending of the user's path, not of a link's target."""
    return "".join(Path(path.lower()).suffixes[-2 if path.lower().endswith(".gz") else -1 :])


def is_text(name: str) -> bool:
    """Return whether a word of the command line is UTF-8. The system also passes words with other bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:  # the system passed bytes that are not UTF-8
        return False
    return True


def check_texts(options: argparse.Namespace, *names: str) -> None:
    """Raise ConfigError for the first of these options whose value is not UTF-8."""
    for name in names:
        text = getattr(options, name)
        if not is_text(text or ""):
            raise ConfigError(f"{option_of(name)} {text!a} is not UTF-8; give another")
