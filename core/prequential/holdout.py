"""Hold-out evaluation of a stream: at checkpoints a learner is tested on instances that it never learns.

A stream is cut into rounds. In a round the model learns `every` instances, then only predicts the next `size`
instances, without learning in between. The held-out instances are the next instances of the stream, so they
show the concept of that moment, and are tested at once. The only cost is that the model never learns from
them.

The model also predicts each instance just before it learns it. So a prequential estimate comes from the same
run of the same model, and can be compared with the estimate by hold-out (Bifet et al. 2015, section 6, figure
4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray
from ..errors import ConfigError, InputError
from .folds import Assignment


class HoldOutEstimate(NamedTuple):
    """The result of one hold-out.

    end     instances of the stream up to the end of the hold-out, the hold-out included.
    learnt  instances that the model had learnt.
    tested  instances of the hold-out.
    wrong   instances of the hold-out that the model got wrong.
    """

    end: int
    learnt: int
    tested: int
    wrong: int

    @property
    def accuracy(self) -> float:
        """The share of held-out instances that the model predicted right."""
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
        """Return what a learner does with the instances [start, end) of a stream, for `Learner.run`. O(n).

        Held-out instances have weight 0; all instances are tested.
        """
        places = np.arange(start, end) % (self.every + self.size)
        return Assignment((places < self.every).astype(np.int64), np.ones(end - start, np.bool_))

    def estimates(self, wrong: BoolArray) -> list[HoldOutEstimate]:
        """Return the result of every full hold-out of a stream. O(n).

        wrong  bool[n]: which instances, from the first of the stream on, the model got wrong

        Raises InputError if `wrong` is no one-dimensional array of truth values.
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
