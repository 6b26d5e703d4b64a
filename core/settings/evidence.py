"""The settings of evidence that a model's AUC is below a bound.

They are the bound, the size of blocks, and the gap between blocks.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass

from ..errors import ConfigError
from .durations import Duration, duration_text, microseconds
from .periods import Period, parse_period
from .windows import number_text

DEFAULT_BLOCKS = 4
MOST_BLOCKS = 100
"""The largest m, the number of positives and of negatives in a block. A bet is at most 1 / (1 - bound), so
evidence of large blocks grows slowly, however low the AUC is.
"""

_BOUNDS = "give the AUC that the model must have, between 0 and 1, both excluded, such as 0.8"
_LESS = " less "


@dataclass(frozen=True)
class PeriodBound:
    """A bound that a period of the stream itself gives: the lower limit of the period's AUC, less a margin.

    period  the events of this period give the AUC that the model must have
    margin  how far below the lower limit the AUC may be: 0 or more, and below 1

    >>> from rocsteady import parse_alert
    >>> str(parse_alert("auc surely drops by 0.02 against 2026-01..2026-02").opens.bound)
    '2026-01-01..2026-02-01 less 0.02'
    """

    period: Period
    margin: float = 0.0

    def __post_init__(self) -> None:
        margin: object = self.margin
        if not isinstance(self.period, Period):
            raise ConfigError(f"{self.period!r} is no period; such as 2026-01-01..2026-02-01")
        if isinstance(margin, bool) or not isinstance(margin, numbers.Real) or not 0.0 <= float(margin) < 1.0:
            raise ConfigError(
                f"{margin!r} less than in {self.period}: give by how much the AUC may drop, a number of 0 or "
                "more and below 1, such as 0.02"
            )
        object.__setattr__(self, "margin", float(margin) + 0.0)

    def __str__(self) -> str:
        less = f"{_LESS}{number_text(self.margin)}" if self.margin else ""
        return f"{self.period}{less}"


Bound = float | PeriodBound
"""The AUC that a model must have: a number, or the rule by which a period gives the number."""


def checked_bound(bound: object, name: str) -> Bound:
    """Return a bound; a text is read as a bound.

    Raises ConfigError, with the name of the setting, for any other value.

    >>> checked_bound("0.8", "bound"), str(checked_bound("2026-01..2026-02 less 0.02", "bound"))
    (0.8, '2026-01-01..2026-02-01 less 0.02')
    """
    if isinstance(bound, PeriodBound):
        return bound
    value = _read(bound, name) if isinstance(bound, str) else bound
    if isinstance(value, PeriodBound):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0.0 < float(value) < 1.0:
        raise ConfigError(f"{name}={bound!r}: {_BOUNDS}, or a period, such as '2026-01..2026-02 less 0.02'")
    return float(value)


def _read(text: str, name: str) -> Bound | None:
    """Return the bound that a text spells; None if the text spells no bound.

    Raises ConfigError for a wrong period.
    """
    period, _, less = text.strip().partition(_LESS)
    try:
        if ".." in period:
            return PeriodBound(parse_period(period.strip()), float(less or 0))
        return float(text)
    except ConfigError as wrong:
        raise ConfigError(f"{name}={text!r}: {wrong}") from None
    except ValueError:
        return None


def bound_text(bound: Bound) -> str:
    """Return the spelling of a bound, which `checked_bound` reads."""
    return str(bound) if isinstance(bound, PeriodBound) else number_text(bound)


def checked_blocks(blocks: object, name: str) -> int:
    """Return m as an int. Raises ConfigError, with the name of the setting, for any other value."""
    is_whole = isinstance(blocks, numbers.Integral) and not isinstance(blocks, bool)
    if not is_whole or not 1 <= int(blocks) <= MOST_BLOCKS:  # type: ignore[call-overload]
        raise ConfigError(
            f"{name}={blocks!r}: a block holds at least so many positives and so many negatives; give a "
            f"whole number from 1 to {MOST_BLOCKS}, such as {DEFAULT_BLOCKS}"
        )
    return int(blocks)  # type: ignore[call-overload, no-any-return]


def checked_gap(gap: Duration | None, name: str) -> int:
    """Return the gap between blocks in microseconds; 0 if the gap is None.

    Raises ConfigError for a wrong duration.

    >>> checked_gap("1h", "gap"), checked_gap(None, "gap")
    (3600000000, 0)
    """
    return 0 if gap is None else microseconds(gap, name)


def checked_evidence(
    bound: object, blocks: object, gap: Duration | None
) -> tuple[Bound | None, int, str | None]:
    """Return the bound, m, and the spelling of the gap between blocks. Raises ConfigError for a wrong value.

    bound  None if there is no evidence, so that another m than the default, or a gap, is refused
    """
    checked = None if bound is None else checked_bound(bound, "evidence_below")
    least = checked_blocks(blocks, "evidence_blocks")
    text = None if gap is None else duration_text(microseconds(gap, "block_gap"))
    for name, value, default in (("evidence_blocks", least, DEFAULT_BLOCKS), ("block_gap", text, None)):
        if checked is None and value != default:
            raise ConfigError(
                f"{name}={value!r}: there is no evidence without the AUC that the model must have; give "
                "evidence_below"
            )
    return checked, least, text


def check_evidence(bound: Bound | None, has_weights: bool, evidence: str, weight: str) -> None:
    """Raise ConfigError if there is evidence and events have weights.

    bound             the AUC that the model must have; None if there is no evidence
    evidence, weight  the names under which the caller's users know the bound and the column of weights
    """
    if bound is not None and has_weights:
        raise ConfigError(
            f"{evidence} with {weight}: nothing is proven about the evidence of weighted events; leave one "
            "of them out"
        )
