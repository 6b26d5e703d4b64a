"""The roles of the input's columns: these settings serve every reader and every validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict

from ...core.errors import ConfigError, InputError
from ...core.events.times import checked_unit
from ...core.process.near_names import near_names
from ...core.settings.table import checked_slices
from .class_fields import class_roles
from .columns import class_text
from .time_formats import checked_format

OPTIONS = {
    "score": "--score", "label": "--label", "model": "--model", "time": "--time", "id": "--id",
    "weight": "--weight", "predicted": "--predicted", "slices": "--slice", "features": "--feature",
    "class_scores": "--class-scores", "multi_label": "--multi-label",
}  # fmt: skip
"""The command line's option for each field that names columns."""

Role = Literal["event", "prediction", "label", "instance"]
"""The role of a source's records."""

_NOT_NEEDED: dict[Role, tuple[str, ...]] = {
    "event": (),
    "prediction": ("label", "multi_label"),
    "label": ("score", "class_scores", "model", "weight", "predicted", "slices", "features"),
    "instance": ("score", "model", "predicted"),
}
"""For each role, the fields whose columns a record does not need."""

RECORD_COUNTERS: dict[Role, dict[str, str]] = {
    "event": {"read": "events_read", "invalid": "dead_letters", "late": "late"},
    "prediction": {"read": "events_read", "invalid": "dead_letters", "late": "late"},
    "instance": {"read": "events_read", "invalid": "dead_letters", "late": "late"},
    "label": {"read": "labels_read", "invalid": "labels_invalid", "late": "labels_late"},
}
"""Names of the counters of a source's records, by the records' role."""

_CHECKED_APART = (
    "slices", "probabilities", "positive", "features", "classes", "time_format", "scores", "class_scores",
    "class_names", "class_labels",
)  # fmt: skip
"""The fields of `EventFields` that are not plain names."""

_OTHER_ROLES = {
    "label": "labels", "model": "names of models", "time": "times", "id": "ids", "weight": "weights",
    "predicted": "predicted classes",
}  # fmt: skip
"""The names, for errors, of the values in fields that cannot have class scores."""

MAX_SLICE_NAME_BYTES = 255
"""The most bytes of a slice column's name, because of a batch's wire form."""


