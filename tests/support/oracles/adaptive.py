"""Slow, obvious oracles of the adaptive window: ADWIN over a plain list, and events in a window it cuts.

Nothing here is shared with the core. `AdwinTwin` keeps every value, and takes sums, means and deviations anew
from the values themselves at every check, so it also tells whether the sums that ADWIN carries are right.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class AdwinTwin:
    """Bifet & Gavalda 2007: values oldest first, and the sizes of the buckets they lie in, oldest first."""

    def __init__(self, delta: float = 0.002) -> None:
        self.delta = delta
        self.values: list[float] = []
        self.sizes: list[int] = []
        self.fed = 0

    @property
    def width(self) -> int:
        return len(self.values)

    def add(self, value: float) -> int:
        """Feed a value; how many of the oldest it dropped."""
        self.values.append(value)
        self.sizes.append(1)
        size = 1
        while self.sizes.count(size) == 6:
            oldest = self.sizes.index(size)
            self.sizes[oldest : oldest + 2] = [2 * size]
            size *= 2
        self.fed += 1
        dropped = 0
        if self.fed % 32 == 0 and self.width > 10:
            while self.changed():
                gone = self.sizes.pop(0)
                del self.values[:gone]
                dropped += gone
        return dropped

    def changed(self) -> bool:
        values = np.array(self.values)
        width = len(values)
        d = math.log(2 * math.log(width) / self.delta)
        v = float(np.var(values))
        sums = np.cumsum(values)
        for n0 in np.cumsum(self.sizes)[:-1].tolist():
            n1 = width - n0
            if n0 < 5 or n1 < 5:
                continue
            difference = sums[n0 - 1] / n0 - (sums[-1] - sums[n0 - 1]) / n1
            m = 1 / (n0 - 4) + 1 / (n1 - 4)
            if abs(difference) > math.sqrt(2 * m * v * d) + 2 / 3 * d * m:
                return True
        return False


class AdaptiveOracle:
    """The one window of an adaptive evaluator: a list of (label, score, index of arrival), oldest first.

    An event's signal is taken from the window before it; the event then enters; and where its signal made
    ADWIN drop values, so do all events that arrived before the oldest one whose signal is kept.

    signal: "placement", fed for events of the class with the smaller mass in the window before them (a tie:
    positives; undefined: 0.5); or of every event "error", the predicted class (score >= threshold) is not
    the label, or "brier", (score - label)^2.
    """

    def __init__(self, delta: float = 0.002, signal: str = "placement", threshold: float = 0.5) -> None:
        self.adwin = AdwinTwin(delta)
        self.signal = signal
        self.threshold = threshold
        self.window: list[tuple[Any, ...]] = []
        self.fed: list[int] = []  # indices of arrival of the values that ADWIN keeps, oldest first
        self.seq = 0

    @property
    def events(self) -> list[tuple[int, float]]:
        return [(label, score) for label, score, _ in self.window]

    def add(self, label: int, score: Any, *more: float) -> bool:
        """Apply an event; whether the window shrank. `more` stands between the score and the index."""
        value = self.value(label, score)
        self.window.append((label, score, *more, self.seq))
        dropped = 0
        if value is not None:
            self.fed.append(self.seq)
            dropped = self.adwin.add(value)
        self.seq += 1
        if dropped:
            del self.fed[:dropped]
            self.window = [event for event in self.window if event[-1] >= self.fed[0]]
        return dropped > 0

    def value(self, label: int, score: Any) -> float | None:
        """What ADWIN is fed for an event, None for nothing."""
        if self.signal == "error":
            return float((score >= self.threshold) != (label == 1))
        if self.signal == "brier":
            return (score - label) ** 2
        labels = np.array([event[0] for event in self.window])
        scores = np.array([event[1] for event in self.window])
        positives = int((labels == 1).sum())
        negatives = len(labels) - positives
        rarer = 1 if positives <= negatives else 0
        if label != rarer:
            return None
        others = scores[labels != label]
        if len(others) == 0:
            return 0.5
        right = (others < score) if label == 1 else (others > score)
        return float((right.sum() + (others == score).sum() / 2) / len(others))
