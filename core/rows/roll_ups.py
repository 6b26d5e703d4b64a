"""The record of a roll-up row: the measures of the rows of a group of models or slices at one moment."""

from __future__ import annotations

from typing import NamedTuple

from .display import figures

ALL_MODELS = "models"
"""The name of the group of all models, and the word by which a user asks for this group."""


class RollUpRow(NamedTuple):
    """One roll-up row: a group of models, or of the slices of a model, at one grid point.

    None stands for null.

    (group, class_, pane, row) is its identity: a sink that gets a row twice keeps one copy. Times are
    microseconds UTC. `core.fleet.formulas` defines the numbers. In tables `class_` is the column `class`.

    group            "models", a pattern of models such as "team1/*", or "model=NAME,slice=COLUMN"
    class_           for models with a score of each class, the class whose rows are rolled up; None for the
                     rows of all classes, whose AUC is `auc_macro`, or of models with one score
    row              the number of the row among those of its group and pane, from 0
    due              the point of the grid of times
    pane_start, pane_end
                     the Beam window of the rows, if the input is windowed
    members          how many models or slices count: a member counts if its AUC has an interval with a width
    members_silent   how many of these `members` have no row at `due`: their last row counts
    members_without  how many models or slices do not count
    without_reason   the commonest reason why a member does not count
    auc_mean, auc_mean_low, auc_mean_high
                     the mean of the members' AUC, and its interval at the confidence of the rows
    auc_by_events, auc_by_events_low, auc_by_events_high
                     the mean with the members' events as weights
    auc_random, auc_random_low, auc_random_high
                     the mean with 1 / (variance + tau2) as weights, for AUCs that differ between members.
                     This mean needs two members; its interval is null for members that may depend on each
                     other
    heterogeneity_q, heterogeneity_p
                     Cochran's Q, and the probability of a greater Q if all members have one AUC
    i2               the share of the spread between members that is not chance
    tau2             the variance of the AUC between members
    worst, best      the member with the AUC furthest below, or above, the mean of the others
    worst_auc, best_auc
                     the AUC of this member
    worst_gap, best_gap
                     the AUC of this member less the inverse-variance mean of the others
    worst_gap_low, worst_gap_high, best_gap_low, best_gap_high
                     the interval of this gap, corrected for the number of members
    worst_p, best_p  the p-value of this gap, corrected for the number of members (Holm)
    members_below, members_above
                     how many members are below, and above, the mean of the others by the corrected p-value
    members_surely_below, surely_below
                     how many members have evidence of an AUC below their bound (e-BH: of those named, at most
                     the share 1 - confidence is wrong in the mean), and their names, joined by ", "; null
                     without `evidence` in the members' rows (`evaluate --evidence-below`)
    auc_low_decile, auc_median
                     the quantiles 0.1 and 0.5 of the members' AUCs
    intervals        "independent" if intervals hold for members that share no events; "dependent" if
                     intervals hold for any members
    reason           why columns are null, or need care; None if there is no remark
    config           the hash of the settings of the members' rows
    """

    group: str
    class_: str | None
    row: int
    due: int
    pane_start: int | None
    pane_end: int | None
    members: int
    members_silent: int
    members_without: int
    without_reason: str | None
    auc_mean: float | None
    auc_mean_low: float | None
    auc_mean_high: float | None
    auc_by_events: float | None
    auc_by_events_low: float | None
    auc_by_events_high: float | None
    auc_random: float | None
    auc_random_low: float | None
    auc_random_high: float | None
    heterogeneity_q: float | None
    heterogeneity_p: float | None
    i2: float | None
    tau2: float | None
    worst: str | None
    worst_auc: float | None
    worst_gap: float | None
    worst_gap_low: float | None
    worst_gap_high: float | None
    worst_p: float | None
    best: str | None
    best_auc: float | None
    best_gap: float | None
    best_gap_low: float | None
    best_gap_high: float | None
    best_p: float | None
    members_below: int | None
    members_above: int | None
    members_surely_below: int | None
    surely_below: str | None
    auc_low_decile: float | None
    auc_median: float | None
    intervals: str
    reason: str | None
    config: str

    def __repr__(self) -> str:
        names = [name for name in self._fields if name not in ("group", "reason", "config", "class_")]
        parts = [f"group={self.group!r}"]
        parts += [f"class_={self.class_!r}"] * (self.class_ is not None)
        parts += [f"{name}={text}" for name, text in figures(self, names)]
        if self.reason is not None:
            parts.append(f"reason={self.reason!r}")
        return f"RollUpRow({', '.join(parts)})"


_TEXTS = (
    "group",
    "without_reason",
    "worst",
    "best",
    "surely_below",
    "intervals",
    "reason",
    "config",
    "class_",
)
_PLACES = ("row", "due", "pane_start", "pane_end")

GROUP_NUMBERS = tuple(name for name in RollUpRow._fields if name not in (*_TEXTS, *_PLACES))
"""The columns of a roll-up row that hold counts and measures. No column of a measure row has such a name."""
