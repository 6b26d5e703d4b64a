"""Checks of the arrays that users give: each becomes a typed array, or raises InputError with a remedy.

An evaluator takes numbers of any kind. A tree's kernel has one specialisation, so `as_labels`, `as_scores`
and `as_counts` give it arrays of one type: contiguous and writeable int8, float64 and int64.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array, Int64Array
from ..errors import InputError, TimeUnitWarning
from ..settings.classes import class_text
from .columns import TextColumn
from .moments import PERIOD_REMEDY, datetime64_micros, instant, is_period
from .numbers import EXACT, number, unheld
from .times import (
    NO_TIME,
    Doubt,
    checked_unit,
    doubt_in,
    from_float_ticks,
    from_ticks,
    likely_form,
    likely_unit,
)

OTHER_LABELS = "map other labels to 1 and 0 before"

_LARGEST = 2**63 - 1

_KINDS_OF_TIMES = (
    "give numbers in time_unit=, datetime64, datetimes, or texts in RFC 3339 (pandas.to_datetime reads other "
    "texts)"
)


def as_array(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return values as an array of any type with at least one dimension.

    Raises InputError for a masked value.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = np.flatnonzero(np.ma.getmaskarray(np.atleast_1d(values)))[0]
        raise InputError(f"{name}[{place}] is masked; leave the event out, or fill the value in")
    try:
        return np.atleast_1d(np.asarray(values))
    except ValueError:  # the message of numpy would speak of setting an array element with a sequence
        raise InputError(f"{name} are lists of unlike lengths: give all as many") from None


def as_numbers(
    name: str, values: npt.ArrayLike, remedy: str = "give finite numbers", mark: str = ":"
) -> FloatArray:
    """Return scores, or other values, as numbers; an error says `mark` and then `remedy`."""
    array = as_array(name, values)
    if array.dtype.kind == "c":
        raise InputError(f"{name} are complex{mark} {remedy}")
    if array.dtype.kind in "mM":
        raise InputError(f"{name} are times ({array.dtype}){mark} {remedy}")
    try:
        return np.asarray(array, np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise InputError(f"{name} are not numbers: {problem}; {remedy}") from None


def as_score_numbers(
    name: str, values: npt.ArrayLike, remedy: str = "give finite numbers", mark: str = ":"
) -> FloatArray:
    """Return scores as numbers, as `as_numbers` does.

    Raises InputError for a number that no float64 holds.
    """
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim:
        return as_numbers(name, values, remedy, mark)
    given = as_array(name, values)
    array = as_numbers(name, given, remedy, mark)
    if given.dtype.kind == "f":
        if hasattr(values, "dtype") or not (np.abs(array) >= EXACT).any():
            return array
        # Numpy rounds a whole number that stands beside floats in a list, or beside nulls in pyarrow.
        listed = values.to_pylist() if hasattr(values, "to_pylist") else values
        given = np.atleast_1d(np.asarray(listed, object))
    if len(places := unheld(given)):
        place = tuple(int(at) for at in np.unravel_index(places[0], given.shape))
        value = given[place].item() if isinstance(given[place], np.generic) else given[place]
        raise InputError(
            f"{name}[{', '.join(map(str, place))}] is {value}, and no float64 holds it (the nearest is "
            f"{float(value)!r}), so that different scores would tie; give floats, or round or scale the "
            "scores before"
        )
    return array


def exact_column(name: str, values: npt.ArrayLike) -> npt.ArrayLike:
    """Return a column of a batch, if its type on the wire can hold the values.

    Raises InputError for scores that no float64 holds, and for times that are neither whole numbers
    (microseconds) nor datetime64.
    """
    if name in ("scores", "class_scores"):
        return as_score_numbers(name, values)
    if name != "times":
        return values
    array = as_array(name, values)
    if array.dtype.kind == "M":
        return datetime64_micros(array)
    if len(array) and (array.dtype.kind not in "iu" or array.max() > _LARGEST):
        raise InputError(
            f"times are of type {array.dtype}: give int64 microseconds since 1970, or datetime64"
        )
    return array


def as_weights(weights: npt.ArrayLike) -> FloatArray:
    """Return weights as finite numbers above 0."""
    array = as_numbers("weights", weights, "a weight is a finite number above 0", ";")
    bad = np.flatnonzero(~((array > 0) & np.isfinite(array)))
    if len(bad):
        raise InputError(
            f"weights[{bad[0]}] is {array[bad[0]]}: a weight is a finite number above 0; leave the event out"
        )
    return array


def as_classes(name: str, values: npt.NDArray[Any]) -> TextColumn:
    """Return classes as text.

    Raises InputError for a missing class, which would count as a class of its own.
    """
    texts, known = list[str | None](), dict[object, str]()
    for index, value in enumerate(values.tolist()):
        text = known.get(value) if value.__hash__ else None  # equal values are one class, such as 1 and True
        if text is None:
            if _is_missing(value):
                raise InputError(
                    f"{name}[{index}] is {value}: every event needs a class; leave the event out"
                )
            text = class_text(value)
            if value.__hash__:
                known[value] = text
        texts.append(text)
    return TextColumn.of(texts)


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, the NA or NaT of pandas, or a null of Arrow."""
    if value is None or getattr(value, "is_valid", True) is False:
        return True
    try:
        return bool(value != value)  # only NaN and NaT differ from themselves
    except TypeError:  # NA has no truth value
        return True