def _valid(field: str, name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{field}={name!r}: it is not UTF-8; give text that is") from None
    return name


class RecordColumns(TypedDict, total=False):
    """The fields of `EventFields` as keywords of the transforms, without id and time.

    `probabilities` is not among them, because the settings of an evaluator have it too.
    """

    score: str | Sequence[str]
    label: str
    positive: object
    model: str | None
    model_name: str | None
    time_unit: Literal["s", "ms", "us", "ns"]
    time_format: str | None
    weight: str | None
    predicted: str | None
    slices: Iterable[str | tuple[str, ...]]


class EventColumns(RecordColumns, total=False):
    """The keywords of `RecordColumns`, with `id` and `time`; an event may lack both."""

    time: str | None
    id: str | None


class ClassColumns(TypedDict, total=False):
    """The keywords that name columns of class scores and of class labels; see `class_columns`."""

    class_scores: str | Sequence[str] | Mapping[str, str] | None
    multi_label: str | Sequence[str] | Mapping[str, str] | None


def check_keywords(whose: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise a TypeError, as Python does, for a keyword that is not known.

    whose  the function that was given the keywords
    """
    if unknown := sorted({*given} - {*known}):
        near = near_names(unknown[0], known)
        meant = f"; did you mean {near[0]}=?" if near else ""
        raise TypeError(f"{whose}() got an unexpected keyword argument {unknown[0]!r}{meant}")


@dataclass(frozen=True)
class EventFields:
    """The roles of the input's columns.

    score          the column of scores.
    label          the column of labels.
    scores         the columns of scores of several models, instead of `score`. A record is then one event for
                   each column: an event of the model "a" for the column "a", or of "m/a" if the record's
                   model, or `model_name`, is "m". With `scores`, an empty `model_name` says that records have
                   no model "m".
    positive       the label's value for the positive class, as `class_text`; every other value is negative.
                   None = 1/0, 1/-1 and true/false are understood.
    model          the column of the model's name.
    model_name     the model of every event, instead of `model`. If both are None, the model's name comes from
                   the column "model"; if the input lacks it, from the reader's name (a file's stem).
    time           the column of event times.
    time_unit      the unit of times that are numbers: "s", "ms", "us" or "ns".
    time_format    the format (of `datetime.strptime`) of times that are texts or numbers. None = texts are
                   RFC 3339, dates, or numbers.
    id             the column of ids, or None.
    weight         the column of weights, or None.
    predicted      the column of predicted classes; labels are then classes too.
    slices         each slice is a tuple of columns that are crossed: (("carrier",), ("carrier", "origin")).
    probabilities  whether scores are probabilities; a score outside [0, 1] then makes a dead letter.
    features       for instances, which learners predict: the columns of numbers. Columns of text are slices.
    classes        for instances: whether labels are classes without a positive class.
    class_scores   the columns of the scores of each class, instead of `score`. Labels are then classes.
    class_names    the classes of these columns; for instances, the classes that learners know.
    class_labels   the columns that say of each class whether an event is of the class, instead of `label`.

    Raises ConfigError, which names the field, the value and the remedy.
    """

    score: str = "score"
    label: str = "label"
    positive: str | None = None
    model: str | None = None
    model_name: str | None = None
    time: str | None = None
    time_unit: str = "s"
    time_format: str | None = None
    id: str | None = None
    weight: str | None = None
    predicted: str | None = None
    slices: tuple[tuple[str, ...], ...] = ()
    probabilities: bool = False
    features: tuple[str, ...] = ()
    classes: bool = False
    scores: tuple[str, ...] = ()
    class_scores: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    class_labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.positive is not None:
            text = class_text(self.positive)
            if text is None:
                raise ConfigError(f"positive={self.positive!r}: give a value that the label can have")
            object.__setattr__(self, "positive", _valid("positive", text))
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _CHECKED_APART or (field.name == "model_name" and value == "" and self.scores):
                continue
            if value is None and field.default is None:
                continue
            if not isinstance(value, str) or not value:
                what = "a name" if field.name == "model_name" else "the name of a column"
                raise ConfigError(f"{field.name}={value!r}: give {what}, as text")
            _valid(field.name, value)
        if self.model is not None and self.model_name is not None:
            raise ConfigError(
                f"model={self.model!r} and model_name={self.model_name!r}: give one of them, the column "
                "with the models' names or the one name of them all"
            )
        checked_unit(self.time_unit)
        if self.time_format is not None:
            checked_format(self.time_format)
            if self.time is None:
                raise ConfigError(
                    f"time_format={self.time_format!r} needs times; name their column with time= (--time)"
                )
            if self.time_unit != "s":
                raise ConfigError(
                    f"time_format={self.time_format!r} with time_unit={self.time_unit!r}: numbers are read "
                    "in the format, as texts; leave one of them out"
                )
        if not isinstance(self.probabilities, bool):
            raise ConfigError(f"probabilities={self.probabilities!r}: give True or False")
        object.__setattr__(self, "slices", self._checked_slices())
        object.__setattr__(self, "features", self._checked_features())
        self._check_scores()
        self._check_class_scores()

    def _checked_slices(self) -> tuple[tuple[str, ...], ...]:
        asked: object = self.slices
        if isinstance(asked, str) or not isinstance(asked, Iterable):
            raise ConfigError(
                f"slices={asked!r}: give a tuple of slices, each a tuple of the columns that it crosses"
            )
        checked = checked_slices(asked)
        for name in (name for columns in checked for name in columns):
            if len(_valid("slices", name).encode()) > MAX_SLICE_NAME_BYTES:
                raise ConfigError(
                    f"the slice column {name[:40]!r}... has a name of {len(name.encode())} bytes; rename "
                    f"it to {MAX_SLICE_NAME_BYTES} at the most"
                )
        return checked

    def _checked_features(self) -> tuple[str, ...]:
        features: object = self.features
        if isinstance(features, str) or not isinstance(features, Iterable):
            raise ConfigError(f"features={features!r}: give a tuple of the names of columns")
        names = tuple(_valid("features", name) for name in features)
        if twice := next(
            (name for name in names if names.count(name) > 1 or name in self.slice_columns), None
        ):
            raise ConfigError(f"the feature {twice!r} is named twice; name each column once")
        return names

    def _check_class_scores(self) -> None:
        """Check that no column of class scores has another role; a star may fit too many names."""
        others: dict[str | None, str] = dict.fromkeys(self.slice_columns, "slices")
        others |= dict.fromkeys(self.class_labels, "labels of a class")
        for name, has in _OTHER_ROLES.items():
            if name != "label" or not self.class_labels:
                others[getattr(self, name)] = has
        for column in self.class_scores:
            if column in others:
                raise ConfigError(
                    f"the column {column!r} has {others[column]} and scores of a class; name the columns of "
                    "scores with class_scores= (--class-scores), such as p_cat,p_dog"
                )

    def _check_scores(self) -> None:
        """Check that each column of scores gives models of its own."""
        for name in self.scores:
            if not isinstance(name, str) or not _valid("score", name):
                raise ConfigError(f"score={name!r}: give the name of a column, as text")
        for name in self.scores:
            if self.scores.count(name) > 1:
                raise ConfigError(f"the column of scores {name!r} is named twice; name each column once")
            longer = next((other for other in self.scores if other.endswith(f"/{name}")), None)
            if self.model is not None and longer is not None:
                raise ConfigError(
                    f"the columns of scores {name!r} and {longer!r} may give two models one name, such as "
                    f"'x/{longer}'; rename one of them"
                )

    @property
    def score_columns(self) -> tuple[str, ...]:
        """The columns of scores; a record is one event for each. Empty if there are scores of classes."""
        return () if self.class_scores else self.scores or (self.score,)

    @property
    def slice_columns(self) -> tuple[str, ...]:
        """Every column that some slice uses, once, in the order of `slices`."""
        return tuple(dict.fromkeys(name for one in self.slices for name in one))

    def needed(self, role: Role = "event") -> tuple[tuple[str, str], ...]:
        """Return (field, column) of each column that a record of a role needs.

        A column may serve several fields.
        """
        single = ("label", "model", "time", "id", "weight", "predicted")
        named = [("score", column) for column in self.score_columns]
        named += [("class_scores", column) for column in self.class_scores]
        named += [("multi_label", column) for column in self.class_labels]
        named += [(field, getattr(self, field)) for field in single[bool(self.class_labels) :]]
        named += [("slices", column) for column in self.slice_columns]
        named += [("features", column) for column in self.features]
        return tuple(each for each in named if each[1] is not None and each[0] not in _NOT_NEEDED[role])

    def columns_of(self, role: Role = "event") -> tuple[str, ...]:
        """Return every column that a record of a role needs, once.

        "model" is one of them if it is not known where the model's name comes from.
        """
        is_open = self.model is None and self.model_name is None and role not in ("label", "instance")
        return tuple(dict.fromkeys((*(column for _, column in self.needed(role)), *("model",) * is_open)))

    def text_columns_of(self, role: Role = "event") -> list[str]:
        """Return the columns of a role that are read as text, a class or a time."""
        return [column for column in self.columns_of(role) if column not in self.number_columns]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that an event needs, once.

        "model" is one of them, unless it is known where the model's name comes from.
        """
        return self.columns_of("event")

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The columns that are read as numbers; every other column is text, a class or a time."""
        weights = () if self.weight is None else (self.weight,)
        return (*self.score_columns, *self.class_scores, *weights, *self.features)

    def resolved(self, columns: Iterable[str], default_model: str | None = None) -> EventFields:
        """Return the fields with the source of the model's name, for an input that has these columns.

        >>> EventFields().resolved(["score", "label"], "churn").model_name
        'churn'
        """
        if self.model is not None or self.model_name is not None:
            return self
        if "model" in columns or default_model is None:
            return replace(self, model="model")
        return replace(self, model_name="" if self.scores else default_model)


def named_fields(columns: Mapping[str, Any], there: Collection[str] | None = None) -> EventFields:
    """Return the fields that keywords name. Raises ConfigError.

    Several columns of scores are given by `score` as a list; a slice of one column may be text. For
    `class_scores` and `multi_label` see `class_columns`; `there` has the columns of the input, if known.

    >>> named_fields({"score": ["a", "b"], "slices": "country"}).scores
    ('a', 'b')
    """
    named = dict(columns)
    score = named.get("score", "")
    if not isinstance(score, str):
        if not isinstance(score, Iterable) or not (names := tuple(score)):
            raise ConfigError(f"score={score!r}: give the name of a column as text, or a list of names")
        del named["score"]
        named["scores"] = names
    if isinstance(slices := named.get("slices"), str):
        named["slices"] = (slices,)
    scores, labels = named.pop("class_scores", None), named.pop("multi_label", None)
    if scores is not None:
        named |= class_roles(scores, labels, there)
    elif labels is not None:
        raise ConfigError(
            f"multi_label={labels!r}: labels of classes go with scores of classes; name these with "
            "class_scores= (--class-scores)"
        )
    return EventFields(**named)


_OPTIONS_OF_ROLES = {("label", "time"): "--label-time", ("instance", "slices"): "--feature"}


def check_once(name: str, names: Sequence[str], fields: EventFields, role: Role = "event") -> None:
    """Check that a file has no needed column twice. Raises InputError for a repeated column."""
    counts = Counter(names)
    for _, column in fields.needed(role):
        if counts[column] > 1:
            raise InputError(f"{name} has {counts[column]} columns named {column!r}; give each its own name")


def check_names(
    name: str, names: Sequence[str], fields: EventFields, role: Role = "event", *, keywords: bool = False
) -> None:
    """Check that the columns of a source include each needed column exactly once.

    keywords  whether the user gives the names of columns as keywords in Python, not as options

    Raises InputError, which names the source, its columns, the nearest name, and the remedy.
    """
    needed = fields.needed(role)
    check_once(name, names, fields, role)
    for field, column in needed:
        if column not in names:
            shown = ", ".join(names[:30]) + (", ..." if len(names) > 30 else "") or "none"
            if len(names) == 1 and any(sign in shown for sign in ";\t|,"):  # a table whose separators differ
                raise InputError(
                    f"{name} has no column {column!r}, as its header is one field, {shown!r}; "
                    "write commas between the fields of a .csv, and tabs in a .tsv"
                )
            taken = {other for _, other in needed}  # these columns already have a role
            near = near_names(column, (other for other in names if other not in taken))
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            option = f"{_OPTIONS_OF_ROLES.get((role, field), OPTIONS[field])} COL"
            if keywords:
                option = f"{field}="
            both = (
                "; labels and predictions must call it the same" if (role, field) == ("label", "id") else ""
            )
            raise InputError(
                f"{name} has no column {column!r}{meant}; it has {shown}. Say which with {option}{both}"
            )
