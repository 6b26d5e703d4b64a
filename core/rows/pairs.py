"""The row of a pair of models, and the reasons for which a value of the row is null."""

from __future__ import annotations

from typing import NamedTuple

from .columns import COLUMNS

BETTER, WORSE, UNDECIDED, CONTRADICTED = "better", "worse", "undecided", "contradicted"

NO_PAIRS = "no instance in window was scored by both models"
ONE_CLASS = "one class in window"
TOO_FEW = "fewer than two of a class in window"
NO_VARIANCE = "the difference of placements has no variance in window"
FEW_SO_FAR = "fewer than 30 instances of a class so far"
EMPTY = "no difference lies in all intervals so far, so the difference has changed"


class PairRow(NamedTuple):
    """The row of a model and another model, `against`, over the instances that both models scored.

    Times are microseconds UTC.

    (model, against, slice, pane, row) is its identity. None stands for null, and `reason` says why.

    model, against  the names of both models
    slice           "" for all instances, else such as "country=NZ"
    row             the number of the row among those of its pair, slice and pane, from 0
    seq             how many instances both models have scored so far
    time            the greatest event time of these instances; None without event times
    due             the point of the grid of times at which the row is due; None for rows that are not on a
                    grid
    pane_start, pane_end
                    the Beam window, if the input is windowed
    window_events   how many instances the window holds
    window_start, window_end
                    the least and the greatest event time in the window; None without event times
    positives, negatives
                    the masses of the classes in the window
    auc, auc_against
                    the AUC of each model over the window's instances
    difference      auc - auc_against
    difference_low, difference_high
                    DeLong's interval of the difference, for this window alone
    p               the two-sided p-value of the hypothesis that there is no difference, for a single look at
                    this window
    anytime_low, anytime_high
                    an interval of the difference over all instances since the beginning; all such intervals
                    hold together, in all rows (`core/pairs/anytime.py`)
    verdict         "better" or "worse" as soon as the last interval lies above 0 or below 0, else
                    "undecided"; "contradicted" as soon as the intervals have no value in common
    anytime_events  the number of instances that this interval is about
    anytime_blocks  the number of blocks in which these instances are: in one block, all pairs of instances
                    count exactly
    only_model, only_against
                    how many instances so far only the model, or only the other model, has scored
    reason          why values are None, or need care; None if there is no remark
    config          a hash of the settings that change values
    """

    model: str
    against: str
    slice: str
    row: int
    seq: int
    time: int | None
    due: int | None
    pane_start: int | None
    pane_end: int | None
    window_events: int
    window_start: int | None
    window_end: int | None
    positives: float
    negatives: float
    auc: float | None
    auc_against: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p: float | None
    anytime_low: float | None
    anytime_high: float | None
    verdict: str
    anytime_events: int
    anytime_blocks: int
    only_model: int
    only_against: int
    reason: str | None
    config: str


PAIR_NUMBERS = tuple(name for name in PairRow._fields if name not in (*COLUMNS, "against", "verdict"))
"""The columns of a pair row that hold counts and figures, and that no measure row has."""

_BETWEEN = " against "


def pair_name(model: str, against: str) -> str:
    r"""Return the name of a pair, such as "v2 against v1". Two pairs never have the same name.

    In the name of a model every backslash is doubled, and a backslash stands before each "against".

    >>> pair_name("v2", "v1"), pair_name("for or against", "v1")
    ('v2 against v1', 'for or \\against against v1')
    """
    escaped = (name.replace("\\", "\\\\").replace("against", "\\against") for name in (model, against))
    return _BETWEEN.join(escaped)


def models_of(name: str) -> tuple[str, str]:
    r"""Return the names of the model and of the champion from a pair's name.

    Raises ValueError for any other text.

    >>> models_of("v2 against v1"), models_of("for or \\against against v1")
    (('v2', 'v1'), ('for or against', 'v1'))
    """
    model, against = (
        part.replace("\\against", "against").replace("\\\\", "\\") for part in name.split(_BETWEEN)
    )
    return model, against
