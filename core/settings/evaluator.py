"""The settings of the evaluation of one model. An object is immutable, and checked when made.

`setting` declares a setting at its field of a dataclass: the default, the help text and the rules, in one
place. Options of the command line, Beam YAML, hashes and stored states read these declarations. So the code
for these does not name single settings.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple, get_args

from ..errors import ConfigError
from ..rows.columns import column_of
from .classes import class_text
from .costs import BetaCost, Cost, parse_cost
from .durations import duration_text, microseconds, parse_lateness
from .evidence import DEFAULT_BLOCKS, Bound, PeriodBound, checked_bound, checked_evidence
from .measure_names import column_order, named_measures, value_of, with_and_without
from .orders import checked_order
from .windows import (
    Emission,
    EveryEvents,
    LastEvents,
    Window,
    check_emission,
    needs_times,
    number_text,
    read_number,
)

_KEY = "declared"

Change = Callable[[Any, Any, Any], str]
"""Says why a setting of a snapshot cannot change from one value to another; says the empty text if the
setting can change.
"""


@dataclass(frozen=True)
class Declared:
    """The declaration of a setting, beside its name, its type and its default.

    about       the help text of the command line, without the default.
    metavar     the placeholder of the value in the help text; None for the setting's name in capitals.
    parse       reads the value from text; None for a number, a switch, or the text of the default.
    of_rows     whether the setting decides only the values of a row, and not which events the window holds.
                If so, a job may continue from a state that was made with another value.
    needs       the fields that every event must have if the setting is used.
    keeps       only for a duration: the name of the part of a state that the setting needs beside the
                evaluators.
    change      says why a job with another value cannot continue from a state.
    """

    about: str
    metavar: str | None = None
    parse: Callable[[str], Any] | None = None
    of_rows: bool = False
    needs: tuple[str, ...] = ()
    keeps: str = ""
    change: Change | None = None


def setting(default: object, about: str, **rules: Any) -> Any:
    """Return the field of a dataclass with this default.

    `rules` are the values of the other fields of `Declared`.
    """
    return field(default=default, metadata={_KEY: Declared(about, **rules)})


def declared(settings: type) -> dict[str, Declared]:
    """Return the declarations that `setting` made for the fields of a dataclass, by name."""
    return {each.name: each.metadata[_KEY] for each in fields(settings) if _KEY in each.metadata}


def plain(value: Any) -> Any:
    """Return the value of a setting for JSON: the value itself, a list for a tuple, or the value's spelling.

    >>> plain(0.5), plain((0.0, 0.1))
    (0.5, [0.0, 0.1])
    """
    if isinstance(value, tuple):
        return list(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _begins_anew(snapshot: Any, was: object, now: object) -> str:  # noqa: ARG001
    """Allow every change: evidence for another bound, other blocks or another gap begins again."""
    return ""


PRIORS_OF_WINDOW: Literal["window"] = "window"
CURVES_AT_END: Literal["end"] = "end"
CurvePoints = Literal["thinned", "all"]
POINTS_THINNED: Literal["thinned"] = "thinned"


def parse_partial_fpr(text: str) -> tuple[float, float]:
    """Read a range of false positive rates, such as `0:0.1`.

    >>> parse_partial_fpr("0:0.1")
    (0.0, 0.1)
    """
    low, colon, high = text.partition(":")
    if not colon:
        raise ConfigError(f"partial FPR {text!r} is no range; give two false positive rates, such as 0:0.1")
    return read_number(low, f"partial FPR {text!r}"), read_number(high, f"partial FPR {text!r}")


class Points(NamedTuple):
    """The points of the ROC curve that a row reports.

    One point is at a false positive rate, and one is at a cost of a false positive.
    """

    fpr: float
    cost: float


@dataclass(frozen=True)
class EvaluatorSettings:
    """The settings that decide the values of a model's rows, and which values are shown.

    window              which events count.
    every               when a row is due.
    measures            names of measures; "all" = every measure; None = all but the measures that take a pass
                        over the window or its hull, such as "average_precision". "auc" includes its interval,
                        "ks" its threshold and "polynomial_auc" its bound. "tpr_at_fpr:0.05" is the measure at
                        another value than that of the settings, in a column of its own, tpr_at_fpr_0_05.
    cost                the distribution of misclassification costs in the H-measure.
    priors              "window" (the classes' shares in the window), or the share of positives, in (0, 1).
    threshold           an event is predicted positive if its score >= threshold.
    confidence          the confidence of the AUC's interval, in (0, 1).
    probabilities       whether the scores are probabilities: if so, Brier score and log loss have a meaning.
    at_fpr              the false positive rate of tpr_at_fpr, in [0, 1].
    false_positive_cost c of cost_threshold: a false positive costs c, a false negative 1 - c; in (0, 1).
    partial_fpr         the range of false positive rates of partial_auc, (lower, upper), in [0, 1].
    flip_if_below_half  whether the H-measure takes -score while AUC < 0.5, as R's hmeasure does.
    evidence_below      the AUC that the model must have, in (0, 1), or a `PeriodBound` or its text: rows have
                        the evidence that the AUC is below this bound, over all events of the (model, slice).
                        None if rows have no evidence.
    evidence_blocks     m: a block of evidence has at least m positives and m negatives; m is 1 to 100.
    block_gap           a duration: events within the gap behind a full block of evidence are not used for
                        evidence. None if all events are used.
    positive            the class that counts as positive, as `class_text`; None = labels are 1 and 0 already.
    order               how the events were ordered: "position", "arrival", "time" (all events sorted), or
                        "time:10m": in order of time, where an event does not count if it comes more than 10
                        minutes late in its partition.
    curves              n = a ROC curve after every n-th event of a (model, slice), and a curve at the end;
                        "end" = only a curve at the end; None = no curves. A curve takes O(window).
    curves_points       "thinned" = a curve leaves out a point within 1/200 of the point before it, in both
                        rates; "all" = a point for each score that the window holds.
    """

    window: Window = field(default_factory=LastEvents)
    every: Emission = field(default_factory=EveryEvents)
    measures: tuple[str, ...] | None = None
    cost: Cost = setting(  # noqa: RUF009  it is frozen
        BetaCost(), "beta:A,B | severity[:RATIO|:balanced] | uniform", parse=parse_cost, of_rows=True
    )
    priors: float | Literal["window"] = setting(
        PRIORS_OF_WINDOW, "window, or the share of positives", of_rows=True
    )
    threshold: float = setting(0.5, "predicted positive means score >= this")
    confidence: float = setting(0.95, "of the AUC interval", of_rows=True)
    probabilities: bool = setting(False, "scores are probabilities: Brier score, log loss")
    at_fpr: float = setting(0.01, "false positive rate of tpr_at_fpr", of_rows=True)
    false_positive_cost: float = setting(0.2, "c of cost_threshold", of_rows=True)
    partial_fpr: tuple[float, float] = setting(
        (0.0, 0.1),
        "range of FPR of partial_auc",
        metavar="LOW:HIGH",
        parse=parse_partial_fpr,
        of_rows=True,
    )
    flip_if_below_half: bool = setting(False, "H of -score while AUC < 0.5, as R's hmeasure", of_rows=True)
    evidence_below: Bound | None = setting(  # noqa: RUF009  it is frozen
        None,
        "the AUC that a model must have: rows have evidence that its AUC is below, over all of its events; a "
        "number, or '2026-01..2026-02 less 0.02': 0.02 less than the lower end of the AUC in this period "
        "[no evidence]",
        metavar="AUC",
        parse=lambda text: checked_bound(text, "evidence_below"),
        change=_begins_anew,
    )
    evidence_blocks: int = setting(
        DEFAULT_BLOCKS,
        "a block of evidence has at least so many positives and so many negatives",
        metavar="M",
        change=_begins_anew,
    )
    block_gap: str | None = setting(
        None,
        "events within so long behind a full block of evidence, by --time, are not used for evidence: for "
        "events that are alike within such a time [all events are used]",
        metavar="1h",
        parse=lambda text: duration_text(microseconds(text, "block_gap")),
        change=_begins_anew,
    )
    positive: str | None = None
    order: str = "arrival"
    curves: EveryEvents | Literal["end"] | None = None
    curves_points: CurvePoints = POINTS_THINNED

    def __post_init__(self) -> None:
        if not isinstance(self.window, Window):
            raise ConfigError(
                f"window={self.window!r}: give LastEvents(k), LastDuration('7d'), Fading(half_life), "
                "Adaptive(delta, signal) or AllEvents()"
            )
        check_emission(self.every)
        if not isinstance(self.cost, Cost):
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
        checked_points("curves_points", self.curves_points)
        if not isinstance(self.probabilities, bool) or not isinstance(self.flip_if_below_half, bool):
            raise ConfigError("probabilities and flip_if_below_half are switches: give True or False")
        if self.window.signal == "brier" and not self.probabilities:
            raise ConfigError(
                f"window={str(self.window)!r}: the signal brier is the squared error of a probability; "
                "say that scores are probabilities (probabilities=True, --probabilities), or take another"
            )
        of_evidence = checked_evidence(self.evidence_below, self.evidence_blocks, self.block_gap)
        for name, value in zip(("evidence_below", "evidence_blocks", "block_gap"), of_evidence, strict=True):
            object.__setattr__(self, name, value)
        named, texts = with_and_without(self.measures)
        evidence = self.evidence_below is not None
        measures = named_measures(named, probabilities=self.probabilities, evidence=evidence)
        object.__setattr__(self, "measures", measures)
        texts = tuple({self._with_value(text).text: None for text in texts})
        object.__setattr__(self, "measures", (*measures, *sorted(texts, key=column_order)))

    @property
    def by_time(self) -> bool:
        """Whether events are applied in order of time."""
        return self.order.startswith("time")

    @property
    def lateness(self) -> int | None:
        """How late an event may come in order of time, in microseconds.

        None if an event may come with any delay.
        """
        _, limited, text = self.order.partition(":")
        return parse_lateness(text) if limited else None

    @property
    def needs_times(self) -> str | None:
        """Return the setting that needs event times, by its name on the command line.

        None if no setting needs them.
        """
        if (of_both := needs_times(self.window, self.every)) is not None:
            return of_both
        if isinstance(self.evidence_below, PeriodBound):
            return f"evidence-below {self.evidence_below}"
        return None if self.block_gap is None else f"block-gap {self.block_gap}"

    @property
    def points(self) -> Points:
        """The points of the ROC curve that a row reports."""
        return Points(self.at_fpr, self.false_positive_cost)

    @property
    def curve_stride(self) -> int:
        """The number of events between curves; 0 if there is a curve only at the end, or no curve."""
        return self.curves.n if isinstance(self.curves, EveryEvents) else 0

    @property
    def with_values(self) -> tuple[WithValue, ...]:
        """The measures that are asked for with values of their own, in column order."""
        return _with_values_of(self) if any(":" in name for name in self.measures or ()) else ()

    def _with_value(self, text: str) -> WithValue:
        name, parameter, value = value_of(text)
        try:
            parse = declared(EvaluatorSettings)[parameter].parse or partial(read_number, what=parameter)
            chosen: dict[str, Any] = {"measures": (name,), parameter: parse(value)}
            settings = replace(self, **chosen)
        except ConfigError as error:
            raise ConfigError(f"measure {text!r}: {error}") from None
        found = getattr(settings, parameter)
        values = found if isinstance(found, tuple) else (found,)
        return WithValue(":".join((name, *map(number_text, values))), settings)

    def _check_number(self, name: str, low: float, high: float, meaning: str) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not is_number or not low < value < high or abs(value) > sys.float_info.max:
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

    def canonical(self) -> str:
        """Return the text of all settings that change values.

        The text leaves out `measures`, which only chooses among values; `curves` and `curves_points`, which
        are not part of a row; and `positive`, which gives the meaning of labels.
        """
        values = {name: plain(value) for name, value in vars(self).items() if name not in _NO_VALUES}
        return json.dumps(values, sort_keys=True)

    def config_hash(self) -> str:
        """Return the hash of the settings: the 12 hexadecimal digits in the column `config` of every row."""
        return config_of(self.canonical())


class WithValue(NamedTuple):
    """A measure that is asked for with a value of its own, beside the value of the settings.

    text      the measure and its value, such as "tpr_at_fpr:0.05"
    settings  the same settings with this value, which ask for the measure alone

    >>> [each] = EvaluatorSettings(measures=("auc", "tpr_at_fpr:.05")).with_values
    >>> each.text, each.column, each.settings.at_fpr
    ('tpr_at_fpr:0.05', 'tpr_at_fpr_0_05', 0.05)
    """

    text: str
    settings: EvaluatorSettings

    @property
    def measure(self) -> str:
        """The name of the measure."""
        return self.text.partition(":")[0]

    @property
    def column(self) -> str:
        """The name of its column: letters, digits and underscores, which every sink takes."""
        return column_of(self.text)


@lru_cache(maxsize=256)
def _with_values_of(settings: EvaluatorSettings) -> tuple[WithValue, ...]:
    return tuple(settings._with_value(text) for text in settings.measures or () if ":" in text)


_NO_VALUES = ("measures", "positive", "curves", "curves_points")
"""The settings that change no value of a row."""


def checked_points(name: str, points: CurvePoints) -> CurvePoints:
    """Return the choice which points a curve has, after a check. Raises ConfigError for any other text.

    `name` is the name of the setting.
    """
    if points not in get_args(CurvePoints):
        raise ConfigError(
            f"{name}={points!r}: give 'thinned', for a curve that looks the same as the whole curve, or 'all'"
        )
    return points


def config_of(canonical: str) -> str:
    """Return the hash of a text that `EvaluatorSettings.canonical` gave."""
    return hashlib.blake2b(canonical.encode(), digest_size=6).hexdigest()


def check_signal(settings: EvaluatorSettings, has_classes: bool, predicted: str, positive: str) -> None:
    """Raise ConfigError if a window adapts to the ranking of classes and no class is positive.

    predicted, positive  the names under which the caller's users know these two settings
    """
    window = settings.window
    if window.signal == "placement" and has_classes and not settings.positive:
        raise ConfigError(
            f"window {window}: with {predicted} labels are classes, and nothing is placed among them; name "
            f"the one that is positive with {positive}, or take {str(window).removesuffix('placement')}error"
        )
