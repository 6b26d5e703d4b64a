"""The meaning of every measure for readers: a name, a sentence, and the format of its numbers.

The words of the glossary are in page/measures.toml, beside the templates. docs/math.md has the exact
definitions.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
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


_GLOSSARY = Path(__file__).parent / "page" / "measures.toml"
MEANINGS = {name: Meaning(**told) for name, told in tomllib.loads(_GLOSSARY.read_text("utf-8")).items()}
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
