"""The bound that a period of the stream gives: the least AUC that the model had in the period.

`auc_low` of a period
    The events of the period form blocks, as the later events do. Given the labels, the AUC of each block is
    an independent estimate in [0, 1] of the AUC (`below`). `auc_low` is Student's lower limit, at 97.5%, of
    the mean of the blocks' AUCs and one more value, 0; at m = 1, two more. It is the lower end of a 95%
    interval.

    The 0 stands for a bad block that has not come yet. Without it the limit of a few good blocks is too high:
    ten blocks of an AUC of .98 miss it in 15% of the cases, ten blocks of .999 in 80%. With the 0, the limit
    is above the true AUC in 2% of the cases at most: for 2 to 300 blocks, an AUC of .6 to .999, normal and
    tied scores, and positives of which some lie below all negatives. It costs 1/n of the AUC for n blocks.

    Where the AUC of each block is 1 or 0, a limit with one 0 is above the true AUC in up to 5.2% of the
    cases, and with two in 2.5% at most, for 2 to 3,000 blocks. Blocks of m = 1 can be so, and larger blocks
    if their events depend on each other. So the limit for m = 2 or more needs independent events.

    DeLong's interval needs all scores of the period. The mean over blocks needs three numbers. At an AUC of
    .85 and blocks of 4 positives and 4 negatives its standard error is a tenth larger.

The bound is `auc_low` less the margin. It is fixed at the first event at or after the end of the period; the
period's last block, if it is not full, is left out. With fewer than two blocks, or with a bound of 0 or less,
there is no bound, and so never any evidence.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..encoding.fields import Reader
from ..settings.evidence import PeriodBound

LEVEL = 0.975
"""The least probability with which the lower limit is below the AUC."""

FEWEST = 2
"""The fewest blocks of a period that gives a bound."""

_FORM = struct.Struct("<q3d?")
REFERENCE_BYTES = _FORM.size


class Reference:
    """The state of a period that gives a bound. State: 33 bytes.

    wanted     the period and the margin
    zeros      how many values of 0 stand beside the AUCs of the blocks
    blocks     number of full blocks in the period
    has_ended  whether an event at or after the period's end has come
    bound      the bound that the period gave; NaN while the period lasts, and if it gives no bound
    """

    def __init__(self, wanted: PeriodBound, zeros: int) -> None:
        self.wanted = wanted
        self.zeros = zeros
        self.blocks = 0
        self.has_ended = False
        self.bound = math.nan
        self._sums = np.zeros(2)

    def split(self, times: Int64Array) -> tuple[Int64Array, int]:
        """Return the events in the period, up to its end, and how many of the events come before its end.

        O(n).
        """
        period = self.wanted.period
        behind = np.flatnonzero(times >= period.end)
        before = int(behind[0]) if len(behind) else len(times)
        return np.flatnonzero(times[:before] >= period.start), before

    def add(self, aucs: FloatArray) -> None:
        """Add the AUCs of blocks. The sums are the same for any cut of the blocks into calls."""
        self.blocks += len(aucs)
        values = np.column_stack([aucs, aucs * aucs])
        self._sums = np.concatenate([self._sums[None], values]).cumsum(axis=0)[-1]

    @property
    def auc_low(self) -> float | None:
        """The lower limit of the AUC in the period so far; None for fewer than two blocks."""
        if self.blocks < FEWEST:
            return None
        from scipy.special import stdtrit  # takes .1 s of processor time to import

        count = self.blocks + self.zeros
        total, squares = self._sums.tolist()
        mean = total / count
        variance = max(0.0, squares - count * mean * mean) / (count - 1)
        return mean - float(stdtrit(count - 1, LEVEL)) * math.sqrt(variance / count)

    def end(self) -> None:
        """End the period, and fix the bound, if there is one."""
        self.has_ended = True
        bound = (self.auc_low or 0.0) - self.wanted.margin
        self.bound = bound if bound > 0.0 else math.nan

    def pack(self) -> bytes:
        """Return the wire form: the blocks, both sums, the bound, whether the period has ended."""
        return _FORM.pack(self.blocks, *self._sums.tolist(), self.bound, self.has_ended)

    def load(self, reader: Reader) -> None:
        """Read the wire form; raises ValueError for a state that contradicts itself."""
        self.blocks, total, squares, self.bound, self.has_ended = reader.numbers(_FORM.format)
        if not (self.blocks >= 0 and 0.0 <= squares <= total * (1 + 1e-9) and total <= self.blocks):
            raise ValueError(f"{self.blocks} blocks have sums of {total} and {squares}")
        if not math.isnan(self.bound) and not (self.has_ended and 0.0 < self.bound < 1.0):
            raise ValueError(f"the bound of a period is {self.bound}")
        self._sums = np.array([total, squares])
