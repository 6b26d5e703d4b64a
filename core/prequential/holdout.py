"""Hold-out evaluation of a stream: at checkpoints a learner is tested on instances that it never learns.

A stream is cut into rounds: so many instances are learnt, then as many as a hold-out has are only predicted,
by the model as it stands there. They are the next of the stream, so of the concept of that moment, and wait
for nobody: labels of a hold-out cost the learner nothing but what it could have learnt from them.

What is learnt is predicted, too, just before: a prequential estimate comes from the same run of the same
model, and can be held against the hold-out's (Bifet et al. 2015, section 6, figure 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray
from ..errors import ConfigError, InputError
from .folds import Assignment


class HoldOutEstimate(NamedTuple):
    """What a hold-out said.

    end     instances of the stream up to the end of it, itself included
    learnt  instances that the model had learnt
    tested  instances of the hold-out
    wrong   of them, those that the model got wrong
    """

    end: int
    learnt: int
    tested: int
    wrong: int

    @property
    def accuracy(self) -> float:
        """The share that it got right."""
        return 1.0 - self.wrong / self.tested


@dataclass(frozen=True)
class HoldOut:
    """A hold-out of `size` instances after every `every` instances learnt.

    Raises ConfigError for counts below 1.

    >>> hold_out = HoldOut(every=3, size=2)
    >>> hold_out.assign(0, 7).weights.tolist()
    [1, 1, 1, 0, 0, 1, 1]
    >>> wrong = np.array([1, 1, 0, 1, 0, 0, 0], bool)
    >>> [(each.learnt, each.accuracy) for each in hold_out.estimates(wrong)]
    [(3, 0.5)]
    """

    every: int
    size: int

    def __post_init__(self) -> None:
        for name, value in (("every", self.every), ("size", self.size)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"hold-out: {name}={value!r}; give a number of instances, 1 or more")

    def assign(self, start: int, end: int) -> Assignment:
        """Return what is done with the instances [start, end) of a stream, for `Learner.run`. O(n).

        Held-out ones have weight 0; all are tested.
        """
        places = np.arange(start, end) % (self.every + self.size)
        return Assignment((places < self.every).astype(np.int64), np.ones(end - start, np.bool_))

    def estimates(self, wrong: BoolArray) -> list[HoldOutEstimate]:
        """Return what every full hold-out of a stream said. O(n).

        wrong  bool[n]: which instances, from the first of the stream on, the model got wrong

        Raises InputError where `wrong` is no row of truth values.
        """
        if wrong.ndim != 1 or wrong.dtype != np.bool_:
            raise InputError(f"wrong has the shape {wrong.shape} and type {wrong.dtype}; give bool[n]")
        cycle = self.every + self.size
        rounds = len(wrong) // cycle
        counts = wrong[: rounds * cycle].reshape(rounds, cycle)[:, self.every :].sum(axis=1)
        return [
            HoldOutEstimate(number * cycle, number * self.every, self.size, count)
            for number, count in enumerate(counts.tolist(), start=1)
        ]
