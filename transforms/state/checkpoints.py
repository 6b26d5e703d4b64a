"""The checkpoints of a job that runs in one process, as files of a folder on this machine.

Invariant
    A file under its final name is complete: it is written under a hidden name, flushed to the disk and
    renamed, and the folder is flushed. The file before the newest stays until the next one is written.
    So whenever the process, or the machine, stops, a complete checkpoint is there, if one ever was.

One process uses a folder at a time. A name is checkpoint-<number>.rscp; numbers grow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ...core.errors import InputError, RocsteadyError, WireError
from ...core.process.console import say
from ...core.process.temporary_folders import in_use
from ...core.state.checkpoint import Checkpoint
from ..sinks.table import replaced, try_folder

_NAME = re.compile(r"checkpoint-(\d{8,18})\.rscp")
_UNFINISHED = ".checkpoint-*.tmp"

_Read = TypeVar("_Read")


class CheckpointFolder:
    """The checkpoints of one job in a folder.

    option  the option that names the folder, for errors
    """

    def __init__(self, folder: str, option: str = "--checkpoint") -> None:
        self.folder = folder
        self._said = f"{option} {folder}"
        self._path = Path(folder)
        self._good: int | None = None

    def check(self) -> None:
        """Make the folder, if it is missing. Raises InputError if files cannot be written into it."""
        try:
            self._path.mkdir(exist_ok=True)
            try_folder(self._path)
        except FileExistsError:
            raise InputError(f"{self._said} is a file; name a folder") from None
        except FileNotFoundError:
            raise InputError(
                f"{self._said}: the folder {self._path.parent} does not exist; create it, or name another"
            ) from None
        except OSError as error:
            raise InputError(
                f"{self._said} cannot be written to ({error.strerror}); name another folder"
            ) from None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out of the folder for the block.

        Raises InputError if another process uses the folder.
        """
        with in_use(self._path.resolve()) as is_free:  # a link to a folder cannot be locked itself
            if not is_free:
                raise InputError(
                    f"{self._said} is in use by another job that runs now; stop it, or name another folder"
                )
            for left in self._path.glob(_UNFINISHED):  # a process that was killed left it
                left.unlink(missing_ok=True)
            yield

    def newest(self, read: Callable[[Checkpoint], _Read]) -> _Read | None:
        """Return `read` of the newest checkpoint that can be used; None if the folder has no checkpoints.

        read  raises a `WireError` for a checkpoint that cannot be used

        Each checkpoint that cannot be used is reported on stderr, with the reason. Raises InputError if the
        folder has checkpoints, but none that can be used.
        """
        numbers = self._numbers()
        for number in numbers:
            path = self._place(number)
            try:
                found = read(Checkpoint.unpack(path.read_bytes()))
            except (WireError, OSError) as damage:
                why = damage if isinstance(damage, WireError) else damage.strerror or damage
                then = "the one before it is used" if number != numbers[-1] else "there is none before it"
                say(f"warning: {path} cannot be used ({type(damage).__name__}: {why}); {then}")
                continue
            self._good = number
            return found
        if numbers:
            raise InputError(
                f"{self._said} has no checkpoint that can be used, and the job will not begin anew unasked: "
                "copy one back, or say --checkpoint-new, which removes them"
            )
        return None

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, and keep the one before it.

        Raises RocsteadyError if the checkpoint cannot be written.
        """
        try:
            numbers = self._numbers()
            number = max(numbers, default=0) + 1
            with replaced(str(self._place(number))) as file:
                file.write(checkpoint.pack())
            for other in numbers:
                if other != self._good:
                    self._place(other).unlink(missing_ok=True)
        except OSError as error:
            raise RocsteadyError(
                f"{self._said}: a checkpoint cannot be written ({error.strerror or error}); make room, or "
                "let it be written to; the same command goes on from the checkpoint before"
            ) from None
        self._good = number

    def clear(self) -> None:
        """Remove all checkpoints, the newest last."""
        for number in reversed(self._numbers()):
            self._place(number).unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        """Return the numbers of the files, the newest first."""
        found = (_NAME.fullmatch(path.name) for path in self._path.iterdir())
        return sorted((int(match[1]) for match in found if match is not None), reverse=True)

    def _place(self, number: int) -> Path:
        return self._path / f"checkpoint-{number:08d}.rscp"
