"""Windows of weighted and of fading events by a list that is searched anew: slow, obvious, in fractions."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tests.support.oracles.adaptive import AdwinTwin
from tests.support.oracles.measures import (
    BOUNDED,
    CONSTANT,
    DECISIONS,
    DEGENERATE,
    NO_POSITIVE_CLASS,
    OF_POSITIVE,
    ONE_CLASS,
    RANKING,
    TOO_FEW,
    clauses,
    polynomial_auc,
)
from tests.support.oracles.weighted import WeightedOracle

ZERO = Fraction(0)
NEGLIGIBLE = Fraction(1, 2**53)


class Held(NamedTuple):
    """An event of the window; where events fade, mass is what it weighs beside all others."""

    label: Any
    score: float
    predicted: Any
    majority_hit: bool
    persistent_hit: bool
    time: int | None
    arrival: int
    mass: Fraction


@dataclass
class WeightedWindowOracle:
    """Rows of one window and emission, event by event.

    last, duration, every, grid   as in WindowOracle
    half_life  in events, or microseconds where `by_time`; None: nothing fades
    signal     of an adaptive window, or None
    positive   the positive class; None: there is none
    searched   rows between those of which every measure is known
    """

    last: int | None = None
    duration: int | None = None
    half_life: int | None = None
    by_time: bool = False
    signal: str | None = None
    every: int | None = None
    grid: int | None = None
    positive: Any = 1
    threshold: float = 0.5
    probabilities: bool = False
    searched: int = 1
    held: list[Held] = field(default_factory=list)
    seq: int = 0
    greatest: int | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    reported: Any = None
    entered: int = 0
    last_seen: dict[Any, int] = field(default_factory=dict)
    last_label: Any = None
    adwin: AdwinTwin = field(default_factory=AdwinTwin)
    fed: list[int] = field(default_factory=list)
    drifted: bool = False

    def apply(self, label: Any, score: float, weight: float, time: int | None, predicted: Any = None) -> None:
        """Let time go on to an event, and apply it."""
        if time is not None:
            self.go_on_to(time)
            self.greatest = time if self.greatest is None else max(self.greatest, time)
        if self.duration is None or time > self.greatest - self.duration:  # type: ignore[operator]
            self.enter(label, score, weight, time, predicted)
        self.seq += 1
        if self.every and self.seq % self.every == 0:
            self.report(None)

    def enter(self, label: Any, score: float, weight: float, time: int | None, predicted: Any) -> None:
        if self.last_label is None:
            majority = persistent = self.positive is not None and label != self.positive
        else:
            majority, persistent = label == self.majority(), label == self.last_label
        if predicted is None:
            predicted = int(score >= self.threshold)
        value = self.value(label, score, predicted) if self.signal else None
        mass = Fraction(weight) * self.inflation(time)
        self.held.append(Held(label, score, predicted, majority, persistent, time, self.seq, mass))
        self.last_label = label
        self.last_seen[label] = self.seq
        self.entered += 1
        self.let_go(self.greatest)
        if self.half_life:
            self.fade(label)
        if value is not None:
            self.fed.append(self.seq)
            if dropped := self.adwin.add(value):
                del self.fed[:dropped]
                self.held = [event for event in self.held if event.arrival >= self.fed[0]]
                self.drifted = True

    def inflation(self, tick: int | None) -> Fraction:
        """What an event of weight 1 weighs that comes at a time, or now."""
        if self.half_life is None:
            return Fraction(1)
        periods, rest = divmod(tick if self.by_time else self.seq, self.half_life)  # type: ignore[type-var, operator]
        return Fraction(float(np.exp2(rest / self.half_life))) * Fraction(2) ** periods

    def majority(self) -> Any:
        """The label of the largest mass, of tied ones the one that came in last; or None."""
        masses: Counter[Any] = Counter()
        for event in self.held:
            masses[event.label] += event.mass  # type: ignore[assignment]
        return max(masses, key=lambda label: (masses[label], self.last_seen[label]), default=None)

    def fade(self, label: Any) -> None:
        """Drop the oldest of a class as long as they are nothing beside its mass."""
        of_class = [event for event in self.held if event.label == label]
        mass = sum((event.mass for event in of_class), ZERO)
        for event in of_class[:-1]:
            if event.mass > NEGLIGIBLE * mass:
                break
            self.held.remove(event)

    def value(self, label: Any, score: float, predicted: Any) -> float | None:
        """What ADWIN is fed for an event, None for nothing."""
        if self.signal == "error":
            return float(predicted != label)
        if self.signal == "brier":
            return (score - (label == self.positive)) ** 2
        masses = [self.mass_of(False), self.mass_of(True)]
        is_positive = label == self.positive
        if is_positive != (masses[1] <= masses[0]):
            return None
        if masses[not is_positive] == 0:
            return 0.5
        return WeightedOracle(self.binary()).placement(int(is_positive), score)

    def mass_of(self, positive: bool) -> Fraction:
        return sum((e.mass for e in self.held if (e.label == self.positive) == positive), ZERO)

    def binary(self) -> list[tuple[int, float, Any]]:
        return [(int(event.label == self.positive), event.score, event.mass) for event in self.held]

    def let_go(self, now: int | None) -> None:
        """Drop what is not in the window any more."""
        if self.duration is not None:
            self.held = [event for event in self.held if event.time > now - self.duration]  # type: ignore[operator]
        if self.last is not None:
            self.held = self.held[-self.last :]

    def go_on_to(self, time: int) -> None:
        """Report at every grid point before a time, one after another, where the window has changed."""
        if self.grid is None or self.greatest is None:
            return
        due = -(-self.greatest // self.grid) * self.grid
        while due < time:
            if due not in {row["due"] for row in self.rows}:
                self.let_go(due)
                if (self.entered, len(self.held)) != self.reported:
                    self.report(due)
            due += self.grid

    def report(self, due: int | None) -> None:
        """Add a row."""
        by_age = sorted(self.held, key=lambda e: (e.time, e.arrival) if self.duration else e.arrival)
        said: dict[str, Any] = {
            "row": len(self.rows), "seq": self.seq, "time": self.greatest, "due": due,
            "window_events": len(by_age), "drift": self.drifted if self.signal else None,
        }  # fmt: skip
        if by_age:
            said |= {"window_start": by_age[0].time, "window_end": by_age[-1].time}
            if len(self.rows) % self.searched == 0:
                said |= self.measures()
        self.rows.append(said)
        self.reported = (self.entered, len(self.held))
        self.drifted = False

    def measures(self) -> dict[str, Any]:
        """Masses, every measure and the reasons of what is null, of a window with events."""
        unit = self.inflation(self.greatest) if self.by_time else self.inflation_of_newest()
        events = [event._replace(mass=event.mass / unit) for event in self.held]
        said, reasons = decisions(events, self.positive)
        if self.positive is None:
            said |= dict.fromkeys(("positives", "negatives", "prevalence", *RANKING))
            reasons |= dict.fromkeys(RANKING, NO_POSITIVE_CLASS)
        else:
            found, why = ranking([(int(e.label == self.positive), e.score, e.mass) for e in events])
            said, reasons = said | found, reasons | why
        if not self.probabilities:
            for name in ("brier", "log_loss", "calibration_error"):
                said[name] = None
                reasons.pop(name, None)
        return {**said, "weight": float(sum(e.mass for e in events)), "reason": clauses(reasons)}

    def inflation_of_newest(self) -> Fraction:
        """The newest event counts its weight."""
        before, self.seq = self.seq, self.held[-1].arrival
        inflation = self.inflation(None) if not self.by_time else Fraction(1)
        self.seq = before
        return inflation


def decisions(events: list[Held], positive: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """All of `DECISIONS` from masses in fractions; and the reasons of what is None."""
    values: dict[str, Any] = dict.fromkeys(DECISIONS)
    reasons: dict[str, str] = {}

    def mass(chosen: Any) -> Fraction:
        return sum((event.mass for event in events if chosen(event)), ZERO)

    def ratio(name: str, top: Any, bottom: Any, reason: str) -> None:
        if bottom:
            values[name] = float(top / bottom)
        else:
            reasons[name] = reason

    total = sum((event.mass for event in events), ZERO)
    if positive is None:
        reasons |= dict.fromkeys(OF_POSITIVE, NO_POSITIVE_CLASS)
    else:
        tp = mass(lambda e: e.label == positive == e.predicted)
        fp = mass(lambda e: e.label != positive == e.predicted)
        fn = mass(lambda e: e.label == positive != e.predicted)
        tn = total - tp - fp - fn
        values |= {
            "tp": float(tp), "fp": float(fp), "tn": float(tn), "fn": float(fn),
            "cmd": float(tp * tn - fp * fn),
        }  # fmt: skip
        ratio("precision", tp, tp + fp, "no predicted positives in window")
        ratio("recall", tp, tp + fn, "no positives in window")
        ratio("specificity", tn, tn + fp, "no negatives in window")
        ratio("f1", 2 * tp, 2 * tp + fp + fn, "no positives and no predicted positives in window")
    labels, guesses = {event.label for event in events}, {event.predicted for event in events}
    right = mass(lambda e: e.label == e.predicted)
    values["accuracy"] = float(right / total)
    recalls = [
        mass(lambda e, c=c: e.label == c == e.predicted) / mass(lambda e, c=c: e.label == c) for c in labels
    ]
    if len(labels) < 2:
        reasons |= dict.fromkeys(("balanced_accuracy", "g_mean", "harmonic_mean"), ONE_CLASS)
    else:
        values["balanced_accuracy"] = float(sum(recalls) / len(recalls))
        values["g_mean"] = math.prod(map(float, recalls)) ** (1 / len(recalls))
        values["harmonic_mean"] = float(len(recalls) / sum(1 / r for r in recalls)) if all(recalls) else 0.0
    shares = [
        (mass(lambda e, c=c: e.label == c) / total, mass(lambda e, c=c: e.predicted == c) / total)
        for c in labels | guesses
    ]
    p0, pc = right / total, sum(t * p for t, p in shares)
    ratio("kappa", p0 - pc, 1 - pc, "chance agreement is certain")
    pm, pper = mass(lambda e: e.majority_hit) / total, mass(lambda e: e.persistent_hit) / total
    ratio("kappa_m", p0 - pm, 1 - pm, "the majority classifier makes no error")
    ratio("kappa_per", p0 - pper, 1 - pper, "the persistent classifier makes no error")
    spread = (1 - sum(t * t for t, _ in shares)) * (1 - sum(p * p for _, p in shares))
    if spread:
        values["mcc"] = root_ratio(p0 - pc, spread)
    else:
        reasons["mcc"] = "one class in the labels or in the predictions"
    return values, reasons


def root_ratio(top: Fraction, square: Fraction) -> float:
    """Return top / sqrt(square), of numbers that no float may hold."""
    return math.copysign(math.sqrt(top * top / square), top)


def ranking(events: list[tuple[int, float, Fraction]]) -> tuple[dict[str, Any], dict[str, str]]:
    """All of `RANKING` and the masses of classes by `WeightedOracle`, at the settings' defaults."""
    oracle = WeightedOracle(events)  # type: ignore[arg-type]
    p, n = oracle.positives, oracle.negatives
    said: dict[str, Any] = dict.fromkeys(RANKING)
    said |= {"positives": float(p), "negatives": float(n), "prevalence": float(p / (p + n))}
    said |= {"brier": oracle.brier(), "log_loss": oracle.log_loss()}
    if not oracle.has_both:
        return said, {name: ONE_CLASS for name in RANKING if name not in ("brier", "log_loss")}
    reasons = {}
    said |= {
        "auc": oracle.auc(), "h": oracle.h(), "ks": oracle.ks()[0], "tpr_at_fpr": oracle.tpr_at_fpr(0.01),
        "cost_threshold": oracle.cost_threshold(0.2), "aum": oracle.aum(),
        "cost_curve_area": oracle.cost_curve_area(), "average_precision": oracle.average_precision(),
        "calibration_error": oracle.calibration_error(), "partial_auc": oracle.partial_auc(0.0, 0.1),
    }  # fmt: skip
    chance, most = 0.1**2 / 2, 0.1
    said["partial_auc_mcclish"] = (1 + (said["partial_auc"] - chance) / (most - chance)) / 2
    said["ks_threshold"] = oracle.ks()[1]
    labels, scores, masses = zip(*events, strict=True)
    if min(scores) == max(scores):
        reasons |= dict.fromkeys(BOUNDED, CONSTANT)
    else:
        greatest = max(masses)
        shares = [float(mass / greatest) for mass in masses]
        said |= dict(zip(BOUNDED, polynomial_auc(labels, scores, shares), strict=True))
    if min(oracle.size(0), oracle.size(1)) <= 1 + 1e-9:
        reasons["auc_low"] = reasons["auc_high"] = TOO_FEW
    else:
        said["auc_low"], said["auc_high"] = oracle.interval()
        if oracle.variance() == 0:
            reasons["auc_low"] = DEGENERATE
    return said, reasons
