"""What watches a stream of predictions: river's detectors, and windows and rules of this package.

A watcher is told parts of a stream in order, and says at which events of the part it gave an alarm. Its copy
goes on by itself. All settings are defaults, or stand here once for all streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import rocsteady as rs
from rocsteady.core.alerts.alert_rows import WatchedRows

from .streams import Predictions

WINDOW, EVERY = 1_000, 100
LAG, LONG = 20, WINDOW // EVERY
"""A rule's reference lies LAG rows back; LONG rows make a window."""

SIGNALS = ("placement", "error", "brier")

SHIFT = 0.1
"""The change of the prevalence, and half of it of the accuracy, that a rule asks for."""

Alarms = dict[str, list[int]]
"""By the name of a watcher, indices of events in the part of the stream that was told."""


class Watcher(Protocol):
    def follow(self, part: Predictions) -> Alarms: ...


class OfErrors:
    """A river detector that is told 1 for an error. `swapped`: it is told 1 for a right prediction."""

    def __init__(self, name: str, detector: Any, swapped: bool = False) -> None:
        self._name, self._detector, self._swapped = name, detector, swapped

    def follow(self, part: Predictions) -> Alarms:
        detector, found = self._detector, []
        for place, error in enumerate((part.errors() != self._swapped).astype(int).tolist()):
            detector.update(error)
            if detector.drift_detected:
                found.append(place)
        return {self._name: found}


class Rising:
    """river's ADWIN, of whose alarms only those count at which the mean of the window rose."""

    def __init__(self) -> None:
        from river.drift import ADWIN

        self._adwin = ADWIN()
        self.drift_detected = False

    def update(self, value: int) -> None:
        before = self._adwin.estimation
        self._adwin.update(value)
        self.drift_detected = bool(self._adwin.drift_detected and self._adwin.estimation > before)


class TwoSided:
    """Two one-sided detectors as a two-sided one of MOA: it begins anew at a fall, and only tells a rise."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._rise, self._fall = make(), make()
        self.drift_detected = False

    def update(self, value: int) -> None:
        self._rise.update(value)
        self._fall.update(1 - value)
        self.drift_detected = self._rise.drift_detected
        if self._rise.drift_detected or self._fall.drift_detected:
            self._rise, self._fall = self._make(), self._make()


class OfWindow:
    """An adaptive window: an alarm is a row that says `drift`."""

    def __init__(self, signal: str) -> None:
        self._name = f"adaptive window ({signal})"
        self._evaluator = rs.ModelEvaluator(
            window=rs.Adaptive(signal=signal), every=rs.EveryEvents(EVERY), probabilities=True
        )
        self._seen = 0

    def follow(self, part: Predictions) -> Alarms:
        rows = self._evaluator.update(part.labels, part.scores)
        places = rows.integer("seq") - 1 - self._seen
        self._seen += len(part)
        return {self._name: places[rows.drift == 1].tolist()}


class OfRules:
    """Alert rules on the rows of a window of fixed length: an alarm is an alert that opens."""

    def __init__(self, rules: dict[str, tuple[str, ...]], bound: float) -> None:
        """rules: the texts of the rules of each name; an alarm of the name is an alert of any of them."""
        parsed = {name: [rs.parse_alert(text) for text in texts] for name, texts in rules.items()}
        self._names = {str(rule): name for name, each in parsed.items() for rule in each}
        self._table = rs.AlertTable([rule for each in parsed.values() for rule in each])
        self._evaluator = rs.ModelEvaluator(
            window=rs.LastEvents(WINDOW), every=rs.EveryEvents(EVERY), evidence_below=bound
        )
        self._seen = 0

    def follow(self, part: Predictions) -> Alarms:
        times = np.arange(self._seen, self._seen + len(part)).astype("M8[s]")
        rows = self._evaluator.update(part.labels, part.scores, times=times)
        found: Alarms = {name: [] for name in self._names.values()}
        for alert in self._table.apply(WatchedRows.of_rows(rows, self._table.columns).pack()):
            if alert.state == "open":
                found[self._names[alert.rule]].append((alert.row + 1) * EVERY - 1 - self._seen)
        self._seen += len(part)
        return {name: sorted(places) for name, places in found.items()}


def rules_of(reference: Predictions) -> tuple[dict[str, tuple[str, ...]], float]:
    """Return the rules by their names on the page, and the bound: the lower end of the reference's AUC."""
    whole = rs.ModelEvaluator(window=rs.AllEvents(), every=rs.EveryEvents(len(reference)))
    low = whole.update(reference.labels, reference.scores)[-1].auc_low
    assert low is not None
    bound = round(low, 4)
    end = np.datetime64(len(reference), "s").astype("M8[us]")
    lag, period = f"against {LAG} rows", f"against 1970-01-01..{end}Z"
    half, for_long = SHIFT / 2, f"for {LONG} rows"
    return {
        f"`auc drops {lag}`": (f"auc drops {lag}",),
        f"`auc drops {lag} {for_long}`": (f"auc drops {lag} {for_long}",),
        f"`auc drops against PERIOD {for_long}`": (f"auc drops {period} {for_long}",),
        "`auc surely < BOUND at 1e4`": (f"auc surely < {bound} at 1e4",),
        "`auc surely < BOUND at 1e6`": (f"auc surely < {bound} at 1e6",),
        f"`accuracy drops by {half} {lag} {for_long}`": (f"accuracy drops by {half} {lag} {for_long}",),
        f"`prevalence` drops or rises by {SHIFT} {lag} {for_long}": (
            f"prevalence drops by {SHIFT} {lag} {for_long}",
            f"prevalence rises by {SHIFT} {lag} {for_long}",
        ),
    }, bound


