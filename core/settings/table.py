"""The settings of the evaluation of all models of a job: slices, shards, deduplication, idle models.

The module also has the slices of a model: their columns, and their names in rows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from ..encoding.json import read_object
from ..errors import ConfigError
from .against import Against
from .classes import Classes
from .costs import parse_cost
from .durations import LONGEST, Duration, duration_text, microseconds
from .evaluator import EvaluatorSettings, declared, setting
from .windows import is_count, parse_every, parse_window

OTHER = "other"
"""The value in the name of the slice that takes all values without a slice of their own."""


def escape_slice(text: str) -> str:
    r"""Escape the characters with a meaning in the names of slices, such as `carrier=UA,origin=JFK`.

    >>> print(escape_slice("a=b,c"))
    a\=b\,c
    """
    return text.replace("\\", "\\\\").replace("=", "\\=").replace(",", "\\,")


_PAIR = re.compile(r"((?:[^\\=,]|\\.)+)=((?:[^\\=,]|\\.)*)(?:,(?=.)|\Z)", re.DOTALL)


def parse_slice(label: str) -> list[tuple[str, str]]:
    r"""Return the (column, value) pairs of the name of a slice. Raises ValueError for any other text.

    >>> parse_slice("carrier=UA,origin=a\\=b"), parse_slice("")
    ([('carrier', 'UA'), ('origin', 'a=b')], [])
    """
    pairs, at = [], 0
    while at < len(label):
        if (found := _PAIR.match(label, at)) is None:
            raise ValueError(f"{label!r} is no name of a slice")
        name, value = (re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) for text in found.groups())
        pairs.append((name, value))
        at = found.end()
    return pairs


def is_slice_of(name: str, slices: Iterable[tuple[str, ...]]) -> bool:
    """Return whether a name is the name of the whole model, or of a slice by some of the columns."""
    try:
        columns = tuple(column for column, _ in parse_slice(name))
    except ValueError:
        return False
    return not columns or columns in slices


def slice_forms(slices: Iterable[tuple[str, ...]]) -> str:
    """Return how the names of slices are spelled: of the whole model, and of slices by these columns.

    >>> slice_forms([("carrier",), ("carrier", "origin")])
    "'', carrier=VALUE or carrier=VALUE,origin=VALUE"
    """
    forms = ["''", *(",".join(f"{escape_slice(name)}=VALUE" for name in names) for names in slices)]
    return " or ".join(filter(None, (", ".join(forms[:-1]), forms[-1])))


def checked_slices(asked: Iterable[str | Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Return slices as tuples of columns; a single column may be given as text.

    Raises ConfigError for impossible slices.

    >>> checked_slices(("carrier", ("carrier", "origin")))
    (('carrier',), ('carrier', 'origin'))
    """
    slices = tuple((names,) if isinstance(names, str) else tuple(names) for names in asked)
    for names in slices:
        if not names or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(
                f"slices={asked!r}: a slice is one or more names, a column name or several for a cross"
            )
        if len(set(names)) < len(names):
            raise ConfigError(f"slice {','.join(names)!r} names a column twice; name each once")
    if len(set(slices)) < len(slices):
        raise ConfigError(
            f"slices={asked!r} has the same slice twice, and none may be named twice; name each once"
        )
    return slices


