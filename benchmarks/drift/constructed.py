"""Score streams on which a detector of errors and an alert on AUC differ by construction.

Scores are those of two normal distributions of variance 1, turned into probabilities that are calibrated
before the change. The change is at the middle, and a window of a quarter of the stream follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from .streams import STILL, Labels, Predictions, Trial

EVENTS = 20_000


@dataclass(frozen=True)
class Concept:
    """prevalence, AUC, and by how much the logits of all scores are moved."""

    prevalence: float
    auc: float
    moved: float = 0.0


CHANGES: dict[str, tuple[Concept, Concept]] = {
    "the AUC falls from .85 to .70, 40% positive": (Concept(0.4, 0.85), Concept(0.4, 0.70)),
    "all scores move up, the order stays": (Concept(0.4, 0.85), Concept(0.4, 0.85, 2.0)),
    "15% positive become 50%, the ranking stays": (Concept(0.15, 0.85), Concept(0.5, 0.85)),
    "the AUC falls from .85 to .60, 2% positive": (Concept(0.02, 0.85), Concept(0.02, 0.60)),
}


def error_of(before: Concept, now: Concept) -> float:
    """Return the share of wrong decisions at a probability of 1/2, of scores calibrated to `before`."""
    distance, separation = np.sqrt(2) * norm.ppf([before.auc, now.auc])
    at = distance / 2 - (logit(before.prevalence) + now.moved) / distance
    negatives, positives = (1 - now.prevalence) * norm.sf(at), now.prevalence * norm.cdf(at - separation)
    return float(negatives + positives)


def _predictions(
    rng: np.random.Generator, before: Concept, now: Concept, begin: int, end: int
) -> Predictions:
    labels: Labels = (rng.random(end - begin) < now.prevalence).astype(np.int8)
    distance, separation = np.sqrt(2) * norm.ppf([before.auc, now.auc])
    values = rng.normal(separation * labels)
    logits = logit(before.prevalence) + distance * values - distance**2 / 2 + now.moved
    return Predictions(labels, expit(logits), np.arange(begin, end))


def constructed(number: int, events: int = EVENTS) -> Iterator[tuple[str, Trial]]:
    """Yield the name of a change and its trial: a number of trials of each change."""
    middle = events // 2
    window = {"abrupt": events // 4}
    for place, (name, (before, after)) in enumerate(CHANGES.items()):
        for seed in range(number):
            rng = np.random.default_rng([seed, place, events])
            early = _predictions(rng, before, before, 0, middle)
            still = _predictions(rng, before, before, middle, events)
            late = _predictions(rng, before, after, middle, middle + window["abrupt"])
            yield (
                name,
                Trial(events // 8, middle, window, early, {(STILL, ""): still, (name, "abrupt"): late}),
            )
