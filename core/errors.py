"""The errors that rocsteady raises on purpose.

The text of an error is one sentence with the object, its value and the remedy; users see this text unchanged.
All errors are `RocsteadyError`s. A defect of the package raises another exception, so that a command can tell
a user's mistake from a defect.
"""

from __future__ import annotations

from collections.abc import Mapping


class RocsteadyError(Exception):
    """The base class of all errors that a user, an input or a stored state can cause.

    Any other exception is a defect of rocsteady.
    """


class ConfigError(RocsteadyError, ValueError):
    """A setting has a value that is not allowed: give another value, as the text says.

    >>> import rocsteady as rs
    >>> rs.LastEvents(0)
    Traceback (most recent call last):
        ...
    rocsteady.core.errors.ConfigError: LastEvents(k=0): a window holds a whole number of events, 1 or more
    """


class InputError(RocsteadyError, ValueError):
    """The input is wrong: a file or a column is missing, or a value that was given to a method is impossible.

    A method that raises this error has changed nothing. An invalid record of a file, a frame or a PCollection
    raises no error: it becomes a dead letter.

    >>> import rocsteady as rs
    >>> rs.ModelEvaluator().update([1, 0], [0.7, float("nan")])
    Traceback (most recent call last):
        ...
    rocsteady.core.errors.InputError: scores[1] is nan: a score is a finite number; leave the event out
    """


class TimeUnitWarning(UserWarning):
    """Numbers that were given as times look like times in another unit than the unit in which they are read.

    The warning names the unit that is likely: give this unit with `time_unit`.
    """


class ClassesWarning(UserWarning):
    """Labels and predicted classes have no class in common, or only one of three or more classes.

    The warning names some labels and some predicted classes: they are probably spelled differently, such as
    "yes" and "Y".
    """


class MissingPackageError(InputError, ImportError):
    """A function needs a package that is not installed; the text says how to install it."""


class WireError(RocsteadyError, ValueError):
    """Bytes do not have the expected format. This is the base class of the four errors that say why.

    The remedy is to give the bytes that `to_bytes()` returned, or the file that an export wrote, unchanged.
    """


class ForeignBytesError(WireError):
    """The bytes were not written by rocsteady in this format: they begin with another magic number."""


class TruncatedBytesError(WireError):
    """The bytes end before the length that their header gives."""


class CorruptBytesError(WireError):
    """The bytes have the right length and the wrong checksum, or contradict themselves."""


class FutureVersionError(WireError):
    """A newer rocsteady wrote the bytes, in a version that this rocsteady cannot read.

    Install the newer one.
    """


class OtherConfigurationError(RocsteadyError, ValueError):
    """A stored state was made under another configuration, so that results from it would be wrong.

    The text names every setting that differs. Give the settings of the state, or begin without the state.
    """


_MOST_SHOWN = 300
"""The most characters of a setting that an error shows."""


def shown(value: object) -> str:
    """Return the text of a setting as an error shows it: a list of thousands of classes is cut short."""
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}... ({len(text):,} characters)"


def check_settings(here: Mapping[str, object], there: Mapping[str, object]) -> None:
    """Raise OtherConfigurationError unless a state's settings `there` equal `here`.

    The error names every difference.

    >>> check_settings({"alpha": 0.05}, {"alpha": 0.05})
    """
    differences = [
        f"{name} was {shown(there.get(name))} and is now {shown(here.get(name))}"
        for name in {**here, **there}
        if there.get(name) != here.get(name)
    ]
    if differences:
        raise OtherConfigurationError(
            f"the state was made under another configuration: {'; '.join(differences)}. Go on with the "
            "old one, or start from an empty state"
        )


class CapacityError(InputError):
    """There are more events than the whole numbers of a ScoreTree can count."""


class MissingEventError(InputError):
    """An event that should be removed is not in the tree."""
