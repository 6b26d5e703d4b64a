"""The classes of a page's rows: each class is shown like a slice of its model.

The row of a model stands under its own name, and its AUC on the page is the macro AUC. The row of a class
stands under the name of a slice, such as `class=cat`, or `region=EU,class=cat` for a class in a slice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....core.arrays import FloatArray, Int64Array
from ....core.fleet.roll_up_settings import columns_of
from ....core.rows.class_columns import MEANS_COLUMNS
from ....core.settings.table import escape_slice

CLASS = "class"
"""The column that names the class of a row."""

CLASS_NUMBERS = ("auc_weighted", "auc_m", "worst_class_auc", "worst_pair_auc")
"""The columns of numbers that the row of a model has beside those of other rows."""

AS_AUC = {"auc": "auc_macro", "auc_low": "auc_macro_low", "auc_high": "auc_macro_high"}
"""The columns that are the AUC of the row of a model, and its interval, by the names that a page uses."""


@dataclass(frozen=True)
class PageClasses:
    """The classes of n rows.

    parts  by the place of a slice of the page that is a class: the place of the slice in which the class is,
           and the class's name. The place of the whole model is that of the slice ""
    label  the column in the names of classes, such as `class` in `class=cat`
    places by the name of a slice and the name of a class: the place of that class among the page's slices
    table  n rows, in the order of the page's rows: the columns of rows of classes
    """

    label: str
    parts: Mapping[int, tuple[int, str]]
    places: Mapping[tuple[str, str], int]
    table: pa.Table

    def take(self, places: Int64Array) -> PageClasses:
        """Return the classes of some rows."""
        return replace(self, table=self.table.take(pa.array(places)))

    def means(self, row: int) -> dict[str, Any]:
        """Return the columns of a row of a model: its macro AUC, M, worst class and so on, by name."""
        found: dict[str, Any] = self.table.slice(row, 1).to_pylist()[0]
        return found

    def number_of_classes(self) -> int:
        """Return how many classes have rows."""
        return len({name for _, name in self.parts.values()})


def label_beside(slices: Iterable[str]) -> str:
    """Return the column in the names of classes: one by which no slice is made."""
    columns = {column for one in slices for column in columns_of(one)}
    label = CLASS
    while label in columns:
        label = f"scored {label}"
    return label


def slice_of(slice_: str, name: str | None, label: str = CLASS) -> str:
    """Return the name under which a class in a slice is shown; None: the slice itself.

    >>> slice_of("a=1", "x"), slice_of("", None)
    ('a=1,class=x', '')
    """
    return ",".join(filter(None, (slice_, None if name is None else f"{label}={escape_slice(name)}")))


def slices_with_classes(
    slices: pa.ChunkedArray, classes: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, dict[str, tuple[str, str]]]:
    """Return the name under which each row is shown; and by the names of classes, the slice and the class.

    slices   the slice of each row, without null
    classes  the class of each row; null: the row is of the model

    Where events are sliced by a column `class`, classes of scores are named by `scored class`.

    >>> names, parts = slices_with_classes(
    ...     pa.chunked_array([["", "", "a=1"]]), pa.chunked_array([["x", None, "x"]])
    ... )
    >>> names.to_pylist(), parts
    (['class=x', '', 'a=1,class=x'], {'class=x': ('', 'x'), 'a=1,class=x': ('a=1', 'x')})
    """
    there = pa.table({"slice": slices, CLASS: classes}).group_by(["slice", CLASS]).aggregate([]).to_pylist()
    label = label_beside({line["slice"] for line in there})
    names = {name: slice_of("", name, label) for name in {line[CLASS] for line in there} if name is not None}
    parts = {
        slice_of(line["slice"], line[CLASS], label): (line["slice"], line[CLASS])
        for line in there
        if line[CLASS] is not None
    }
    known = pa.array([*names], pa.string())
    shown = pa.array([*names.values()], pa.string()).take(pc.index_in(classes, known).combine_chunks())
    comma = pc.if_else(pc.equal(slices, ""), "", ",")
    named = pc.binary_join_element_wise(slices, comma, pa.chunked_array([shown]), "")
    return pc.if_else(pc.is_null(classes), slices, named), parts


def in_order(
    slices: Sequence[str], parts: Mapping[str, tuple[str, str]], classes: pa.ChunkedArray
) -> tuple[Int64Array, list[str]]:
    """Return the new place of each name, and the names in order: classes in that of the lists of names.

    parts    by the names of classes, the slice and the class
    classes  the lists of rows; of several lists, the classes of the first come first

    >>> places, names = in_order(
    ...     ["", "b=1", "x=10", "x=2"],
    ...     {"x=10": ("", "10"), "x=2": ("", "2")},
    ...     pa.chunked_array([[["2", "10"]]]),
    ... )
    >>> places.tolist(), names
    ([0, 3, 2, 1], ['', 'x=2', 'x=10', 'b=1'])
    """
    ranks = {name: rank for rank, name in enumerate(pc.list_flatten(classes).unique().to_pylist())}

    def rank(place: int) -> tuple[str, int, str]:
        of, one = parts.get(slices[place], (slices[place], None))
        return of, -1 if one is None else ranks.get(one, len(ranks)), one or ""

    order = sorted(range(len(slices)), key=rank)
    places = np.empty(len(slices), np.int64)
    places[order] = np.arange(len(slices))
    return places, [slices[place] for place in order]


def class_part(table: pa.Table) -> pa.Table:
    """Return the columns of rows that a page shows of classes."""
    return table.select([CLASS, *MEANS_COLUMNS])


def rarest(
    columns: Mapping[str, FloatArray], of_model: slice, of_classes: Sequence[slice]
) -> FloatArray | None:
    """Return for each row of a model the events of the rarest class; NaN: not known. None without classes.

    A class has as many rows as the model, unless some of its rows were left out.
    """
    if not of_classes:
        return None
    size = of_model.stop - of_model.start
    least = np.full(size, np.nan)
    identity = np.stack([np.nan_to_num(columns[name][of_model], nan=-1) for name in _IDENTITY])
    places: dict[tuple[float, ...], int] = {}
    for rows in of_classes:
        rarer = np.fmin(columns["positives"][rows], columns["negatives"][rows])
        own = np.stack([np.nan_to_num(columns[name][rows], nan=-1) for name in _IDENTITY])
        if own.shape == identity.shape and (own == identity).all():
            least = np.fmin(least, rarer)
            continue
        places = places or {key: place for place, key in enumerate(_keys(identity))}
        for key, value in zip(_keys(own), rarer.tolist(), strict=True):
            if (place := places.get(key)) is not None:
                least[place] = np.fmin(least[place], value)
    return least


_IDENTITY = ("pane_start", "row")


def _keys(identity: FloatArray) -> Iterable[tuple[float, ...]]:
    return map(tuple, identity.T.tolist())


def in_words(text: str) -> str:
    """Return what a verdict lacks, in the words of models with classes.

    >>> in_words("fewer than 30 positives or negatives in the latest window")
    'fewer than 30 events of a class in the latest window'
    """
    return text.replace("positives or negatives", "events of a class")


def worst_text(name: str | None, value: float | None) -> str:
    """Write a class, or a pair of classes, with its AUC; "" for none."""
    return "" if name is None or value is None or math.isnan(value) else f"{name} {value:.3f}"