class Shards(int):
    """A number of shards, of which the last shards belong to one model each, or compare models.

    number  the number of shards over which all other models are spread, by a hash of a model's name.
    own     the models that have a shard of their own. Give a model with so many events that other models
            would wait, or with a window so large that it alone makes a shard's state large.
    against the model with which `comparing` further shards compare the others; these shards get events a
            second time, the champion's in each of them. None: no shard compares models.

    As an int, the value is the total number of shards. The shards are part of the meaning of a state. Raises
    ConfigError for an impossible number or impossible names.

    >>> shards = Shards(64, own=["fraud"])
    >>> int(shards), shards.shared, shards.own
    (65, 64, ('fraud',))
    """

    own: tuple[str, ...]
    against: Against | None
    comparing: int

    def __new__(
        cls, number: int, own: Iterable[str] = (), against: Against | None = None, comparing: int = 0
    ) -> Shards:
        """Return `number` shared shards, a shard for each of `own`, and `comparing` for comparisons."""
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ConfigError(f"shards={number!r}: give a whole number, 1 or more")
        models = (own,) if isinstance(own, str) else tuple(own)
        for model in models:
            if not isinstance(model, str) or models.count(model) > 1:
                raise ConfigError(f"own={model!r}: give the names of models, each once")
        made = super().__new__(cls, int(number) + len(models) + comparing)
        made.own, made.against, made.comparing = models, against, comparing
        return made

    @classmethod
    def of(cls, number: int) -> Shards:
        """Return a number of shards as `Shards`; no model has a shard of its own.

        Raises ConfigError for an impossible number.
        """
        return number if isinstance(number, Shards) else cls(number)

    @property
    def shared(self) -> int:
        """The number of shards over which models without a shard of their own are spread."""
        return int(self) - len(self.own) - self.comparing

    def with_comparisons(self, against: Against, comparing: int) -> Shards:
        """Return these shards and `comparing` more shards, which compare models with one other model."""
        return Shards(self.shared, self.own, against, comparing)

    def __eq__(self, other: object) -> bool:
        alike = self.own == getattr(other, "own", ()) and self.against == getattr(other, "against", None)
        return int.__eq__(self, other) is True and alike

    def __ne__(self, other: object) -> bool:  # int has its own __ne__, so this class needs one, too
        return not self == other

    def __hash__(self) -> int:
        return hash((int(self), self.own)) if self.own else int.__hash__(self)

    def __getnewargs__(self) -> Any:
        return self.shared, self.own, self.against, self.comparing

    def __repr__(self) -> str:
        more = f", against={self.against!r}, comparing={self.comparing}" if self.against is not None else ""
        return f"Shards({self.shared}, own={self.own!r}{more})" if self.own or more else int.__repr__(self)

    __str__ = int.__repr__


DEDUPLICATOR, IDLE, OF_CLASSES = "deduplicator", "idle", "classes"
"""The names of the parts that a table may keep beside evaluators; OF_CLASSES are the evaluators of models
with classes.
"""


def _deduplicate(snapshot: Any, was: str | None, now: str | None) -> str:  # noqa: ARG001
    return "" if now is None else "the ids of before were not remembered so; it can be left out"


def _slice_cap(snapshot: Any, was: int, now: int) -> str:
    if now < was or not any(state.slice.endswith("=other") for state in snapshot.evaluators):
        return ""
    return "values that were counted among others would begin empty"


def _idle_ttl(snapshot: Any, was: str | None, now: str | None) -> str:  # noqa: ARG001
    if was is None or now is None:
        return "who was silent since when is known only with it; another length can be had"
    return ""