def detectors() -> dict[str, Callable[[], Any]]:
    """Return river's detectors, with their defaults."""
    from river import drift

    return {
        "ADWIN": drift.ADWIN,
        "DDM": drift.binary.DDM,
        "EDDM": drift.binary.EDDM,
        "FHDDM": drift.binary.FHDDM,
        "HDDM_A": drift.binary.HDDMA,
        "HDDM_W": drift.binary.HDDMW,
        "PageHinkley": drift.PageHinkley,
        "KSWIN": lambda: drift.KSWIN(seed=1),
    }


def as_published() -> dict[str, Callable[[], Any]]:
    """Return detectors as the paper's code has them: a rise of the mean of what they are told is an alarm."""
    from river import drift

    return {
        "ADWIN": Rising,
        "DDM": drift.binary.DDM,
        "HDDM_A": lambda: TwoSided(drift.binary.HDDMA),
        "HDDM_W": lambda: TwoSided(drift.binary.HDDMW),
        "PageHinkley": lambda: drift.PageHinkley(mode="up"),
    }


SLOW = "KSWIN"
WRONG, RIGHT = "told 1 if wrong", "told 1 if right"


def watchers(reference: Predictions, slow: bool) -> list[Watcher]:
    """Return new watchers of all kinds. slow: with KSWIN, which costs more than all others together."""
    found: list[Watcher] = [
        OfErrors(name, make()) for name, make in detectors().items() if slow or name != SLOW
    ]
    found.append(OfErrors(f"FHDDM ({RIGHT})", detectors()["FHDDM"](), swapped=True))
    found += [OfWindow(signal) for signal in SIGNALS]
    found.append(OfRules(*rules_of(reference)))
    return found


def told_both_ways() -> list[Watcher]:
    """Return the detectors of the paper's code, told 1 for an error and told 1 for a right prediction."""
    return [
        OfErrors(f"{name} ({told})", make(), swapped=told == RIGHT)
        for name, make in as_published().items()
        for told in (WRONG, RIGHT)
    ]
