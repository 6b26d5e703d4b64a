"""Folds: frequencies, what a fold tests, and that nothing but (seed, id, fold) decides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError
from rocsteady.core.events.columns import IdColumn
from rocsteady.core.prequential.folds import METHODS, Folds
from scipy import stats

N = 40_000
IDS = [f"instance {number}" for number in range(N)]
COLUMN = IdColumn.of(IDS)

# of e0 to e11 with seed 1: weights of the first fold by bootstrap; the fold that split draws of 10
BOOTSTRAP = [1, 1, 0, 0, 1, 0, 1, 1, 2, 2, 1, 0]
DRAWN = [8, 6, 3, 7, 4, 2, 6, 8, 5, 2, 9, 1]


def weights_of(folds):
    return np.array([folds.assign(COLUMN, fold).weights for fold in range(folds.count)])


def test_bootstrap_is_poisson_1_in_every_fold_and_independent():
    weights = weights_of(Folds("bootstrap", count=5, seed=3))
    for counts in weights:
        seen = np.bincount(np.minimum(counts, 5), minlength=6)
        expected = np.append(stats.poisson.pmf(range(5), 1), stats.poisson.sf(4, 1)) * N
        assert stats.chisquare(seen, expected).pvalue > 0.001
    correlations = np.corrcoef(weights)[np.triu_indices(5, 1)]
    assert np.abs(correlations).max() < 4 / math.sqrt(N)


@pytest.mark.parametrize("method", ["cv", "split"])
def test_one_fold_is_drawn_evenly(method):
    weights = weights_of(Folds(method, count=7, seed=3))
    assert set(np.unique(weights)) == {0, 1}
    chosen = weights == (0 if method == "cv" else 1)
    assert (chosen.sum(axis=0) == 1).all()
    assert stats.chisquare(chosen.sum(axis=1)).pvalue > 0.001


@pytest.mark.parametrize("method", METHODS)
def test_what_is_tested(method):
    for fold in range(4):
        given = Folds(method, count=4, prequential=True).assign(COLUMN, fold)
        assert (given.tests == (given.weights > 0)).all()
        other = Folds(method, count=4, prequential=False).assign(COLUMN, fold)
        assert (other.weights == given.weights).all()
        assert (other.tests == (given.weights == 0)).all()


@pytest.mark.parametrize("method", METHODS)
def test_batches_change_nothing(method):
    folds = Folds(method, count=3, seed=9)
    for fold in range(3):
        whole = folds.assign(COLUMN, fold)
        parts = [folds.assign(IdColumn.of(IDS[at : at + 777]), fold) for at in range(0, N, 777)]
        assert np.concatenate([part.weights for part in parts]).tolist() == whole.weights.tolist()


def test_assignments_never_change():
    """They are part of what a stored state rests on."""
    ids = IdColumn.of([f"e{number}" for number in range(12)])
    assert Folds("bootstrap", 10, seed=1).assign(ids, 0).weights.tolist() == BOOTSTRAP
    drawn = [
        next(fold for fold in range(10) if Folds("split", 10, seed=1).assign(ids, fold).weights[row])
        for row in range(12)
    ]
    assert drawn == DRAWN


def test_seeds_deal_anew():
    one, other = (Folds("bootstrap", seed=seed).assign(COLUMN, 0).weights for seed in (1, 2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / math.sqrt(N)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "jackknife"}, "'jackknife' deals no folds"),
        ({"count": 1}, "folds=1"),
        ({"count": True}, "folds=True"),
        ({"count": 2.5}, "folds=2.5"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": "x"}, "seed='x'"),
    ],
)
def test_what_is_wrong_is_said(settings, words):
    with pytest.raises(ConfigError, match=words):
        Folds(**settings)
