"""Deals instances to folds: which folds train on an instance, which test it (Bifet et al. 2015, section 3).

Invariant
    What a fold does with an instance depends on (seed, id, fold) alone. So it is the same on every runner, at
    every parallelism and for every cut into batches. It is also the same for every learner, so that folds
    are paired.

    bootstrap  each fold trains on the instance Poisson(1) times; folds that do not (36.8%) test it
    cv         one fold, drawn evenly, tests the instance; all other folds train on it
    split      one fold, drawn evenly, trains on the instance; all other folds test it

Prequential: a fold tests each instance that it trains on, and no other. It tests just before it trains, and
once for each instance, whatever the weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Int64Array, UInt64Array
from ..errors import ConfigError
from ..events.columns import IdColumn
from ..ids.chances import uniform_of_hashes
from ..ids.index import hash64_of_ids

Method = Literal["bootstrap", "cv", "split"]

METHODS: tuple[Method, ...] = ("bootstrap", "cv", "split")
MAX_FOLDS = 1_000

_POISSON = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(18)])
"""The distribution function of Poisson(1). The probability of more than 17 is less than the step from 1 to
the next float.
"""


class Assignment(NamedTuple):
    """What one fold does with each of n instances.

    weights  int64[n]: how many times the fold trains on the instance; 0 = not at all
    tests    bool[n]: whether the fold tests the instance, before it trains
    """

    weights: Int64Array
    tests: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Folds:
    """Deals instances to k folds by the hashes of their ids.

    method       see the module
    count        how many folds, from 2
    seed         a whole number from 0; another seed deals instances differently
    prequential  see the module

    >>> folds, ids = Folds("cv", count=3, seed=1), IdColumn.of(["a", "b", "c", "d"])
    >>> [folds.assign(ids, fold).weights.tolist() for fold in range(3)]
    [[1, 0, 1, 1], [1, 1, 1, 0], [0, 1, 0, 1]]
    """

    method: Method = "bootstrap"
    count: int = 10
    seed: int = 1
    prequential: bool = True

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"method {self.method!r} deals no folds; there are {', '.join(METHODS)}")
        if not _is_whole(self.count) or not 2 <= self.count <= MAX_FOLDS:
            raise ConfigError(f"folds={self.count!r}: give a whole number from 2 to {MAX_FOLDS:,}")
        if not _is_whole(self.seed) or not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed={self.seed!r}: give a whole number from 0")

    def assign(self, ids: IdColumn, fold: int) -> Assignment:
        """Return what fold number `fold`, from 0, does with the instances of these ids.

        Takes O(bytes of the ids).
        """
        return self.deal(hash64_of_ids(ids), fold)

    def deal(self, hashes: UInt64Array, fold: int) -> Assignment:
        """Return the result of `assign`, from the hashes of ids (`hash64_of_ids`). O(n)."""
        if self.method == "bootstrap":
            chances = uniform_of_hashes(hashes, self.seed, fold + 1)
            weights = np.searchsorted(_POISSON, chances, side="right").astype(np.int64)
        else:
            chosen = (uniform_of_hashes(hashes, self.seed, 0) * self.count).astype(np.int64) == fold
            weights = (~chosen if self.method == "cv" else chosen).astype(np.int64)
        return Assignment(weights, weights > 0 if self.prequential else weights == 0)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