def as_binary(
    labels: npt.NDArray[Any],
    remedy: str = "name the positive class with positive= where labels are classes",
) -> Int8Array:
    """Return labels given as 1/0, 1/-1 or booleans as 1/0 labels of the same shape."""
    try:
        numbers = labels.astype(np.float64, casting="same_kind" if labels.dtype.kind == "c" else "unsafe")
    except (TypeError, ValueError, OverflowError):
        numbers = np.array([_number(label) for label in labels.ravel().tolist()]).reshape(labels.shape)
    bad = np.flatnonzero((numbers != 0.0) & (np.abs(numbers) != 1.0))  # ten times as fast as np.isin
    if len(bad):
        wrong = labels.ravel()[bad[0]]
        wrong = wrong.item() if isinstance(wrong, np.generic) else wrong  # 2, not np.int64(2)
        at = ", ".join(map(str, np.unravel_index(bad[0], labels.shape)))
        raise InputError(f"labels[{at}] is {wrong!r}: a label is 1, 0, -1, True or False; {remedy}")
    return np.asarray(numbers == 1.0, np.int8)


def _number(value: object) -> float:
    """Return the number that a label means: the word "true" is 1, and "false" is 0."""
    try:
        return float(class_text(value))
    except ValueError:
        return math.nan


def as_event_scores(scores: npt.ArrayLike, are_probabilities: bool) -> FloatArray:
    """Return one finite score for each event; from 0 to 1 if `are_probabilities`."""
    array = as_score_numbers("scores", scores)
    if array.ndim != 1:
        raise InputError(f"scores have {array.ndim} dimensions; give one score per event")
    _refuse_infinite(array)
    if are_probabilities and len(array) and not (array.min() >= 0 and array.max() <= 1):
        raise InputError("scores lie outside [0, 1], and probabilities=True says that they are probabilities")
    return array


def _refuse_infinite(scores: FloatArray) -> None:
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise InputError(
            f"scores[{bad[0]}] is {scores[bad[0]]}: a score is a finite number; leave the event out"
        )


class GivenEvents(NamedTuple):
    """Checked events, in the columns that a caller gave.

    labels    1 or 0; if labels are classes, 1 for the positive class
    times     microseconds
    """

    scores: FloatArray
    labels: Int8Array
    times: Int64Array | None = None
    label_classes: TextColumn | None = None
    predicted: TextColumn | None = None
    weights: FloatArray | None = None

    def part(self, events: slice | Int64Array) -> GivenEvents:
        """Return the events that `events`, a slice or indices, chooses."""
        return GivenEvents._make(None if column is None else _chosen(column, events) for column in self)


