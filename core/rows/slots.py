"""The place of each number in a row.

The numbers of a row are its masses (`WEIGHT` to `PREVALENCE`), then its measures, from `MEASURES` on. The
slots of measures are places in `numbers[MEASURES:]` and in the reasons of a row. `python -m
tests.support.pages.written` writes their names.
"""

from __future__ import annotations

from .columns import MASS_COLUMNS
from .measure_table import MEASURE_TABLE, POSITIVE_CLASS
from .reasons import ONE_CLASS

MEASURES = len(MASS_COLUMNS)
"""The place of the first measure, behind the masses."""

WEIGHT, POSITIVES, NEGATIVES, PREVALENCE = range(MEASURES)

# <slots>
(
    AUC, AUC_LOW, AUC_HIGH, H, KS, KS_THRESHOLD, BRIER, LOG_LOSS, TPR_AT_FPR, COST_THRESHOLD, AUM,
    COST_CURVE_AREA, AVERAGE_PRECISION, CALIBRATION_ERROR, PARTIAL_AUC, PARTIAL_AUC_MCCLISH, POLYNOMIAL_AUC,
    POLYNOMIAL_AUC_BOUND, EVIDENCE, EVIDENCE_SINCE, BLOCK_EVENTS, EVIDENCE_BOUND, TP, FP, TN, FN, ACCURACY,
    PRECISION, RECALL, SPECIFICITY, F1, BALANCED_ACCURACY, G_MEAN, HARMONIC_MEAN, KAPPA, KAPPA_M, KAPPA_PER,
    MCC, CMD,
) = range(39)  # fmt: skip
# </slots>

RANKED = tuple(
    place
    for place, measure in enumerate(MEASURE_TABLE)
    if measure.family != "decision" and ONE_CLASS in measure.reasons
)
"""Measures of scores that are null in a window of one class."""

BINARY = tuple(
    place
    for place, measure in enumerate(MEASURE_TABLE)
    if measure.family == "decision" and POSITIVE_CLASS in measure.needs
)
"""Measures of decisions that need a positive class."""
