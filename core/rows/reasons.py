"""The reasons why a measure is null or needs care: a code and a text for each."""

from __future__ import annotations

OK, ONE_CLASS, DEGENERATE, TOO_FEW, NO_PREDICTED_POSITIVES, NO_POSITIVES, NO_NEGATIVES = range(7)

NO_POSITIVE_CLASS, CHANCE_IS_CERTAIN, MAJORITY_IS_RIGHT, PERSISTENT_IS_RIGHT = range(7, 11)

EMPTY_MARGIN, NOTHING_TO_AVERAGE, OUT_OF_RANGE, CONSTANT_SCORES, NOT_ASKED, NO_BLOCK = range(11, 17)

REFERENCE_GROWS, NO_REFERENCE = range(17, 19)

REASONS = (
    "",
    "one class in window",
    "degenerate interval",
    "fewer than two positives or negatives in window",
    "no predicted positives in window",
    "no positives in window",
    "no negatives in window",
    "no positive class is named",
    "chance agreement is certain",
    "the majority classifier makes no error",
    "the persistent classifier makes no error",
    "one class in the labels or in the predictions",
    "no positives and no predicted positives in window",
    "the numbers are beyond what a float holds",
    "constant scores in window",
    "",
    "no block of positives and negatives is full yet",
    "no event has come after the reference period yet",
    "the reference period has too few events",
)
"""The reasons why a measure is null or needs care, by code. The texts of OK and NOT_ASKED are empty.

Readers of rows may compare these texts, so no text is ever changed. No text holds a colon, a comma or a
semicolon.
"""
