"""What a user chooses: window, emission, cost of errors, measures. Frozen, and checked when made.

Every choice has one spelling, the command line's (`last:10000`, `beta:2,2`, ...): `str()` writes it and
`parse_...` reads it. The spellings make the canonical text of a configuration, and that its hash.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..encoding.json import read_object
from ..errors import ConfigError
from .shards import Shards
from .windows import (
    EMISSIONS,
    LONGEST,
    WINDOWS,
    Adaptive,
    Emission,
    EveryEvents,
    LastEvents,
    Window,
    duration_text,
    is_count,
    is_positive,
    microseconds,
    parse_every,
    parse_lateness,
    parse_window,
    read_number,
)

_LARGEST = sys.float_info.max


def _shortest(number: float) -> str:
    return repr(number).removesuffix(".0")


@dataclass(frozen=True)
class BetaCost:
    """H-measure with the costs of a false positive spread as Beta(a, b) on [0, 1] (Hand 2009).

    >>> str(BetaCost(2, 2))
    'beta:2,2'
    """

    a: float = 2.0
    b: float = 2.0

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            value = getattr(self, name)
            if not is_positive(value):
                raise ConfigError(
                    f"BetaCost({name}={value!r}): a Beta distribution needs {name} > 0 and finite"
                )
            object.__setattr__(self, name, float(value))

    def __str__(self) -> str:
        return f"beta:{_shortest(self.a)},{_shortest(self.b)}"

    def beta(self, prevalence: float) -> tuple[float, float]:  # noqa: ARG002  one face for all costs
        """Return (a, b), whatever the share of positives."""
        return self.a, self.b


@dataclass(frozen=True)
class UniformCost:
    """H-measure with every cost of a false positive equally likely: Beta(1, 1)."""

    def __str__(self) -> str:
        return "uniform"

    def beta(self, prevalence: float) -> tuple[float, float]:  # noqa: ARG002  one face for all costs
        """Return (1, 1), whatever the share of positives."""
        return 1.0, 1.0


@dataclass(frozen=True)
class SeverityCost:
    """H-measure by severity ratio: the cost of a false positive over that of a false negative.

    With a number r the costs follow Beta(2, 1 + 1/r), whose mode is r / (1 + r). None takes the
    ratio from the window, positives over negatives (Hand & Anagnostopoulos 2014, the default of R's
    hmeasure): Beta(2, 1 + negatives/positives). "balanced" is their other recommendation,
    Beta(1 + share of positives, 1 + share of negatives).

    >>> str(SeverityCost()), str(SeverityCost(0.1)), str(SeverityCost("balanced"))
    ('severity', 'severity:0.1', 'severity:balanced')
    """

    ratio: float | Literal["balanced"] | None = None

    def __post_init__(self) -> None:
        if self.ratio is None or self.ratio == "balanced":
            return
        if not is_positive(self.ratio):
            raise ConfigError(
                f"SeverityCost(ratio={self.ratio!r}): a severity ratio is a number > 0, 'balanced' or None"
            )
        object.__setattr__(self, "ratio", float(self.ratio))

    def __str__(self) -> str:
        if self.ratio is None:
            return "severity"
        return "severity:balanced" if self.ratio == "balanced" else f"severity:{_shortest(self.ratio)}"

    def beta(self, prevalence: float) -> tuple[float, float]:
        """Return (a, b) at a share of positives strictly between 0 and 1."""
        if self.ratio == "balanced":
            return 1.0 + prevalence, 2.0 - prevalence
        ratio = prevalence / (1.0 - prevalence) if self.ratio is None else self.ratio
        return 2.0, 1.0 + 1.0 / ratio


Cost = BetaCost | UniformCost | SeverityCost


def parse_cost(text: str) -> Cost:
    """Read `beta:2,2`, `uniform`, `severity`, `severity:0.1` or `severity:balanced`.

    >>> parse_cost("severity:0.1")
    SeverityCost(ratio=0.1)
    """
    kind, _, rest = text.partition(":")
    if kind == "beta" and rest.count(",") == 1:
        a, b = rest.split(",")
        return BetaCost(read_number(a, f"cost {text!r}"), read_number(b, f"cost {text!r}"))
    if text == "uniform":
        return UniformCost()
    if text == "severity":
        return SeverityCost()
    if text == "severity:balanced":
        return SeverityCost("balanced")
    if kind == "severity" and rest:
        return SeverityCost(read_number(rest, f"cost {text!r}"))
    raise ConfigError(
        f"cost {text!r} is not known; use beta:A,B, uniform, severity, severity:RATIO or severity:balanced"
    )


def parse_partial_fpr(text: str) -> tuple[float, float]:
    """Read `0:0.1`, a range of false positive rates.

    >>> parse_partial_fpr("0:0.1")
    (0.0, 0.1)
    """
    low, colon, high = text.partition(":")
    if not colon:
        raise ConfigError(f"partial FPR {text!r} is no range; give two false positive rates, such as 0:0.1")
    return read_number(low, f"partial FPR {text!r}"), read_number(high, f"partial FPR {text!r}")


def class_text(value: object) -> str:
    """Return the text by which a class is known: numbers by value, so that 1, 1.0 and "1" are one class.

    >>> class_text(1.0), class_text(" 1 "), class_text(True), class_text("UP"), class_text(0.5)
    ('1', '1', 'true', 'UP', '0.5')
    """
    if hasattr(value, "item"):
        value = value.item()  # a number of numpy
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    if not text or text[0] not in "+-.0123456789" or "_" in text or not text.isascii():
        return text
    if text[text[0] in "+-" :].isdecimal() and len(text) < 4000:  # int() refuses longer ones
        return str(int(text))
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


OTHER = "other"
"""The value that stands for all those of a slice column that have no slice of their own."""

SLICE_CAP = 10_000

PRIORS_OF_WINDOW: Literal["window"] = "window"
CURVES_AT_END: Literal["end"] = "end"
PARTIAL_FPR = (0.0, 0.1)

ADDED_SINCE: dict[str, Any] = {
    "partial_fpr": list(PARTIAL_FPR), "deduplicate": None, "slice_cap": SLICE_CAP, "idle_ttl": None,
    "own_shards": [],
}  # fmt: skip
"""Settings that change values and are younger than the first version, with what stands for their absence."""

MEASURES = (
    "auc", "auc_low", "auc_high", "h", "ks", "ks_threshold", "brier", "log_loss", "tpr_at_fpr",
    "cost_threshold", "aum", "cost_curve_area", "average_precision", "calibration_error",
    "partial_auc", "partial_auc_mcclish", "polynomial_auc", "polynomial_auc_bound",
    "tp", "fp", "tn", "fn", "accuracy", "precision", "recall", "specificity", "f1",
    "balanced_accuracy", "g_mean", "harmonic_mean", "kappa", "kappa_m", "kappa_per", "mcc", "cmd",
)  # fmt: skip
"""Every measure of a row, in column order."""

RANKING_MEASURES = MEASURES.index("tp")
"""How many of them, the first ones, are of scores; the others are of decisions."""

COSTLY_MEASURES = (
    "cost_curve_area", "average_precision", "calibration_error", "partial_auc", "partial_auc_mcclish",
    "polynomial_auc", "polynomial_auc_bound",
)  # fmt: skip
"""O(k) or O(hull) a row: only when asked for by name or by `all`."""

PROBABILITY_MEASURES = ("brier", "log_loss", "calibration_error")
"""Have a meaning only where the scores are probabilities."""

_COMPANIONS = {
    "auc": ("auc_low", "auc_high"),
    "ks": ("ks_threshold",),
    "polynomial_auc": ("polynomial_auc_bound",),
}


@dataclass(frozen=True)
class EvaluatorSettings:
    """All that decides the values of the rows of a model, and which of them are shown.

    window, every       which events count, and when a row is due
    measures            names from `MEASURES`; None = all but `COSTLY_MEASURES`. "all" asks for everything;
                        "auc" brings its interval, "ks" its threshold and "polynomial_auc" its bound along
    cost                the distribution of misclassification costs in the H-measure
    priors              "window" (the classes' shares in the window), or the share of positives, in (0, 1)
    threshold           predicted positive means score >= threshold
    confidence          of the AUC interval, in (0, 1)
    probabilities       the scores are probabilities: Brier score and log loss make sense
    at_fpr              the false positive rate at which tpr_at_fpr is read, in [0, 1]
    false_positive_cost c of cost_threshold: a false positive costs c, a false negative 1 - c; in (0, 1)
    partial_fpr         the range of false positive rates of partial_auc, (lower, upper), in [0, 1]
    flip_if_below_half  take -score in the H-measure while AUC < 0.5, as R's hmeasure does
    positive            the class that counts as positive, as `class_text`; None = labels are 1 and 0 already
    order               how the events were ordered: "position", "arrival", "time" (a total sort), or
                        "time:10m": by time, and what comes later than that in its partition does not count
    curves              a ROC curve after every n-th event of a (model, slice) and one at the end; "end": that
                        one alone; None = no curves. Each costs a pass over the window
    """

    window: Window = field(default_factory=LastEvents)
    every: Emission = field(default_factory=EveryEvents)
    measures: tuple[str, ...] | None = None
    cost: Cost = field(default_factory=BetaCost)
    priors: float | Literal["window"] = PRIORS_OF_WINDOW
    threshold: float = 0.5
    confidence: float = 0.95
    probabilities: bool = False
    at_fpr: float = 0.01
    false_positive_cost: float = 0.2
    partial_fpr: tuple[float, float] = PARTIAL_FPR
    flip_if_below_half: bool = False
    positive: str | None = None
    order: str = "arrival"
    curves: EveryEvents | Literal["end"] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.window, WINDOWS):
            raise ConfigError(
                f"window={self.window!r}: give LastEvents(k), LastDuration('7d'), Fading(half_life), "
                "Adaptive(delta, signal) or AllEvents()"
            )
        if not isinstance(self.every, EMISSIONS):
            raise ConfigError(f"every={self.every!r}: give EveryEvents(n) or EverySeconds('1h')")
        if not isinstance(self.cost, BetaCost | UniformCost | SeverityCost):
            raise ConfigError(f"cost={self.cost!r}: give BetaCost(a, b), UniformCost() or SeverityCost(...)")
        if self.priors != PRIORS_OF_WINDOW:
            self._check_number("priors", 0.0, 1.0, "the share of positives, or 'window'")
        self._check_number("threshold", -math.inf, math.inf, "a finite score")
        self._check_number("confidence", 0.0, 1.0, "the share of intervals that hold the AUC")
        self._check_number("false_positive_cost", 0.0, 1.0, "the cost of a false positive")
        self._check_number("at_fpr", math.nextafter(0, -1), math.nextafter(1, 2), "a false positive rate")
        self._check_partial_fpr()
        if self.positive is not None:
            object.__setattr__(self, "positive", class_text(self.positive))
        object.__setattr__(self, "order", checked_order(self.order))
        if not (self.curves is None or self.curves == CURVES_AT_END or isinstance(self.curves, EveryEvents)):
            raise ConfigError(f"curves={self.curves!r}: give EveryEvents(n), 'end', or None for no curves")
        if not isinstance(self.probabilities, bool) or not isinstance(self.flip_if_below_half, bool):
            raise ConfigError("probabilities and flip_if_below_half are switches: give True or False")
        if isinstance(self.window, Adaptive) and self.window.signal == "brier" and not self.probabilities:
            raise ConfigError(
                f"window={str(self.window)!r}: the signal brier is the squared error of a probability; "
                "say that scores are probabilities (probabilities=True, --probabilities), or take another"
            )
        object.__setattr__(self, "measures", self._named_measures())

    @property
    def by_time(self) -> bool:
        """Whether events apply in order of time."""
        return self.order.startswith("time")

    @property
    def lateness(self) -> int | None:
        """How late an event may come in order of time, microseconds; None = however late."""
        _, limited, text = self.order.partition(":")
        return parse_lateness(text) if limited else None

    @property
    def needs_times(self) -> str | None:
        """Return the setting that makes no sense without event times, as on the command line; None = none."""
        if self.window.by_time:
            return f"window {self.window}"
        return None if isinstance(self.every, EveryEvents) else f"every {self.every}"

    def _check_number(self, name: str, low: float, high: float, meaning: str) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not is_number or not low < value < high or abs(value) > _LARGEST:
            between = "" if math.isinf(low) else f" between {round(low)} and {round(high)}"
            raise ConfigError(f"{name}={value!r}: give {meaning}, a number{between}")
        object.__setattr__(self, name, float(value))

    def _check_partial_fpr(self) -> None:
        given: Any = self.partial_fpr
        ends = tuple(given) if isinstance(given, tuple | list) else ()
        are_numbers = all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in ends)
        if len(ends) != 2 or not are_numbers or not 0 <= ends[0] < ends[1] <= 1:
            raise ConfigError(
                f"partial_fpr={given!r}: give two false positive rates between 0 and 1, the lower one first, "
                "such as (0.0, 0.1)"
            )
        object.__setattr__(self, "partial_fpr", (float(ends[0]), float(ends[1])))

    def _named_measures(self) -> tuple[str, ...]:
        asked: tuple[str, ...] | str | None = self.measures
        if asked is None:
            return tuple(
                name
                for name in MEASURES
                if name not in COSTLY_MEASURES and (self.probabilities or name not in PROBABILITY_MEASURES)
            )
        if isinstance(asked, str):
            asked = (asked,)
        wanted: set[str] = set()
        for name in asked:
            if name == "all":
                wanted.update(n for n in MEASURES if self.probabilities or n not in PROBABILITY_MEASURES)
            elif name not in MEASURES:
                raise ConfigError(f"measure {name!r} is not known; there are {', '.join(MEASURES)}, and all")
            elif name in PROBABILITY_MEASURES and not self.probabilities:
                raise ConfigError(
                    f"measure {name!r} needs scores that are probabilities: say so with probabilities=True "
                    "(--probabilities)"
                )
            else:
                wanted.update((name, *_COMPANIONS.get(name, ())))
        if not wanted:
            raise ConfigError("measures=(): name at least one, or leave it out for the usual ones")
        return tuple(name for name in MEASURES if name in wanted)

    def canonical(self) -> str:
        """Return the text of everything that changes values.

        `measures` only chooses among them, `curves` stand beside them, and `positive` names what the
        labels mean. A setting of `ADDED_SINCE` is left out where it has its default: rows and states from
        before it have the same hash.
        """
        values = {
            "window": str(self.window),
            "every": str(self.every),
            "order": self.order,
            "cost": str(self.cost),
            "priors": self.priors,
            "threshold": self.threshold,
            "confidence": self.confidence,
            "probabilities": self.probabilities,
            "at_fpr": self.at_fpr,
            "false_positive_cost": self.false_positive_cost,
            "flip_if_below_half": self.flip_if_below_half,
            "partial_fpr": list(self.partial_fpr),
        }
        said = {name: value for name, value in values.items() if ADDED_SINCE.get(name) != value}
        return json.dumps(said, sort_keys=True)

    def config_hash(self) -> str:
        """Return the 12 hexadecimal digits that stand in the column `config` of every row."""
        return config_of(self.canonical())


def checked_order(order: str) -> str:
    """Return an order in its one spelling. Raises ConfigError.

    >>> checked_order("time:60s")
    'time:1m'
    """
    if order in ("position", "time", "arrival"):
        return order
    kind, limited, text = order.partition(":") if isinstance(order, str) else ("", "", "")
    if kind != "time" or not limited:
        raise ConfigError(
            f"order={order!r}: give 'position', 'time' or 'arrival', or 'time:10m' where events may come up "
            "to 10 minutes late"
        )
    try:
        return f"time:{duration_text(parse_lateness(text))}"
    except ConfigError:
        raise ConfigError(
            f"order={order!r}: {text!r} is no length of time; say how late events may come, as in 'time:10m'"
        ) from None


def config_of(canonical: str) -> str:
    """Return the hash of settings that `EvaluatorSettings.canonical` put into words."""
    return hashlib.blake2b(canonical.encode(), digest_size=6).hexdigest()


def check_signal(settings: EvaluatorSettings, has_classes: bool, predicted: str, positive: str) -> None:
    """Raise ConfigError for a window that adapts to the ranking of classes of which none is positive.

    predicted, positive  how the caller's user names these settings
    """
    window = settings.window
    if (
        isinstance(window, Adaptive)
        and window.signal == "placement"
        and has_classes
        and not settings.positive
    ):
        raise ConfigError(
            f"window {window}: with {predicted} labels are classes, and nothing is placed among them; name "
            f"the one that is positive with {positive}, or take adaptive:{window.delta!r}:error"
        )


def escape_slice(text: str) -> str:
    r"""Escape what has a meaning in the name of a slice, `carrier=UA,origin=JFK`.

    >>> print(escape_slice("a=b,c"))
    a\=b\,c
    """
    return text.replace("\\", "\\\\").replace("=", "\\=").replace(",", "\\,")


_PAIR = re.compile(r"((?:[^\\=,]|\\.)+)=((?:[^\\=,]|\\.)*)(?:,(?=.)|\Z)", re.DOTALL)


def parse_slice(label: str) -> list[tuple[str, str]]:
    r"""Return the columns and values that the name of a slice says. Raises ValueError for what is none.

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


def checked_slices(asked: Iterable[str | Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Return slices as tuples of columns; a column may stand for itself. Raises ConfigError.

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


@dataclass(frozen=True)
class TableSettings:
    """What a shard's table of evaluators is made for.

    evaluator  how every (model, slice) is evaluated
    slices     every slice is one column, or several for a cross; the whole model is always there
    shards     number of shards that the models are spread over, or `Shards`; None = every model is its own
    deduplicate  microseconds within which a second event of a model with the same id does not count
                 (ids/deduplicator.py); None = every event counts. Needs times and ids
    slice_cap  values of a model and a slice that have a slice of their own; those of all later ones are
               "other" (table/slices.py)
    idle_ttl   microseconds after which a (model, slice) that is silent gives a last row and leaves
               (table/idle.py); None = never. Needs times
    """

    evaluator: EvaluatorSettings = field(default_factory=EvaluatorSettings)
    slices: tuple[tuple[str, ...], ...] = ()
    shards: int | None = None
    deduplicate: int | None = None
    slice_cap: int = SLICE_CAP
    idle_ttl: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "slices", checked_slices(self.slices))
        for name in ("deduplicate", "idle_ttl"):
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

    def meaning(self) -> dict[str, Any]:
        """Return what decides the meaning of a state, by name."""
        slices = [",".join(escape_slice(name) for name in names) for names in self.slices]
        return {
            **json.loads(self.evaluator.canonical()),
            "positive": self.evaluator.positive,
            "slices": slices,
            "shards": self.shards,
            **self._since(),
        }

    def _since(self) -> dict[str, Any]:
        """Return those of `ADDED_SINCE` that are not what they were before."""
        values: dict[str, Any] = {
            "deduplicate": self.deduplicate and duration_text(self.deduplicate),
            "slice_cap": self.slice_cap,
            "idle_ttl": self.idle_ttl and duration_text(self.idle_ttl),
            "own_shards": [] if self.shards is None else [*Shards.of(self.shards).own],
        }
        return {name: value for name, value in values.items() if value != ADDED_SINCE[name]}

    def fingerprint(self) -> bytes:
        """Return the 16 bytes by which a state knows that it is read as it was written."""
        text = json.dumps(self.meaning(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    def to_json(self) -> str:
        """Return the whole of it as text, without `curves`: they follow from no state, and leave none."""
        evaluator = {
            **json.loads(self.evaluator.canonical()),
            "positive": self.evaluator.positive,
            "measures": self.evaluator.measures,
        }
        table = {"slices": self.slices, "shards": self.shards, **self._since()}
        return json.dumps({"evaluator": evaluator, **table})

    @classmethod
    def from_json(cls, text: str) -> TableSettings:
        """Read what `to_json` wrote."""
        content = read_object(text, "the settings of a state")
        choices = content["evaluator"]
        choices["window"] = parse_window(choices["window"])
        choices["every"] = parse_every(choices["every"])
        choices["cost"] = parse_cost(choices["cost"])
        choices["measures"] = tuple(choices["measures"])
        slices = tuple(tuple(names) for names in content["slices"])
        since = {name: content[name] for name in ADDED_SINCE if name in content}
        for name in ("deduplicate", "idle_ttl"):
            if name in since:
                since[name] = microseconds(since[name], name)
        shards, own = content["shards"], since.pop("own_shards", [])
        if shards is not None:
            shards = Shards(shards - len(own), own)
        return cls(EvaluatorSettings(**choices), slices, shards, **since)
