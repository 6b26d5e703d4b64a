"""The meaning of every measure for readers: a name, a sentence, and the format of its numbers.

The sentences are those of the report's glossary. docs/math.md has the exact definitions.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.settings.measure_names import MEASURES

HEADLINES = ("auc", "h", "ks", "kappa_m")
"""The measures whose extremes are kept where a report holds fewer rows than it was given."""

GROUPS = {
    "ranking": "How well scores rank",
    "probability": "Scores as probabilities",
    "decision": "Decisions at the threshold",
    "window": "What the window holds",
}

CONTEXT = ("prevalence", "positives", "negatives", "window_events", "weight")
"""Columns beside the measures that describe the content of a window."""


class Meaning(NamedTuple):
    """The presentation of one column.

    label     the column's name for people
    group     one of `GROUPS`
    digits    "share" (4 decimals), "score" (5 significant digits) or "count" (whole numbers)
    better    "higher", "lower", or "" where neither direction is better by itself: always predicting one
              class makes the recall of that class perfect
    sentence  the column's meaning
    """

    label: str
    group: str
    digits: str
    better: str
    sentence: str


MEANINGS: dict[str, Meaning] = {
    "auc": Meaning("AUC", "ranking", "share", "higher",
        "The share of pairs of one positive and one negative event in which the positive one has the higher "
        "score, a tie counting one half: 1 is a perfect ranking, 0.5 is what chance gives.",
    ),
    "auc_low": Meaning("AUC low", "ranking", "share", "",
        "The lower end of DeLong's confidence interval of the AUC: how far the AUC of other events of the "
        "same kind could well lie below the one that was seen.",
    ),
    "auc_high": Meaning("AUC high", "ranking", "share", "",
        "The upper end of the same interval; it is null where a class has fewer than two events, and says "
        "little where the ranking is perfect.",
    ),
    "h": Meaning("H-measure", "ranking", "share", "higher",
        "How much of the loss that the best constant decision suffers is avoided when the threshold is "
        "chosen well, averaged over the same distribution of costs for every model: 0 is no better than a "
        "constant, 1 is perfect.",
    ),
    "ks": Meaning("KS", "ranking", "share", "higher",
        "The greatest difference, over all thresholds, between the share of positives and the share of "
        "negatives that score at or above the threshold (Youden's J, the Kolmogorov-Smirnov statistic).",
    ),
    "ks_threshold": Meaning("KS threshold", "ranking", "score", "",
        "The score at which that greatest difference is attained; the largest one where several attain it.",
    ),
    "tpr_at_fpr": Meaning("TPR at a fixed FPR", "ranking", "share", "higher",
        "The share of positives that is found when only a fixed small share of the negatives may be flagged "
        "(1% unless --at-fpr said otherwise), interpolated linearly along the ROC curve.",
    ),
    "cost_threshold": Meaning("Cost threshold", "ranking", "score", "",
        "The smallest score to act on so that expected costs are least, for the stated cost of a false "
        "positive (--false-positive-cost, 0.2 unless said otherwise); infinite where no score is worth it.",
    ),
    "aum": Meaning("AUM", "ranking", "score", "lower",
        "The area under the smaller of false positives and false negatives over all thresholds, in events "
        "times units of the score: 0 when some threshold separates the classes, but for constant scores, "
        "too, and more the larger the window and the scale of the scores are, so compare it only where both "
        "are the same.",
    ),
    "cost_curve_area": Meaning("Area under the cost curve", "ranking", "share", "lower",
        "The expected loss when costs are spread evenly and both classes weigh the same, with the best "
        "threshold for every cost: 0 is perfect, 0.25 is what a constant decision gives.",
    ),
    "average_precision": Meaning("Average precision", "ranking", "share", "higher",
        "The precision averaged over the positives, each taken at its own score as the threshold; chance "
        "gives about the share of positives, so compare it only at the same prevalence.",
    ),
    "partial_auc": Meaning("Partial AUC", "ranking", "share", "higher",
        "The area under the ROC curve over a range of false positive rates alone (up to 10% unless said "
        "otherwise): at most the width of the range, so compare it only where the range is the same.",
    ),
    "partial_auc_mcclish": Meaning("Partial AUC, standardised", "ranking", "share", "higher",
        "The same area on McClish's scale, which takes the width of the range out: 1 is perfect within the "
        "range and 0.5 is what chance gives there.",
    ),
    "polynomial_auc": Meaning("Polynomial AUC", "ranking", "share", "higher",
        "The AUC with a polynomial of degree 30 in place of the step from wrong to right, on the range of "
        "the window's scores: what one pass over any number of events gives; read it with its bound.",
    ),
    "polynomial_auc_bound": Meaning("Polynomial AUC, bound", "ranking", "share", "",
        "How far the polynomial AUC can be from the AUC, certified; wide where scores crowd in a corner of "
        "their range, which an outlier is enough for.",
    ),
    "brier": Meaning("Brier score", "probability", "share", "lower",
        "The mean squared difference between the predicted probability and what happened (1 or 0): 0 is "
        "perfect, and always saying one half gives 0.25.",
    ),
    "log_loss": Meaning("Log loss", "probability", "share", "lower",
        "The mean of -ln of the probability that was given to what happened: 0 is perfect, always saying "
        "one half gives 0.693, and being sure and wrong is punished most.",
    ),
    "calibration_error": Meaning("Calibration error", "probability", "share", "lower",
        "How far the predicted probabilities lie from the shares of positives that the isotonic calibration "
        "finds at the same scores, on average over the events: 0 means that they can be taken at their word.",
    ),
    "tp": Meaning("True positives", "decision", "count", "",
        "Positive events that were predicted positive: those with a score at or above the threshold (0.5 "
        "unless --threshold said otherwise), or of the predicted class where predictions were given.",
    ),
    "fp": Meaning("False positives", "decision", "count", "",
        "Negative events that were predicted positive.",
    ),
    "tn": Meaning("True negatives", "decision", "count", "",
        "Negative events that were predicted negative.",
    ),
    "fn": Meaning("False negatives", "decision", "count", "",
        "Positive events that were predicted negative.",
    ),
    "accuracy": Meaning("Accuracy", "decision", "share", "higher",
        "The share of events that were predicted right; where one class is rare, predicting always the "
        "other one scores high, so read it beside kappa-m.",
    ),
    "precision": Meaning("Precision", "decision", "share", "higher",
        "Of the events that were predicted positive, the share that is; null where none was.",
    ),
    "recall": Meaning("Recall", "decision", "share", "",
        "Of the positive events, the share that was predicted positive (the true positive rate).",
    ),
    "specificity": Meaning("Specificity", "decision", "share", "",
        "Of the negative events, the share that was predicted negative (one minus the false positive rate).",
    ),
    "f1": Meaning("F1", "decision", "share", "higher",
        "The harmonic mean of precision and recall; true negatives do not enter it.",
    ),
    "balanced_accuracy": Meaning("Balanced accuracy", "decision", "share", "higher",
        "The plain mean of the classes' recalls: every class counts the same, however rare it is.",
    ),
    "g_mean": Meaning("G-mean", "decision", "share", "higher",
        "The geometric mean of the classes' recalls: it is low as soon as one class is missed.",
    ),
    "harmonic_mean": Meaning("Harmonic mean", "decision", "share", "higher",
        "The harmonic mean of the classes' recalls, the strictest of the three means.",
    ),
    "kappa": Meaning("Kappa", "decision", "share", "higher",
        "Cohen's kappa: accuracy measured from what chance agreement would give (0) up to no error (1); "
        "below 0 is worse than chance.",
    ),
    "kappa_m": Meaning("Kappa-m", "decision", "share", "higher",
        "Accuracy measured from that of a classifier which always predicts the majority of the labels before "
        "the event in the window (0) up to no error (1): below 0, predicting the majority would do better.",
    ),
    "kappa_per": Meaning("Kappa-per", "decision", "share", "higher",
        "Accuracy measured from that of a classifier which repeats the last label (0) up to no error (1): "
        "below 0, repeating would do better, as often where labels come in runs.",
    ),
    "mcc": Meaning("MCC", "decision", "share", "higher",
        "Matthews' correlation between predictions and labels: 1 is perfect, 0 no relation, -1 always wrong; "
        "null where one class is never seen or never predicted.",
    ),
    "cmd": Meaning("CMD", "decision", "count", "",
        "The determinant of the confusion matrix, tp tn - fp fn: above 0 when decisions go with the labels; "
        "it grows with the square of the window, so compare it only between windows of one size.",
    ),
    "prevalence": Meaning("Prevalence", "window", "share", "",
        "The share of positives among the events of the window.",
    ),
    "positives": Meaning("Positives", "window", "count", "",
        "The positive events in the window (their total weight, where events have weights).",
    ),
    "negatives": Meaning("Negatives", "window", "count", "",
        "The negative events in the window (their total weight, where events have weights).",
    ),
    "window_events": Meaning("Events in the window", "window", "count", "",
        "The number of events that the window holds, on which every measure of the row rests.",
    ),
    "weight": Meaning("Weight", "window", "count", "",
        "The total weight of the events in the window; their number, where events have no weights.",
    ),
}  # fmt: skip
"""Meanings by column: every column of `MEASURES`, then of `CONTEXT`."""

ROW_WORDS = {
    "due": "The point of the grid of times that the row was made for (--every with a duration): its window "
    "is that of this moment, and where nothing changed since the row before there is no row.",
    "drift": "An adaptive window shrank since the row before, because its signal had changed: what was older "
    "than the change was dropped, out of every measure.",
}
"""The meanings of a row's other columns, each in a sentence."""

DRAWN = tuple(name for name in (*MEASURES, *CONTEXT) if name not in ("auc_low", "auc_high", "weight"))
"""The columns with a chart of their own; the ends of the interval are the band of the AUC's chart."""