@dataclass(frozen=True)
class TableSettings:
    """The settings of a shard's table of evaluators.

    evaluator  the settings with which every (model, slice) is evaluated.
    slices     the slices, each given by one column or by several columns. The whole model always has rows.
    shards     the number of shards over which the models are spread, or `Shards`. None for one shard for each
               model.
    deduplicate  microseconds within which a second event of a model with the same id does not count. None if
                 every event counts. The setting needs times and ids.
    slice_cap  the most values of a model and a column that have a slice of their own. All later values share
               one slice, such as "country=other".
    idle_ttl   microseconds without an event after which a (model, slice) gives a last row and is dropped.
               None if no (model, slice) is ever dropped. The setting needs times.
    classes    the classes, where an event has a score of each class; None if an event has one score.
    """

    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    slices: tuple[tuple[str, ...], ...] = ()
    shards: int | None = None
    deduplicate: int | None = setting(
        None,
        "a second event with the same model and --id, and a --time within so long of the first one's, does "
        "not count: for sources that deliver again [every event counts]",
        metavar="7d",
        needs=("time", "id"),
        keeps=DEDUPLICATOR,
        change=_deduplicate,
    )
    slice_cap: int = setting(
        10_000,
        "so many values of a model and a slice have their own; all that come later, and the value other "
        "itself, are country=other",
        metavar="N",
        change=_slice_cap,
    )
    idle_ttl: int | None = setting(
        None,
        "a model and slice without an event for longer, by --time, gives a last row and leaves memory; if it "
        "returns, its window begins empty and its rows are numbered on [never]",
        metavar="30d",
        needs=("time",),
        keeps=IDLE,
        change=_idle_ttl,
    )
    classes: Classes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "slices", checked_slices(self.slices))
        for name in SPANS:
            value = getattr(self, name)
            if value is not None and not (is_count(value) and value < LONGEST):
                raise ConfigError(f"{name}={value!r}: give whole microseconds, 1 or more, or None")
            object.__setattr__(self, name, value and int(value))
        if not is_count(self.slice_cap):
            raise ConfigError(
                f"slice_cap={self.slice_cap!r}: give how many values of a slice have their own, 1 or more"
            )
        object.__setattr__(self, "slice_cap", int(self.slice_cap))
        if self.shards is not None:
            object.__setattr__(self, "shards", Shards.of(self.shards))

    @property
    def parts(self) -> dict[str, int]:
        """The names of the parts beside the evaluators in a state, with the microseconds of each setting."""
        spans = {each.keeps: getattr(self, name) for name, each in declared(TableSettings).items()}
        return {part: span for part, span in spans.items() if part and span is not None}

    @property
    def kept(self) -> set[str]:
        """The names of the parts that a state keeps beside its evaluators."""
        return {*self.parts, *([] if self.classes is None else [OF_CLASSES])}

    def cap_in_words(self) -> str:
        """Return why some events are in the slice "other", and the remedy on the command line."""
        return (
            f"--slice-cap {self.slice_cap:,} says how many values of a column have rows of their own in a "
            "model; raise it, or slice by a column with fewer values"
        )

    def meaning(self) -> dict[str, Any]:
        """Return the settings that decide the meaning of a state, by name."""
        slices = [",".join(escape_slice(name) for name in names) for names in self.slices]
        return {
            **json.loads(self.evaluator.canonical()),
            "positive": self.evaluator.positive,
            "slices": slices,
            **self._of_table(),
        }

    def _of_table(self) -> dict[str, Any]:
        """Return the settings other than the evaluator's and the slices, for JSON."""
        return {
            "shards": self.shards,
            "own_shards": [] if self.shards is None else [*Shards.of(self.shards).own],
            **{name: (span := getattr(self, name)) and duration_text(span) for name in SPANS},
            "slice_cap": self.slice_cap,
            "classes": self.classes and [*self.classes.names],
            "multi_label": self.classes is not None and self.classes.multi_label,
        }

    def fingerprint(self) -> bytes:
        """Return a hash of 16 bytes of the settings that decide the meaning of a state.

        A state stores the hash, so that no table with other settings reads the state.
        """
        text = json.dumps(self.meaning(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    def to_json(self) -> str:
        """Return the settings as text, without the settings of curves.

        No state depends on the settings of curves.
        """
        evaluator = {
            **json.loads(self.evaluator.canonical()),
            "positive": self.evaluator.positive,
            "measures": self.evaluator.measures,
        }
        return json.dumps({"evaluator": evaluator, "slices": self.slices, **self._of_table()})

    @classmethod
    def from_json(cls, text: str) -> TableSettings:
        """Read the settings from a text that `to_json` wrote."""
        content = read_object(text, "the settings of a state")
        choices = content["evaluator"]
        choices["window"] = parse_window(choices["window"])
        choices["every"] = parse_every(choices["every"])
        choices["cost"] = parse_cost(choices["cost"])
        choices["measures"] = tuple(choices["measures"])
        slices = tuple(tuple(names) for names in content["slices"])
        spans = {name: text and microseconds(text, name) for name in SPANS for text in (content[name],)}
        shards, own = content["shards"], content["own_shards"]
        if shards is not None:
            shards = Shards(shards - len(own), own)
        names = content["classes"]
        classes = None if names is None else Classes(tuple(names), content["multi_label"])
        cap = content["slice_cap"]
        return cls(EvaluatorSettings(**choices), slices, shards, slice_cap=cap, classes=classes, **spans)


SPANS = {name: each.needs for name, each in declared(TableSettings).items() if each.needs}
"""The settings that are durations, each with the fields of an event that the setting needs."""


class TableChoices(TypedDict, total=False):
    """The settings of `TableSettings`, without evaluator and slices, as keywords of functions that make them.

    A duration may be a text such as "7d", a number of seconds, or a timedelta.
    """

    shards: int | None
    deduplicate: Duration | None
    slice_cap: int
    idle_ttl: Duration | None


def checked_spans(choices: Mapping[str, Any]) -> dict[str, int]:
    """Return those keywords that are durations, in microseconds.

    Raises ConfigError for a wrong duration, or if `choices` lacks a field of events that a duration needs.

    choices  settings, and by "time" and "id" the event's fields that some of these settings need
    """
    spans = {}
    for name, needed in SPANS.items():
        if (given := choices.get(name)) is None:
            continue
        spans[name] = microseconds(given, name)
        for column in needed:
            if choices.get(column) is None:
                raise ConfigError(f"{name}={given!r} needs {column}s; name their field with {column}=")
    return spans
