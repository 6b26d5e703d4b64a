"""Every error that rocsteady raises on purpose.

An error names the object, the value it got and the remedy, in one sentence: its text is shown to users
as it stands. All of them are `RocsteadyError`, so a command can tell a user's mistake from a defect of
ours (anything else).
"""

from __future__ import annotations

from collections.abc import Mapping


class RocsteadyError(Exception):
    """Base of all errors that a user, an input or a stored state can cause."""


class ConfigError(RocsteadyError, ValueError):
    """A setting has a value that it cannot have."""


class InputError(RocsteadyError, ValueError):
    """Input that is found wrong before it is evaluated: a missing file, column or value."""


class TimeUnitWarning(UserWarning):
    """Times that are numbers look as if they counted another unit than they are read in."""


class MissingPackageError(InputError, ImportError):
    """Something was called that needs a package which is not installed."""


class WireError(RocsteadyError, ValueError):
    """Bytes that are not what they are read as. Base of the four ways in which that happens."""


class ForeignBytesError(WireError):
    """The bytes were never ours: the magic number at their start is another."""


class TruncatedBytesError(WireError):
    """The bytes end before what their header announces."""


class CorruptBytesError(WireError):
    """The bytes have the right length and the wrong checksum, or contradict themselves."""


class FutureVersionError(WireError):
    """The bytes were written by a newer rocsteady, in a version that this one cannot read."""


class OtherConfigurationError(RocsteadyError, ValueError):
    """A stored state was made under another configuration, so that going on from it would be wrong."""


def check_settings(here: Mapping[str, object], there: Mapping[str, object]) -> None:
    """Raise OtherConfigurationError, naming every difference, unless the settings of a state are those here.

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