def _chosen(column: Any, events: slice | Int64Array) -> Any:
    if isinstance(column, TextColumn):  # the part has the same dictionary
        return TextColumn(column.codes[events], column.values)
    return column[events]


def given_events(
    scores: FloatArray,
    labels: npt.ArrayLike,
    times: Int64Array | None,
    weights: npt.ArrayLike | None,
    predicted: npt.ArrayLike | None,
    positive: str | None,
) -> GivenEvents:
    """Check the other columns of events, whose scores and times are already checked.

    `positive` is the positive class.
    """
    weight_array = None if weights is None else as_weights(weights)
    label_list = as_array("labels", labels)
    predicted_list = None if predicted is None else as_array("predicted", predicted)
    columns = {"labels": label_list, "times": times, "weights": weight_array, "predicted": predicted_list}
    for name, column in columns.items():
        if column is not None and column.shape != scores.shape:
            raise InputError(f"{name} and scores differ in length: give one of each per event")
    if predicted_list is None and positive is None:
        return GivenEvents(scores, as_binary(label_list), times, weights=weight_array)
    classes = as_classes("labels", label_list)
    is_positive = np.array([name == positive for name in classes.values], np.int8)
    binary = is_positive[classes.codes] if len(scores) else np.empty(0, np.int8)
    if predicted_list is None:
        return GivenEvents(scores, binary, times, weights=weight_array)
    predictions = as_classes("predicted", predicted_list)
    return GivenEvents(scores, binary, times, classes, predictions, weight_array)


def checked_events(labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Int8Array, FloatArray]:
    """Return 1/0 labels and finite scores, one of each per event; else raise InputError with the remedy."""
    score_array = as_score_numbers("scores", scores)
    label_array = as_array("labels", labels)
    if score_array.ndim != 1 or label_array.shape != score_array.shape:
        raise InputError(
            f"labels of shape {label_array.shape} and scores of shape {score_array.shape}: give one of each "
            "per event, labels first"
        )
    _refuse_infinite(score_array)
    return as_binary(label_array, OTHER_LABELS), score_array


def as_times(times: npt.ArrayLike, unit: str = "s") -> tuple[Int64Array, bool]:
    """Return times as microseconds, and whether they were given as numbers of `unit`.

    A time is any value that `moments.instant` reads: a number (only numbers have the unit), datetime64, a
    datetime (no zone = UTC), a date, a timestamp of pandas or Beam, or a text in RFC 3339. Raises InputError
    if a time is missing, of another kind, or outside the years 1 to 9999.
    """
    array = as_array("times", times)
    kind = array.dtype.kind
    if kind == "M":
        micros = datetime64_micros(array)
    elif kind == "f":
        micros = from_float_ticks(array.astype(np.float64, copy=False), unit)
    elif kind == "i" or (kind == "u" and not (array > _LARGEST).any()):
        micros = from_ticks(array.astype(np.int64, copy=False), unit)
    elif array.ndim == 1 and kind in "OUu":
        read = (instant(time, unit) for time in array.tolist())
        micros = np.fromiter((NO_TIME if time is None else time for time in read), np.int64, len(array))
    elif len(array):
        raise InputError(f"times are of type {array.dtype}: {_KINDS_OF_TIMES}")
    else:
        micros = np.empty(0, np.int64)
    if len(micros) and micros.min() == NO_TIME:
        raise _no_time(array, int(micros.argmin()), unit)
    return micros, kind in "iuf" or (kind in "OU" and len(array) > 0 and number(array[0]) is not None)


