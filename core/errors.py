"""The errors that rocsteady raises on purpose.

The text of an error is one sentence with the object, its value and the remedy; users see the text unchanged.
All errors are `RocsteadyError`s. A defect of the package raises another exception, so that a command can tell
a user's mistake from a defect.
"""

from __future__ import annotations

from collections.abc import Mapping


class RocsteadyError(Exception):
    """Base of all errors that a user, an input or a stored state can cause."""


class ConfigError(RocsteadyError, ValueError):
    """A setting has a value that is not allowed."""


class InputError(RocsteadyError, ValueError):
    """The input is wrong, found before evaluation: a missing file, column or value."""


class TimeUnitWarning(UserWarning):
    """Numbers given as times look like times in a different unit from the unit in which they are read."""


class MissingPackageError(InputError, ImportError):
    """A called function needs a package that is not installed."""


class WireError(RocsteadyError, ValueError):
    """Bytes do not have the expected format. Base of the four errors that tell why."""


class ForeignBytesError(WireError):
    """The bytes were not written by rocsteady in this format: they begin with another magic number."""


class TruncatedBytesError(WireError):
    """The bytes end before the length that their header announces."""


class CorruptBytesError(WireError):
    """The bytes have the right length and the wrong checksum, or contradict themselves."""


class FutureVersionError(WireError):
    """The bytes were written by a newer rocsteady, in a version that this rocsteady cannot read."""


class OtherConfigurationError(RocsteadyError, ValueError):
    """A stored state was made under another configuration, so that results from it would be wrong."""


def check_settings(here: Mapping[str, object], there: Mapping[str, object]) -> None:
    """Raise OtherConfigurationError, naming every difference, unless a state's settings `there` equal `here`.

    >>> check_settings({"alpha": 0.05}, {"alpha": 0.05})
    """
    differences = [
        f"{name} was {there.get(name)!r} and is now {here.get(name)!r}"
        for name in {**here, **there}
        if there.get(name) != here.get(name)
    ]
    if differences:
        raise OtherConfigurationError(
            f"the state was made under another configuration: {'; '.join(differences)}. Go on with the "
            "old one, or start from an empty state"
        )


class CapacityError(InputError):
    """More events than the whole numbers of a ScoreTree can hold."""


class MissingEventError(InputError):
    """An event to be removed is not there."""
