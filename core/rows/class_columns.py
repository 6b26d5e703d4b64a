"""The further columns of rows whose model has more than two classes.

A model has a row of all its classes, whose `class` is null, and a row of each class. The row of all classes
has the means of the classes' AUCs; the row of a class has the measures of the class against all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from ..arrays import FloatArray, Int32Array, Int64Array
from .columns import COLUMNS


class ClassMeans(NamedTuple):
    """The measures that a row gives for all classes together. None stands for null, and `reason` says why.

    The row of a model has all columns but `pair_aucs`, and the row of a class has `pair_aucs` alone.

    auc_macro, auc_macro_low, auc_macro_high
                     the mean of the AUCs of each class against all others, and its interval
    auc_weighted, auc_weighted_low, auc_weighted_high
                     the mean by the classes' masses
    auc_m, auc_m_low, auc_m_high
                     the mean over pairs of classes of the AUC of their events alone, in both directions (Hand
                     & Till 2001)
    worst_class      the class with the least AUC, the first if several have the same
    worst_class_auc  the AUC of the worst class
    worst_pair       the two classes that are told apart worst, in alphabetical order, such as "cat|dog"
    worst_pair_auc   the mean of the AUCs in both directions of the worst pair
    classes          the names of the classes, in the order of the scores
    classes_absent   the classes without an event in the window: the means leave these classes out
    pair_aucs        for each class, in the order of `classes`: the AUC of the row's class against the events
                     of the other class alone, by the score of the row's class. Null for the row's class
                     itself, and where one of the two classes has no event. The list is null with one class,
                     with more than 100 classes, and where an event may be of several classes
    reason           why a value is None, or is to be read with care; None if there is no remark
    """

    auc_macro: float | None = None
    auc_macro_low: float | None = None
    auc_macro_high: float | None = None
    auc_weighted: float | None = None
    auc_weighted_low: float | None = None
    auc_weighted_high: float | None = None
    auc_m: float | None = None
    auc_m_low: float | None = None
    auc_m_high: float | None = None
    worst_class: str | None = None
    worst_class_auc: float | None = None
    worst_pair: str | None = None
    worst_pair_auc: float | None = None
    classes: tuple[str, ...] | None = None
    classes_absent: tuple[str, ...] | None = None
    pair_aucs: tuple[float | None, ...] | None = None
    reason: str | None = None


MEANS_COLUMNS = ClassMeans._fields[:-1]
"""The columns of `ClassMeans`, in the order in which rows have them, without `reason`: the reason of the
means joins the reason of the row.
"""

MEANS_NUMBERS = tuple(name for name, hint in get_type_hints(ClassMeans).items() if hint == float | None)
"""The columns among `MEANS_COLUMNS` that hold numbers."""

_PLACE = COLUMNS.index("drift")

CLASS_ROW_COLUMNS = (*COLUMNS[:2], "class", *COLUMNS[2:_PLACE], *MEANS_COLUMNS, *COLUMNS[_PLACE:])
"""Every column of a row of a model with classes, in the order in which sinks write them. In Python the column
`class` is named `class_`.
"""

MOST_PAIRED = 100
"""The most classes with which the row of a class has the AUC against each other class."""

NO_MEANS = ClassMeans()
"""The means of a row without means: all are null, without a reason."""


def as_numbers(values: Iterable[Any]) -> FloatArray:
    """Return values of one column as numbers: a list becomes its length; NaN stands for null.

    O(n), in Python.
    """
    return np.array([len(each) if isinstance(each, tuple) else each for each in values], np.float64)


@dataclass(frozen=True, eq=False)
class ClassColumns:
    """The class of each of n rows, and the means of each row over all classes.

    names  the names of the classes
    codes  int32[n], the number of the class of each row; -1 for the row of all classes
    means  the means of each row over all classes
    """

    names: tuple[str, ...]
    codes: Int32Array
    means: Sequence[ClassMeans]

    @classmethod
    def concat(cls, parts: Sequence[ClassColumns]) -> ClassColumns:
        """Concatenate the columns of several groups of rows, of one model or of several models."""
        places: dict[str, int] = {}
        tables = [
            np.array([*(places.setdefault(name, len(places)) for name in part.names), -1], np.int32)
            for part in parts
        ]
        codes = [table[part.codes] for table, part in zip(tables, parts, strict=True)]
        return cls(tuple(places), np.concatenate(codes), [each for part in parts for each in part.means])

    def part(self, places: slice | Int64Array) -> ClassColumns:
        """Return the columns of some of the rows."""
        numbers = np.arange(len(self.codes))[places]
        return ClassColumns(self.names, self.codes[places], [self.means[at] for at in numbers.tolist()])

    def numbers(self, index: int) -> FloatArray:
        """Return the means of a row over all classes, in the order of `MEANS_NUMBERS`.

        NaN stands for null.
        """
        means = self.means[index]
        return np.array([getattr(means, name) for name in MEANS_NUMBERS], np.float64)

    def number(self, name: str) -> FloatArray:
        """Return a column of `ClassMeans` as numbers, where a list becomes its length; NaN stands for null.

        O(rows), in Python.
        """
        return as_numbers(getattr(means, name) for means in self.means)

    def name(self, index: int) -> str | None:
        """Return the name of the class of a row; None if the row is the row of all classes."""
        code = int(self.codes[index])
        return None if code < 0 else self.names[code]

    def reason(self, index: int, reason: str | None) -> str | None:
        """Return the reason of a row, followed by the reason of its means."""
        return "; ".join(text for text in (reason, self.means[index].reason) if text) or None
