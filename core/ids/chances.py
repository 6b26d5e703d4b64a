"""Random numbers made from hashes: the same on every machine, and however a stream is cut into batches."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from ..arrays import UInt64Array

_GOLDEN, _ONE, _TWO = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = (1 << 64) - 1


def uniform_of_hashes(hashes: UInt64Array, seed: int, stream: int) -> npt.NDArray[np.float64]:
    """Return numbers in [0, 1), independent for every (seed, stream): Steele's splitmix64 of the hashes.

    >>> uniform_of_hashes(np.array([1, 2, 1], np.uint64), seed=1, stream=0).round(3).tolist()
    [0.173, 0.688, 0.173]
    """
    key = _mixed_number(_mixed_number(seed + _GOLDEN & _MASK) + stream * _GOLDEN & _MASK)
    mixed = hashes ^ np.uint64(key)
    with np.errstate(over="ignore"):
        for factor, shift in ((_ONE, 30), (_TWO, 27)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def seed_of(seed: int, learner: str, fold: int) -> int:
    """Return the seed of a learner in a fold: 31 bits, the same on every platform.

    Each learner of each fold has its own seed. Folds whose learners share a seed correlate, and tests over
    such folds reject true null hypotheses up to three times as often.

    >>> seed_of(1, "forest", 0), seed_of(1, "forest", 1)
    (411062534, 1346577345)
    """
    digest = hashlib.blake2b(f"{seed}/{fold}/{learner}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") & 0x7FFFFFFF


def _mixed_number(value: int) -> int:
    value = (value ^ value >> 30) * _ONE & _MASK
    value = (value ^ value >> 27) * _TWO & _MASK
    return value ^ value >> 31
