"""How often the intervals of the means of classes hold the truth: models whose truth is known, and draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rocsteady.core.classes.figures import figures_of_window

Z = 1.959963984540054


class Model(NamedTuple):
    """Events whose scores are normal with variance 1.

    shares  of the classes; a draw has random numbers of events of each class
    means   C x C, of the scores of an event of each class
    events  of a draw
    kind    "counts"; "weights": lognormal weights (sigma 1/2) that do not depend on the event; "fading": the
            half-life is a third of the events
    """

    shares: np.ndarray
    means: np.ndarray
    events: int
    kind: str = "counts"


def equal(classes: int, distance: float, events: int, kind: str = "counts") -> Model:
    """Return classes of one size, each of them higher by a distance in its own score."""
    return Model(np.full(classes, 1 / classes), distance * np.eye(classes), events, kind)


HARD = np.array([[1, 0.8, -2], [0.8, 1, -2], [-2, -2, 2]])

MODELS = {
    "3 classes, far apart": equal(3, 2.3, 150),
    "3 classes": equal(3, 1.0, 150),
    "3 classes, near": equal(3, 0.5, 150),
    "5 classes": equal(5, 2.0, 250),
    "10 classes": equal(10, 1.5, 500),
    "uneven classes": Model(np.array([0.1, 0.3, 0.6]), 1.5 * np.eye(3), 500),
    "a hard pair": Model(np.array([0.25, 0.25, 0.5]), HARD, 200),
    "weights": equal(3, 1.0, 200, "weights"),
    "fading": equal(3, 1.0, 200, "fading"),
}
"""Each class has some 50 events, or an effective size of some 50, and M is .955 at the most."""

BEYOND = {
    "M of .98": equal(3, 3.0, 150),
    "M of .99": equal(3, 3.3, 150),
    "M of .99, 200 events a class": equal(3, 3.3, 600),
    "M of .995": equal(3, 3.65, 150),
    "20 events a class": equal(3, 1.0, 60),
    "10 events a class": equal(3, 1.0, 30),
    "10 events a class, M of .95": equal(3, 2.3, 30),
}
"""What the intervals do not promise."""


def draw(model: Model, rng: np.random.Generator, events: int) -> tuple[np.ndarray, np.ndarray]:
    labels = rng.choice(len(model.shares), events, p=model.shares)
    return labels, rng.normal(size=(events, len(model.shares))) + model.means[labels]


def values_of(found) -> np.ndarray:
    return np.array([found.values.macro, found.values.weighted, found.values.m])


def coverage(model: Model, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how often 95% intervals of macro, weighted and M held the truth, and the truth.

    Draws in which a class has fewer than two events have no interval, and do not count.
    """
    rng = np.random.default_rng(1)
    truth = values_of(figures_of_window(*draw(model, rng, 400_000)))
    hits, counted = np.zeros(3), 0
    ages = np.arange(model.events)[::-1] / (model.events / 3)
    for _ in range(draws):
        events = draw(model, rng, model.events)
        if model.kind == "weights":
            found = figures_of_window(*events, rng.lognormal(0, 0.5, model.events))
        else:
            found = figures_of_window(*events, None, ages if model.kind == "fading" else None)
        if found is not None and found.variances is not None:
            hits += np.abs(values_of(found) - truth) <= Z * np.sqrt(found.variances)
            counted += 1
    return hits / counted, truth
