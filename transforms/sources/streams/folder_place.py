"""The place of a reader in a folder: the file being read, how far, and the files that were read before."""

from __future__ import annotations

import base64
import json
import os
import zlib
from dataclasses import dataclass
from functools import lru_cache

from ....core.encoding.json import MOST_BYTES, read_json, reading, text_of, whole
from .folder_files import FilePlace

_BEGINNING = FilePlace()


@dataclass(frozen=True)
class FolderPlace:
    """A place in a folder.

    name  the file that was begun last; "" = none was
    file  the place in that file
    read  the names of the existing files that were read to their ends. None, in a place of an old version,
          means all files whose names come before `name`.
    """

    name: str = ""
    file: FilePlace = _BEGINNING
    read: frozenset[str] | None = frozenset()

    @classmethod
    def of(cls, text: str) -> FolderPlace:
        """Return a place from its text, written by this or an older version. Raises CorruptBytesError."""
        if not text:
            return cls()
        what = "the place in a folder"
        with reading(what):
            content = read_json(text, what)
            if isinstance(content, list):
                name, byte, is_whole = content
                return cls(text_of(name), FilePlace(whole(byte, 0), bool(is_whole), -1), None)
            name, byte, is_whole, records, has_model = content["file"]
            told = None if has_model is None else bool(has_model)
            at = FilePlace(whole(byte, 0), bool(is_whole), whole(records, 0), told)
            return cls(text_of(name), at, _unpacked(text_of(content["read"])))

    def said(self) -> str:
        """Return the place as text."""
        if not self.name and not self.read:
            return ""
        content = {"file": [self.name, *self.file], "read": _packed(self.read or frozenset())}
        return json.dumps(content, separators=(",", ":"))


@lru_cache(maxsize=16)  # a place changes at each fetch, but its names only at each new file
def _packed(names: frozenset[str]) -> str:
    """Return names as text: about 3 bytes a name for numbered files, such as part-000001.jsonl."""
    return base64.b64encode(zlib.compress(b"/".join(sorted(map(os.fsencode, names))), 1)).decode()


def _unpacked(text: str) -> frozenset[str]:
    """Return the names that `_packed` wrote. Raises ValueError."""
    packed = zlib.decompressobj()
    try:
        names = packed.decompress(base64.b64decode(text), MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not packed.eof:
        raise ValueError("names of files are missing")
    return frozenset(filter(None, os.fsdecode(names).split("/")))
