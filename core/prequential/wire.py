"""The bytes in which a fold's state holds a learner, and the bytes of a record for all folds.

A learner is a frame (encoding/fields.py) with magic "RSLN"; payload: a head (text, JSON), then the body. The
body is the bytes that the model itself writes (its `to_bytes`), or else its pickle. Reading a pickle runs
code, so only bytes of a job's own state may be read.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..encoding import json as json_bytes
from ..encoding.fields import Reader, framed, packed_text, unframed
from ..encoding.json import read_object, reading
from ..errors import ConfigError, CorruptBytesError, InputError, OtherConfigurationError, RocsteadyError

MAGIC, _SHARED = b"RSLN", b"RSZR"
VERSION = 1
MAX_BYTES = 256 << 20
"""The most bytes that a learner's state may have in one fold."""

_STATE = "the state of a learner"


def shared_record(record: bytes) -> bytes:
    """Return a record in the form that goes to every fold of every learner: compressed once for all copies.

    >>> from rocsteady.core.events.records import EndOfInput
    >>> own_record(shared_record(EndOfInput().pack())) == EndOfInput().pack()
    True
    """
    return _SHARED + zlib.compress(record, 1)


def own_record(record: bytes) -> bytes:
    """Return the record from the result of `shared_record`; return any other record unchanged."""
    if record[: len(_SHARED)] != _SHARED:
        return record
    try:
        return zlib.decompress(record[len(_SHARED) :])
    except zlib.error as damage:
        raise CorruptBytesError(f"a record of all folds is damaged: {damage}") from None


def pack_learner(name: str, head: dict[str, Any], body: bytes) -> bytes:
    """Return the bytes of a learner. Raises InputError for more bytes than a state may hold."""
    if len(body) > MAX_BYTES:
        raise InputError(
            f"learner {name!r} has grown to {len(body) >> 20:,} MB in one fold, more than the "
            f"{MAX_BYTES >> 20} that a state may hold; bound it (river's trees take max_size) or leave it out"
        )
    return framed(MAGIC, VERSION, packed_text(json.dumps(head)) + body)


def unpack_learner(name: str, data: bytes, wanted: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the head and the body of a learner's bytes.

    Raises one of the four `WireError`s for bytes of another kind.

    Raises OtherConfigurationError if the state was made by a learner with other settings than `wanted`.
    """
    reader = Reader(unframed(data, MAGIC, VERSION, _STATE))
    with reading(_STATE):
        head = read_object(reader.text(), _STATE)
    differences = [f"{key} was {head.get(key)!r} and is now {value!r}" for key, value in wanted.items()
                   if head.get(key) != value]  # fmt: skip
    if differences:
        raise OtherConfigurationError(
            f"the state of learner {name!r} was made under another configuration: {'; '.join(differences)}. "
            "Go on with the old one, or start from an empty state"
        )
    return head, bytes(reader.rest())


def contradiction(why: str) -> CorruptBytesError:
    """Return the error for bytes whose parts contradict each other; `why` says how."""
    return json_bytes.contradiction(_STATE, why)


@contextmanager
def told_as(kind: type[RocsteadyError], before: str, remedy: str) -> Iterator[None]:
    """Raise an error of a learner's own code again as an error of `kind`; a MemoryError is not changed."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as problem:
        raise kind(f"{before}{error_text(problem)}; {remedy}") from problem


def model_bytes(name: str, model: Any) -> bytes:
    """Return the bytes that a model itself writes, or else its pickle.

    Raises InputError if it can do neither.
    """
    try:
        if _speaks_bytes(model):
            return bytes(model.to_bytes())
        return pickle.dumps(model, pickle.HIGHEST_PROTOCOL)
    except (MemoryError, RocsteadyError):
        raise
    except Exception as problem:
        raise InputError(
            f"learner {name!r} cannot be kept in a state: {error_text(problem)}; make its factory return an "
            "object that pickle takes, or one with to_bytes and from_bytes"
        ) from problem


def model_of_bytes(name: str, made: Any, data: bytes) -> Any:
    """Return the model from the bytes that `model_bytes` returned.

    `made` is a new model from the learner's factory.

    Raises OtherConfigurationError if other code made the model, so that its bytes cannot be read.
    """
    with told_as(
        OtherConfigurationError,
        f"the state of learner {name!r} cannot be read: ",
        "go on with the versions of its packages that made it, or start from an empty state",
    ):
        return type(made).from_bytes(data) if _speaks_bytes(made) else pickle.loads(data)


def unpickled(name: str, file: str, data: bytes) -> Any:
    """Return a pickled model that the user trusts. Raises ConfigError if the file holds no model."""
    with told_as(
        ConfigError,
        f"learner {name!r}: {file} cannot be unpickled: ",
        "pickle it with the packages that are installed here",
    ):
        return pickle.loads(data)


def error_text(error: BaseException) -> str:
    r"""Return an error as one line that fits into a sentence: its type and its message.

    >>> error_text(KeyError("age")), error_text(ValueError("no\nnumber"))
    ("KeyError: 'age'", 'ValueError: no number')
    """
    try:
        words = " ".join(str(error).split())
    except Exception:  # a class of the learner's own whose text fails
        words = ""
    words = words if len(words) <= 300 else f"{words[:297]}..."
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _speaks_bytes(model: Any) -> bool:
    return callable(getattr(model, "to_bytes", None)) and callable(getattr(type(model), "from_bytes", None))
