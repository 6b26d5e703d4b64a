"""The means over all classes that a row of a model has, from the figures of its window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..rows.class_columns import MEANS_COLUMNS, NO_MEANS, ClassMeans
from ..rows.columns import reason_clauses
from ..rows.reasons import DEGENERATE, ONE_CLASS, REASONS
from .class_settings import ClassSettings
from .figures import ClassFigures
from .values import FIGURES, values_of_line

NO_EVENTS = "no events in window"
NO_DIVISION = "no class has both members and others in window"
ABSENT = "over the classes with events in window"
TOO_FEW = "fewer than two events of a class in window"
SEVERAL_LABELS = "events may have several labels"

_MEANS = ("auc_macro", "auc_weighted", "auc_m")
_FIGURES = MEANS_COLUMNS[: MEANS_COLUMNS.index("classes")]
_OF_PAIRS = ("auc_m", "auc_m_low", "auc_m_high", "worst_pair", "worst_pair_auc")


def means_of(settings: ClassSettings, found: ClassFigures | None, counts: Int64Array) -> ClassMeans:
    """Return the means of a window.

    found   the figures of the window
    counts  how many events the window holds of each class
    """
    names = settings.classes
    absent = tuple(name for name, count in zip(names, counts.tolist(), strict=True) if not count)
    blank = ClassMeans(classes=names, classes_absent=absent)
    if found is None:
        reason = NO_EVENTS if len(absent) == len(names) else REASONS[ONE_CLASS]
        if settings.multi_label:  # the window may hold events without any label
            reason = NO_DIVISION
        return blank._replace(reason=reason_clauses(dict.fromkeys(_FIGURES, reason)))
    values = found.values
    known: dict[str, Any] = {}
    why = dict.fromkeys(MEANS_COLUMNS, "")
    for number, (name, value) in enumerate(
        zip(_MEANS, (values.macro, values.weighted, values.m), strict=True)
    ):
        known[name] = value
        if len(found.classes) < len(names):
            why[name] = ABSENT
        if not settings.intervals:
            continue
        if found.variances is None:
            why[f"{name}_low"] = why[f"{name}_high"] = TOO_FEW
            continue
        half_width = settings.z * math.sqrt(found.variances[number])
        known[f"{name}_low"] = max(0.0, value - half_width)
        known[f"{name}_high"] = min(1.0, value + half_width)
        if half_width == 0.0:
            why[f"{name}_low"] = REASONS[DEGENERATE]
    pair = None
    if values.worst_pair is not None:
        pair = "|".join(sorted(names[int(found.classes[place])] for place in values.worst_pair))
    known["worst_pair_auc"] = values.worst_pair_auc
    if settings.multi_label:
        known.update(dict.fromkeys((name for name in _OF_PAIRS if name != "worst_pair"), None))
        why.update(dict.fromkeys(_OF_PAIRS, SEVERAL_LABELS))
        if not settings.intervals:
            why["auc_m_low"] = why["auc_m_high"] = ""
    return blank._replace(
        **known,
        worst_class=names[int(found.classes[values.worst_class])],
        worst_class_auc=values.worst_class_auc,
        worst_pair=pair,
        reason=reason_clauses(why),
    )


def means_of_rows(
    settings: ClassSettings, found: ClassFigures | None, counts: Int64Array
) -> list[ClassMeans]:
    """Return the means for the row of a model and, behind it, for the row of each class; see `means_of`."""
    of_model = means_of(settings, found, counts)
    if not settings.class_rows:
        return [of_model]
    if not settings.says_pairs:
        return [of_model, *[NO_MEANS] * len(settings.classes)]
    pair_aucs = np.full((len(settings.classes),) * 2, np.nan)
    if found is not None:
        pair_aucs[np.ix_(found.classes, found.classes)] = found.values.pair_aucs
        np.fill_diagonal(pair_aucs, np.nan)
    of_classes = (tuple(None if value != value else value for value in line) for line in pair_aucs.tolist())
    return [of_model, *(ClassMeans(pair_aucs=line) for line in of_classes)]


class MeansOfLines(Sequence[ClassMeans]):
    """The means of many rows; the means of a row are made when they are asked for.

    lines  what `write_means_now` wrote, a line for each row
    """

    def __init__(self, settings: ClassSettings, lines: FloatArray) -> None:
        self._settings, self._lines = settings, lines

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> ClassMeans: ...

    @overload
    def __getitem__(self, index: slice) -> MeansOfLines: ...

    def __getitem__(self, index: int | slice) -> ClassMeans | MeansOfLines:
        if isinstance(index, slice):
            return MeansOfLines(self._settings, self._lines[index])
        line = self._lines[index]
        counts = line[FIGURES:].astype(np.int64)
        values = values_of_line(line)
        found = None if values is None else ClassFigures(np.flatnonzero(counts), values, None)
        return means_of(self._settings, found, counts)
