"""Intervals of the means of classes: how often they hold the truth, and the bootstrap that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from rocsteady.core.classes.figures import figures_of_labels, figures_of_window

from tests.support.streams.class_coverage import HARD, MODELS, Model, coverage, draw, values_of
from tests.support.thorough import at_length


@pytest.mark.at_length
@pytest.mark.parametrize("name", MODELS)
def test_intervals_of_means_hold_the_truth_as_often_as_promised(name):
    draws = at_length(6_000, 800)
    held, truth = coverage(MODELS[name], draws)
    slack = 3 * np.sqrt(0.95 * 0.05 / draws) if draws < 2_000 else 0.0
    assert truth.max() <= 0.955
    assert (held >= 0.93 - slack).all(), held
    assert (held <= 0.97 + slack).all(), held


@pytest.mark.at_length
@pytest.mark.parametrize("multi_label", [False, True])
def test_variances_are_those_of_a_bootstrap(multi_label):
    rng = np.random.default_rng(5)
    model = Model(np.array([0.25, 0.25, 0.5]), HARD, 800)
    labels, scores = draw(model, rng, 800)
    members = rng.random((800, 3)) < model.shares + 0.2
    scores = np.round(scores + members * multi_label, 1)
    draws = at_length(4_000, 600)
    values = []
    for _ in range(draws):
        chosen = rng.integers(0, 800, 800)
        if multi_label:
            values.append(values_of(figures_of_labels(members[chosen], scores[chosen])))
        else:
            values.append(values_of(figures_of_window(labels[chosen], scores[chosen])))
    found = figures_of_labels(members, scores) if multi_label else figures_of_window(labels, scores)
    kinds = slice(0, 2 if multi_label else 3)
    ratio = np.var(values, axis=0)[kinds] / found.variances[kinds]
    assert ratio == pytest.approx(1, abs=0.05 + 4 * np.sqrt(2 / draws))
