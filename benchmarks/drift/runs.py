"""Every watcher on every stream: false alarms, detections and their delays, and the cost of an event."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import process_time

import numpy as np

from .streams import STILL, Predictions, Trial
from .watchers import SIGNALS, OfErrors, OfRules, OfWindow, Watcher, detectors, rules_of


@dataclass
class Found:
    """What a watcher found.

    false   of each stream, the alarms where nothing drifts, and the number of events there
    delays  by (kind, mode), of each stream: events from the drift to the first alarm, infinity for none. The
            kind STILL has the same windows of streams without a drift
    """

    false: list[tuple[int, int]] = field(default_factory=list)
    delays: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: Found) -> None:
        self.false += other.false
        for key, found in other.delays.items():
            self.delays[key] += found


TURNS, SLOW_SECONDS = 3, 5.0
"""The cost is that of the best turn. A watcher that takes so many seconds for a turn only sees its tenth."""

Results = dict[str, Found]
"""By the name of a watcher."""


def watch(trial: Trial, watchers: Iterable[Watcher], results: Results) -> None:
    """Add what watchers find in a trial."""
    for watcher in watchers:
        before = watcher.follow(trial.before)
        first = int(np.searchsorted(trial.before.places, trial.judged))
        for key, part in trial.after.items():
            places = part.places
            for name, alarms in copy.deepcopy(watcher).follow(part).items():
                found = results.setdefault(name, Found())
                if key[0] == STILL:
                    early = sum(alarm >= first for alarm in before[name])
                    found.false.append((early + len(alarms), len(trial.before) - first + len(part)))
                    for mode, window in trial.windows.items():
                        found.delays[STILL, mode].append(_delay(alarms, places, trial.onset, window))
                else:
                    window = trial.windows[key[1]]
                    found.delays[key].append(_delay(alarms, places, trial.onset, window))


def _delay(alarms: list[int], places: np.ndarray, onset: int, window: int) -> float:
    for alarm in alarms:
        if alarm >= 0:
            delay = int(places[alarm]) - onset + 1
            return float(delay) if delay <= window else math.inf
    return math.inf


def costs(events: int) -> dict[str, float]:
    """Return the microseconds an event of each watcher, on a stream that stands still."""
    rng = np.random.default_rng(5)
    labels = (rng.random(events) < 0.4).astype(np.int8)
    scores = 1 / (1 + np.exp(-rng.normal(1.5 * labels - 0.75)))
    stream = Predictions(labels, scores, np.arange(events))
    rules, bound = rules_of(stream)
    watchers: list[Watcher] = [OfErrors(name, make()) for name, make in detectors().items()]
    watchers += [OfWindow(signal) for signal in SIGNALS]
    watchers += [OfRules({name: texts}, bound) for name, texts in rules.items()]
    found = {}
    for watcher in watchers:
        seconds = []
        for part in (stream.part(0, events // 10), *[stream] * TURNS):
            begin = process_time()
            (name,) = copy.deepcopy(watcher).follow(part)
            seconds.append((process_time() - begin) / len(part))
            if seconds[-1] * events > SLOW_SECONDS and part is not stream:
                break
        found[name] = min(seconds) * 1e6
    return found