def _no_time(array: npt.NDArray[Any], place: int, unit: str) -> InputError:
    """Return the error for a value that is no time."""
    given = array[place]
    value = given.item() if isinstance(given, np.generic) and array.dtype.kind != "M" else given
    if value is None or str(value) in ("<NA>", "") or value != value:
        return InputError(f"times[{place}] is {value}; leave events without a time out")
    if is_period(value):
        return InputError(f"times[{place}] is {value!r}: {PERIOD_REMEDY}")
    found = number(value)
    if found is None:
        if array.dtype.kind == "M":
            return InputError(
                f"times[{place}] is {value}, which is not within the years 1 to 9999; check the unit"
            )
        return InputError(f"times[{place}] is {value!r}, which is no time: {_KINDS_OF_TIMES}")
    whole = int(found) if abs(found) < _LARGEST else 0
    return InputError(
        f"times[{place}] is {value!r}: in {unit} that is not within the years 1 to 9999; "
        f"{_remedy(likely_unit(whole, unit), likely_form(whole), '')}"
    )


def _remedy(unit: str | None, form: str | None, condition: str) -> str:
    if unit:
        return f'give time_unit="{unit}"'
    if form:
        return f'give dates, such as those of pandas.to_datetime(times, format="{form}")'
    return f"give another time_unit=, or datetime64{condition}"


def warn_of(doubt: Doubt, stacklevel: int) -> None:
    """Warn that an evaluator's times look like numbers of another unit."""
    remedy = _remedy(doubt.other, doubt.form, ", if that is not meant")
    warnings.warn(f"times: {doubt.finding}; {remedy}", TimeUnitWarning, stacklevel=stacklevel + 1)


class TimesReader:
    """Reads the times that users give to an evaluator, and warns once if their unit looks wrong."""

    def __init__(self) -> None:
        self._doubted = False

    def read(self, times: npt.ArrayLike, unit: str) -> Int64Array:
        """Return times as microseconds; see `as_times`.

        Only methods that users call may call this method, because the warning names their line.
        """
        micros, are_numbers = as_times(times, checked_unit(unit))
        if are_numbers and not self._doubted and (doubt := doubt_in(micros, unit)) is not None:
            self._doubted = True
            warn_of(doubt, stacklevel=3)
        return micros


def writeable(array: npt.NDArray[Any]) -> Any:
    """Return an array that may be written to: numba compiles a kernel again for an array that may not."""
    return array if array.flags.writeable else array.copy()


def as_labels(labels: npt.ArrayLike) -> Int8Array:
    """Return labels in the form that kernels take."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise InputError(f"labels: shape {array.shape}; give one dimension")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        raise InputError(f"labels: {array[wrong.argmax()]} is none; give 0 and 1, or False and True")
    result: Int8Array = writeable(np.ascontiguousarray(array, dtype=np.int8))
    return result


def as_scores(scores: npt.ArrayLike, length: int | None = None) -> FloatArray:
    """Return scores in the form that kernels take.

    Raises InputError for NaN, which has no place in an order.
    """
    array: FloatArray = writeable(np.ascontiguousarray(as_score_numbers("scores", scores)))
    if array.ndim != 1:
        raise InputError(f"scores: shape {array.shape}; give one dimension")
    if length is not None and len(array) != length:
        raise InputError(f"scores: {len(array)} of them for {length} labels; give as many")
    missing = np.isnan(array)
    if missing.any():
        raise InputError(f"scores: NaN at position {int(missing.argmax())}; drop such events before")
    return array


def as_counts(counts: npt.ArrayLike) -> Int64Array:
    """Return whole numbers in the form that kernels take."""
    array = np.asarray(counts)
    if array.ndim != 1 or (array.size and (array != np.floor(array)).any()):
        raise InputError(f"counts: shape {array.shape}, {array.dtype}; give whole numbers in one dimension")
    result: Int64Array = writeable(np.ascontiguousarray(counts, dtype=np.int64))
    return result
