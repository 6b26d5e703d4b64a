"""The names of the measures of a row, and which measures are shown by default."""

from __future__ import annotations

from ..errors import ConfigError

MEASURES = (
    "auc", "auc_low", "auc_high", "h", "ks", "ks_threshold", "brier", "log_loss", "tpr_at_fpr",
    "cost_threshold", "aum", "cost_curve_area", "average_precision", "calibration_error",
    "partial_auc", "partial_auc_mcclish", "polynomial_auc", "polynomial_auc_bound",
    "evidence", "evidence_since", "block_events", "evidence_bound",
    "tp", "fp", "tn", "fn", "accuracy", "precision", "recall", "specificity", "f1",
    "balanced_accuracy", "g_mean", "harmonic_mean", "kappa", "kappa_m", "kappa_per", "mcc", "cmd",
)  # fmt: skip
"""Every measure of a row, in column order."""


RANKING_MEASURES = MEASURES.index("tp")
"""The number of measures of scores, which come first in `MEASURES`. The measures behind them are measures of
decisions.
"""


COSTLY_MEASURES = (
    "cost_curve_area", "average_precision", "calibration_error", "partial_auc", "partial_auc_mcclish",
    "polynomial_auc", "polynomial_auc_bound",
)  # fmt: skip
"""The measures that cost O(k) or O(hull) a row: they are computed only if asked for by name or by `all`."""


PROBABILITY_MEASURES = ("brier", "log_loss", "calibration_error")
"""The measures that have a meaning only if the scores are probabilities."""


EVIDENCE_MEASURES = ("evidence", "evidence_since", "block_events", "evidence_bound")
"""The measures of all events so far, not of the window: they are computed if, and only if, there is a bound
of the AUC.
"""


_COMPANIONS = {
    "auc": ("auc_low", "auc_high"),
    "ks": ("ks_threshold",),
    "polynomial_auc": ("polynomial_auc_bound",),
}


def named_measures(
    asked: tuple[str, ...] | str | None, *, probabilities: bool, evidence: bool = False
) -> tuple[str, ...]:
    """Return the names of the measures that were asked for, in the order of columns.

    Raises ConfigError for an unknown name.

    asked          names, "all", or None for all but `COSTLY_MEASURES`. "auc", "ks" and "polynomial_auc"
                   include the measures that belong to them
    probabilities  whether scores are probabilities; if not, the names of `PROBABILITY_MEASURES` are left out
    evidence       whether there is evidence; if not, the names of `EVIDENCE_MEASURES` are left out, else they
                   are always there
    """
    unfit = (*(() if probabilities else PROBABILITY_MEASURES), *(() if evidence else EVIDENCE_MEASURES))
    if asked is None:
        return tuple(name for name in MEASURES if name not in (*COSTLY_MEASURES, *unfit))
    wanted = {name for name in EVIDENCE_MEASURES if name not in unfit}
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    for name in names:
        if name == "all":
            wanted.update(name for name in MEASURES if name not in unfit)
        elif name not in MEASURES:
            raise ConfigError(f"measure {name!r} is not known; there are {', '.join(MEASURES)}, and all")
        elif name in unfit and name in EVIDENCE_MEASURES:
            raise ConfigError(
                f"measure {name!r} needs the AUC that the model must have: give it with evidence_below=0.8 "
                "(--evidence-below 0.8)"
            )
        elif name in unfit:
            raise ConfigError(
                f"measure {name!r} needs scores that are probabilities: say so with probabilities=True "
                "(--probabilities)"
            )
        else:
            wanted.update((name, *_COMPANIONS.get(name, ())))
    if not names:
        raise ConfigError("measures=(): name at least one, or leave it out for the usual ones")
    return tuple(name for name in MEASURES if name in wanted)
