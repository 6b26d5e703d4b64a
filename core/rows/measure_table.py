"""The measures of a row: one table, from which everything that enumerates measures is computed.

`MEASURE_TABLE` has the measures in the order of a row's columns: those of scores, then those of decisions.
From the table come the names and places of measures (`slots`), the columns of rows, which measures are
computed by default, which of two values is better, and the words of reports and documentation.
`python -m tests.support.pages.written` writes what must stand in files: the fields of named tuples, the names
in `slots`, and the schemas. The definitions are in docs/architecture/math.md.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from .reasons import (
    CHANCE_IS_CERTAIN,
    CONSTANT_SCORES,
    DEGENERATE,
    EMPTY_MARGIN,
    MAJORITY_IS_RIGHT,
    NO_BLOCK,
    NO_NEGATIVES,
    NO_POSITIVES,
    NO_PREDICTED_POSITIVES,
    NO_REFERENCE,
    NOTHING_TO_AVERAGE,
    ONE_CLASS,
    PERSISTENT_IS_RIGHT,
    REFERENCE_GROWS,
    TOO_FEW,
)

POSITIVE_CLASS: Literal["positive class"] = "positive class"
PROBABILITIES: Literal["probabilities"] = "probabilities"
EVIDENCE: Literal["evidence"] = "evidence"


class Measure(NamedTuple):
    """One measure, or a column that describes the content of a window.

    name        the name of its column
    label       its name for people
    family      "ranking", "probability" and "evidence" are of scores, "decision" is of predicted classes;
                "window": the content of a window
    digits      "rank" (3 decimals: the AUC and its interval), "share" (4 decimals), "score" (5 significant
                digits) or "count" (whole numbers)
    better      "higher" or "lower", the better of two values; "" where neither is
    needs       what must be given, else the measure is null. POSITIVE_CLASS: labels of which one class is
                positive, so the measure is null in the row of all classes. PROBABILITIES: scores that are
                probabilities. EVIDENCE: a bound of the AUC; events have no weights, and models one score
    reasons     why the measure is null or needs care although it was asked for, codes of `REASONS`. Beside
                them every measure may have NO_POSITIVE_CLASS, by `needs`, and OUT_OF_RANGE
    beside      the measure with which the column is always asked for, such as "auc" of "auc_low"
    reads       what the measure reads at each row: "entries" (distinct scores) cost O(k) a row, the "hull"
                O(hull). Such a measure is computed only if asked for. Empty: the window keeps it current
    parameters  the settings on which its value depends, and which are its own
    interval    how its interval is made, in the columns NAME_low and NAME_high: "delong"; "" without interval
    by_itself   whether the better value is good by itself, so that pages say which is better. False: always
                predicting one class makes it perfect, or it grows with the window
    about       its meaning, for readers
    """

    name: str
    label: str
    family: Literal["ranking", "probability", "evidence", "decision", "window"]
    digits: Literal["rank", "share", "score", "count"]
    better: Literal["higher", "lower", ""]
    about: str
    needs: tuple[Literal["positive class", "probabilities", "evidence"], ...] = ()
    reasons: tuple[int, ...] = ()
    beside: str = ""
    reads: tuple[Literal["entries", "hull"], ...] = ()
    parameters: tuple[str, ...] = ()
    interval: Literal["delong", ""] = ""
    by_itself: bool = True


MEASURE_TABLE = (
    Measure("auc", "AUC", "ranking", "rank", "higher",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,), interval="delong",
        about="The share of pairs of one positive and one negative event in which the positive one has the "
        "higher score, a tie counting one half: 1 is a perfect ranking, 0.5 is what chance gives."),
    Measure("auc_low", "AUC low", "ranking", "rank", "",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS, TOO_FEW, DEGENERATE), beside="auc",
        about="The lower end of DeLong's confidence interval of the AUC: how far the AUC of other events "
        "of the same kind could well lie below the one that was seen."),
    Measure("auc_high", "AUC high", "ranking", "rank", "",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS, TOO_FEW), beside="auc",
        about="The upper end of the same interval; it is null where a class has fewer than two events, and "
        "says little where the ranking is perfect."),
    Measure("h", "H-measure", "ranking", "share", "higher", needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,),
        about="How much of the loss that the best constant decision suffers is avoided when the threshold "
        "is chosen well, averaged over the same distribution of costs for every model: 0 is no better than "
        "a constant, 1 is perfect."),
    Measure("ks", "KS", "ranking", "share", "higher", needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,),
        about="The greatest difference, over all thresholds, between the share of positives and the share "
        "of negatives that score at or above the threshold (Youden's J, the Kolmogorov-Smirnov statistic)."),
    Measure("ks_threshold", "KS threshold", "ranking", "score", "",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,), beside="ks",
        about="The score at which that greatest difference is attained; the largest one where several "
        "attain it."),
    Measure("brier", "Brier score", "probability", "share", "lower", needs=(POSITIVE_CLASS, PROBABILITIES),
        about="The mean squared difference between the predicted probability and what happened (1 or 0): 0 "
        "is perfect, and always saying one half gives 0.25."),
    Measure("log_loss", "Log loss", "probability", "share", "lower", needs=(POSITIVE_CLASS, PROBABILITIES),
        about="The mean of -ln of the probability that was given to what happened: 0 is perfect, always "
        "saying one half gives 0.693, and being sure and wrong is punished most."),
    Measure("tpr_at_fpr", "TPR at a fixed FPR", "ranking", "share", "higher",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,), parameters=("at_fpr",),
        about="The share of positives that is found when only a fixed small share of the negatives may be "
        "flagged (1% unless --at-fpr said otherwise), interpolated linearly along the ROC curve."),
    Measure("cost_threshold", "Cost threshold", "ranking", "score", "",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,), parameters=("false_positive_cost",),
        about="The smallest score to act on so that expected costs are least, for the stated cost of a "
        "false positive (--false-positive-cost, 0.2 unless said otherwise); infinite where no score is "
        "worth it."),
    Measure("aum", "AUM", "ranking", "score", "lower", needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,),
        about="The area under the smaller of false positives and false negatives over all thresholds, in "
        "events times units of the score: 0 when some threshold separates the classes, but for constant "
        "scores, too, and more the larger the window and the scale of the scores are, so compare it only "
        "where both are the same."),
    Measure("cost_curve_area", "Area under the cost curve", "ranking", "share", "lower",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,), reads=("hull",),
        about="The expected loss when costs are spread evenly and both classes weigh the same, with the "
        "best threshold for every cost: 0 is perfect, 0.25 is what a constant decision gives."),
    Measure("average_precision", "Average precision", "ranking", "share", "higher",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,), reads=("entries",),
        about="The precision averaged over the positives, each taken at its own score as the threshold; "
        "chance gives about the share of positives, so compare it only at the same prevalence."),
    Measure("calibration_error", "Calibration error", "probability", "share", "lower",
        needs=(POSITIVE_CLASS, PROBABILITIES), reasons=(ONE_CLASS,), reads=("entries", "hull"),
        about="How far the predicted probabilities lie from the shares of positives that the isotonic "
        "calibration finds at the same scores, on average over the events: 0 means that they can be taken "
        "at their word."),
    Measure("partial_auc", "Partial AUC", "ranking", "share", "higher",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,), parameters=("partial_fpr",), reads=("entries",),
        about="The area under the ROC curve over a range of false positive rates alone (up to 10% unless "
        "said otherwise): at most the width of the range, so compare it only where the range is the same."),
    Measure("partial_auc_mcclish", "Partial AUC, standardised", "ranking", "share", "higher",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS,), parameters=("partial_fpr",), reads=("entries",),
        about="The same area on McClish's scale, which takes the width of the range out: 1 is perfect "
        "within the range and 0.5 is what chance gives there."),
    Measure("polynomial_auc", "Polynomial AUC", "ranking", "share", "higher",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS, CONSTANT_SCORES), reads=("entries",),
        about="The AUC with a polynomial of degree 30 in place of the step from wrong to right, on the "
        "range of the window's scores: what one pass over any number of events gives; read it with its "
        "bound."),
    Measure("polynomial_auc_bound", "Polynomial AUC, bound", "ranking", "share", "",
        needs=(POSITIVE_CLASS,), reasons=(ONE_CLASS, CONSTANT_SCORES),
        beside="polynomial_auc", reads=("entries",),
        about="How far the polynomial AUC can be from the AUC, certified; wide where scores crowd in a "
        "corner of their range, which an outlier is enough for."),
    Measure("evidence", "Evidence", "evidence", "score", "",
        needs=(POSITIVE_CLASS, EVIDENCE), reasons=(NO_BLOCK, REFERENCE_GROWS, NO_REFERENCE),
        about="How much speaks for an AUC below --evidence-below, over all events of the model: the "
        "natural logarithm of an e-detector, which reaches log(N) after N blocks or more in the mean while "
        "the AUC is not below, such as 13.8 for a million blocks."),
    Measure("evidence_since", "Evidence since", "evidence", "count", "",
        needs=(POSITIVE_CLASS, EVIDENCE), reasons=(NO_BLOCK, REFERENCE_GROWS, NO_REFERENCE),
        about="About how many events of the model came before the evidence began to grow: an estimate of "
        "when the AUC fell."),
    Measure("block_events", "Events of a block", "evidence", "score", "",
        needs=(POSITIVE_CLASS, EVIDENCE), reasons=(NO_BLOCK, REFERENCE_GROWS, NO_REFERENCE),
        about="How many events a block of evidence has in the mean, since each block has --evidence-blocks "
        "positives and negatives or more."),
    Measure("evidence_bound", "Bound of evidence", "evidence", "share", "",
        needs=(POSITIVE_CLASS, EVIDENCE), reasons=(NO_BLOCK, REFERENCE_GROWS, NO_REFERENCE),
        about="The AUC that the model must have, of --evidence-below: a number, or what a period of the "
        "stream gave."),
    Measure("tp", "True positives", "decision", "count", "higher", needs=(POSITIVE_CLASS,), by_itself=False,
        about="Positive events that were predicted positive: those with a score at or above the threshold "
        "(0.5 unless --threshold said otherwise), or of the predicted class where predictions were given."),
    Measure("fp", "False positives", "decision", "count", "lower", needs=(POSITIVE_CLASS,), by_itself=False,
        about="Negative events that were predicted positive."),
    Measure("tn", "True negatives", "decision", "count", "higher", needs=(POSITIVE_CLASS,), by_itself=False,
        about="Negative events that were predicted negative."),
    Measure("fn", "False negatives", "decision", "count", "lower", needs=(POSITIVE_CLASS,), by_itself=False,
        about="Positive events that were predicted negative."),
    Measure("accuracy", "Accuracy", "decision", "share", "higher",
        about="The share of events that were predicted right; where one class is rare, predicting always "
        "the other one scores high, so read it beside kappa-m."),
    Measure("precision", "Precision", "decision", "share", "higher",
        needs=(POSITIVE_CLASS,), reasons=(NO_PREDICTED_POSITIVES,),
        about="Of the events that were predicted positive, the share that is; null where none was."),
    Measure("recall", "Recall", "decision", "share", "higher",
        needs=(POSITIVE_CLASS,), by_itself=False, reasons=(NO_POSITIVES,),
        about="Of the positive events, the share that was predicted positive (the true positive rate)."),
    Measure("specificity", "Specificity", "decision", "share", "higher",
        needs=(POSITIVE_CLASS,), by_itself=False, reasons=(NO_NEGATIVES,),
        about="Of the negative events, the share that was predicted negative (one minus the false positive "
        "rate)."),
    Measure("f1", "F1", "decision", "share", "higher", needs=(POSITIVE_CLASS,), reasons=(NOTHING_TO_AVERAGE,),
        about="The harmonic mean of precision and recall; true negatives do not enter it."),
    Measure("balanced_accuracy", "Balanced accuracy", "decision", "share", "higher", reasons=(ONE_CLASS,),
        about="The plain mean of the classes' recalls: every class counts the same, however rare it is."),
    Measure("g_mean", "G-mean", "decision", "share", "higher", reasons=(ONE_CLASS,),
        about="The geometric mean of the classes' recalls: it is low as soon as one class is missed."),
    Measure("harmonic_mean", "Harmonic mean", "decision", "share", "higher", reasons=(ONE_CLASS,),
        about="The harmonic mean of the classes' recalls, the strictest of the three means."),
    Measure("kappa", "Kappa", "decision", "share", "higher", reasons=(CHANCE_IS_CERTAIN,),
        about="Cohen's kappa: accuracy measured from what chance agreement would give (0) up to no error "
        "(1); below 0 is worse than chance."),
    Measure("kappa_m", "Kappa-m", "decision", "share", "higher", reasons=(MAJORITY_IS_RIGHT,),
        about="Accuracy measured from that of a classifier which always predicts the majority of the "
        "labels before the event in the window (0) up to no error (1): below 0, predicting the majority "
        "would do better."),
    Measure("kappa_per", "Kappa-per", "decision", "share", "higher", reasons=(PERSISTENT_IS_RIGHT,),
        about="Accuracy measured from that of a classifier which repeats the last label (0) up to no error "
        "(1): below 0, repeating would do better, as often where labels come in runs."),
    Measure("mcc", "MCC", "decision", "share", "higher", reasons=(EMPTY_MARGIN,),
        about="Matthews' correlation between predictions and labels: 1 is perfect, 0 no relation, -1 "
        "always wrong; null where one class is never seen or never predicted."),
    Measure("cmd", "CMD", "decision", "count", "higher", needs=(POSITIVE_CLASS,), by_itself=False,
        about="The determinant of the confusion matrix, tp tn - fp fn: above 0 when decisions go with the "
        "labels; it grows with the square of the window, so compare it only between windows of one size."),
)  # fmt: skip
"""Every measure of a row, in column order."""

CLASS_TABLE = (
    Measure("auc_macro", "AUC", "ranking", "rank", "higher", interval="delong",
        about="Of a class: the share of pairs of one event of the class and one other event in which the "
        "event of the class has the higher score of the class, a tie counting one half. Of a model: the "
        "macro AUC, the mean over its classes."),
    Measure("auc_weighted", "Weighted AUC", "ranking", "rank", "higher", interval="delong",
        about="The mean of the AUCs of the classes, each counted by how often the class comes."),
    Measure("auc_m", "M", "ranking", "rank", "higher", interval="delong",
        about="The mean over all pairs of classes of the AUC of the events of the two classes alone, in "
        "both directions (Hand & Till 2001)."),
    Measure("worst_class_auc", "AUC of the worst class", "ranking", "rank", "higher",
        about="The least of the AUCs of the classes."),
    Measure("worst_pair_auc", "AUC of the worst pair", "ranking", "rank", "higher",
        about="The least AUC of two classes: the mean of both directions, of the events of the two classes "
        "alone."),
)  # fmt: skip
"""The means that the row of all classes has of the AUCs of classes and of pairs of classes."""

CONTENT_TABLE = (
    Measure("prevalence", "Prevalence", "window", "share", "",
        about="The share of positives among the events of the window."),
    Measure("positives", "Positives", "window", "count", "",
        about="The positive events in the window (their total weight, where events have weights)."),
    Measure("negatives", "Negatives", "window", "count", "",
        about="The negative events in the window (their total weight, where events have weights)."),
    Measure("window_events", "Events in the window", "window", "count", "",
        about="The number of events that the window holds, on which every measure of the row rests."),
    Measure("weight", "Weight", "window", "count", "",
        about="The total weight of the events in the window; their number, where events have no weights."),
)  # fmt: skip
"""Columns beside the measures that describe the content of a window, in the order of pages."""

MEASURES = tuple(measure.name for measure in MEASURE_TABLE)
"""The names of all measures, in column order."""

RANKING_MEASURES = sum(measure.family != "decision" for measure in MEASURE_TABLE)
"""Number of measures of scores, which come first in `MEASURES`. The other measures are of decisions."""

COSTLY_MEASURES = tuple(measure.name for measure in MEASURE_TABLE if measure.reads)
"""Measures that cost O(k) or O(hull) a row: computed only if asked for by name or by `all`."""

PROBABILITY_MEASURES = tuple(measure.name for measure in MEASURE_TABLE if PROBABILITIES in measure.needs)
"""Measures that have a meaning only if the scores are probabilities."""

EVIDENCE_MEASURES = tuple(measure.name for measure in MEASURE_TABLE if EVIDENCE in measure.needs)
"""Measures of all events so far, not of the window: computed whenever there is a bound of the AUC, and only
then."""

POSITIVE_MEASURES = tuple(measure.name for measure in MEASURE_TABLE if POSITIVE_CLASS in measure.needs)
"""Measures that are null where no class is positive, as in the row of all classes."""
