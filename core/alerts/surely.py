"""The conditions `auc surely < 0.8 at 1e6` and `auc surely drops by 0.02 against PERIOD at 1e6`.

Both are about evidence of an AUC below a bound, with few false alarms. The bound of the second condition is
the lower end of the AUC in a period of the stream, less what the AUC may drop (`core/evidence/reference.py`).

The evidence of a row is the logarithm of a sum M (`core/evidence/below.py`). While the AUC is at the bound or
above, M less the number of blocks is a supermartingale.

The promise
    Let 1/alpha = N. A rule has a baseline B, at first 1. It opens an alert at a row with M >= N B. When the
    alert closes, the rule starts again with the baseline max(1, M). While no alert is open, the baseline
    falls with M, but not below 1. So a rule never restarts the detector, and all rules read the same
    evidence.
    - The mean number of blocks until the first false alarm is N or more.
    - Take n blocks behind a row at which the baseline was set, before the baseline falls again. In these
      blocks the rule opens a false alarm with probability (1 + n / B) / N at most.
    So in n blocks a rule has (n + k) / N false alarms at most in the mean, where k is the number of rows at
    which its baseline was set again. k is 0 before the first alarm.
    - For `drops` the promise is conditional on the period. The promise holds while the AUC is not below the
      bound that the period gave. With a chance of 2.5% at most, a period gives a bound that is too high.

The rate
    N is a number of blocks, or follows from a budget of events. Then N is the number of events in which one
    false alarm is allowed, divided by the mean number of events of a block so far. An event counts once for
    its model and once for each slice. Expected false alarms of models add up, however models depend on each
    other.
    The promise for a number of events needs blocks that do not become smaller. While the mean size of
    blocks grows, N falls. Then M reaches N within n blocks with probability n / N at most, with the N of
    block n: the budget's share. If blocks become smaller, N rises too late. In simulations, 1.2 false alarms
    came for each allowed alarm where the share of positives rose from 1% to 50%, and 1.6 where the share rose
    from 0.1%.

An alert closes at the first row at which M has fallen to 1/N of its greatest value while the alert was open:
then the evidence against a low AUC is as strong as the evidence that a rule asks for to open an alert.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from ..errors import ConfigError
from ..settings.evidence import Bound, PeriodBound, checked_bound
from ..settings.windows import number_text

REMEDY_RATE = (
    "say how rare a false alarm must be: at 1e6, which is one in a million blocks, or at 1 per 1000000 events"
)
_BUDGET = re.compile(r"(\S+)\s+per\s+(\S+)(?:\s+events)?")
REMEDY_BUDGET = "give how many false alarms are allowed in how many events, such as 1 per 1000000"


class Figures(NamedTuple):
    """The columns of a row that a rule on evidence reads; NaN stands for null."""

    evidence: float
    evidence_since: float
    block_events: float
    evidence_bound: float


@dataclass(frozen=True)
class Rate:
    """The rate of false alarms of a rule: at most one false alarm in `number` blocks, or events, in the mean.

    number  how many blocks or events there are for one false alarm, above 1
    unit    "blocks" or "events"

    >>> from rocsteady import parse_alert
    >>> parse_alert("auc surely < 0.8 at 5 per 1e6 events").opens.rate
    Rate(number=200000.0, unit='events')
    """

    number: float
    unit: Literal["blocks", "events"] = "blocks"

    def __post_init__(self) -> None:
        number: Any = self.number
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not is_number or not 1 < number < math.inf or self.unit not in ("blocks", "events"):
            raise ConfigError(
                f"one false alarm in {number!r} {self.unit}: give a number above 1, such as 1e6 blocks"
            )
        object.__setattr__(self, "number", float(number))

    def __str__(self) -> str:
        number = number_text(self.number)
        return number if self.unit == "blocks" else f"1 per {number} events"

    def blocks(self, block_events: float) -> float:
        """Return N, the number of blocks for one false alarm; N is 1 or more.

        block_events  the mean number of events of a block
        """
        return self.number if self.unit == "blocks" else max(1.0, self.number / block_events)


@dataclass(frozen=True)
class Surely:
    """A condition on the evidence that the AUC is below a bound.

    bound  the AUC that the model must have: the bound of the rows' evidence. For `drops` a `PeriodBound`
    rate   the rate of false alarms; None if the budget of the job gives the rate

    >>> from rocsteady import parse_alert
    >>> parse_alert("auc surely < 0.8 at 1e6").opens
    Surely(bound=0.8, rate=Rate(number=1000000.0, unit='blocks'))
    """

    bound: Bound
    rate: Rate | None = None
    column: ClassVar[str] = "evidence"
    columns: ClassVar[tuple[str, ...]] = Figures._fields

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", checked_bound(self.bound, "bound"))
        if self.rate is not None and not isinstance(self.rate, Rate):
            raise ConfigError(f"{self.rate!r} is no rate of false alarms; {REMEDY_RATE}")

    def __str__(self) -> str:
        at = "" if self.rate is None else f" at {self.rate}"
        return f"auc surely {self.claim}{at}"

    @property
    def claim(self) -> str:
        """The claim about the AUC that the evidence supports, in the words of a rule."""
        if not isinstance(self.bound, PeriodBound):
            return f"< {number_text(self.bound)}"
        by = f" by {number_text(self.bound.margin)}" if self.bound.margin else ""
        return f"drops{by} against {self.bound.period}"

    def level(self, block_events: float) -> float:
        """Return the logarithm of N: an alert opens if evidence exceeds the baseline by this number.

        block_events  the mean number of events of a block
        """
        assert self.rate is not None
        return math.log(self.rate.blocks(block_events))


def parse_budget(text: str) -> Rate:
    """Read a budget such as `1 per 1000000`: how many false alarms are allowed in how many events.

    Raises ConfigError for any other text.

    >>> parse_budget("5 per 1e6")
    Rate(number=200000.0, unit='events')
    """
    found = _BUDGET.fullmatch(text.strip()) if isinstance(text, str) else None
    try:
        allowed, among = (float(number) for number in found.groups()) if found else (math.nan, math.nan)
    except ValueError:
        allowed = among = math.nan
    if math.isnan(allowed + among):
        raise ConfigError(f"{text!r} is no budget of false alarms; {REMEDY_BUDGET}")
    if not (0 < allowed < math.inf and allowed < among < math.inf):
        raise ConfigError(
            f"{text!r}: both numbers are above 0, and events are more than false alarms; {REMEDY_BUDGET}"
        )
    return Rate(among / allowed, "events")
