"""The section "Pairs of classes": how well each class is told from each other class, as a heatmap.

`class_pairs` gives the facts: the AUCs of pairs (`pair_aucs` of the rows of classes) at the moments of each
model and slice. The page's script draws one moment of one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ....core.arrays import FloatArray, Int64Array
from ...words import counted
from ..classes.page_classes import PageClasses
from ..report_rows import ReportRows

CELLS = 400_000
"""The most AUCs of pairs that a page holds: 4,000 moments of 10 classes, or 40 of 100 classes."""

WORST_PAIRS = 12
"""The number of pairs that the table shows at first, and that the HTML itself holds."""

_DIGITS = 4


class PairLine(NamedTuple):
    """Two classes, as texts: the mean AUC of both directions, and of each direction."""

    one: str
    other: str
    mean: str
    by_one: str
    by_other: str


class ClassPairs(NamedTuple):
    """The facts of the section.

    about   what the section shows and what it leaves out, in sentences
    title   whose pairs the lines are
    lines   the worst pairs of the newest moment of the first model
    chart   what the script draws: lists of class names, and `series`, each with its model, its slice, the
            place of its classes in `names`, and its moments, oldest first: [seq, time, AUCs row by row]. AUCs
            are whole numbers of 1 / 10,000, and null
    """

    about: str
    title: str
    lines: list[PairLine]
    chart: dict[str, Any]


class _Moment(NamedTuple):
    """One row of a model, or of a slice of it, whose classes have AUCs of pairs.

    age      0: the newest of its series, 1: the one before, and so on
    row      of the model
    classes  the rows of its classes, in the order of the classes
    """

    age: int
    row: int
    classes: Int64Array


def class_pairs(rows: ReportRows, models: Sequence[int]) -> ClassPairs | None:
    """Return the facts of the section; None where no row has AUCs of pairs. O(rows of classes).

    models  the models of the page, by their places, worst first
    """
    if rows.classes is None:
        return None
    order = {model: place for place, model in enumerate(models)}
    found = {
        (order.get(model, len(order)), rows.slices[part], model, part): moments
        for (model, part), moments in _moments(rows, rows.classes).items()
    }
    ranked = sorted(
        ((moment.age, key[1] != "", key, moment) for key, moments in found.items() for moment in moments),
        key=lambda item: (item[0], item[1], item[2]),
    )
    if not ranked:
        return None
    sizes = np.cumsum([len(moment.classes) ** 2 for *_, moment in ranked])
    fitting = max(1, int(np.count_nonzero(sizes <= CELLS)))
    lists = _Lists(rows.classes.table)
    names: dict[tuple[str, ...], int] = {}
    series: dict[Any, dict[str, Any]] = {}
    for *_, key, moment in ranked[:fitting]:
        classes = tuple(rows.classes.means(moment.row)["classes"])
        place = names.setdefault(classes, len(names))
        one = series.setdefault(
            (key, place), {"model": key[2], "slice": key[3], "names": place, "moments": []}
        )
        seq, time = (float(rows.columns[name][moment.row]) for name in ("seq", "time"))
        aucs = lists.matrix(moment.classes)
        one["moments"].insert(0, [int(seq), None if math.isnan(time) else time, _whole(aucs)])
    (_, _, key, first), known = ranked[0], [*names]
    about = "Rows and columns are classes."
    if fitting < len(ranked):
        about += (
            f" {fitting:,} of {counted(len(ranked), 'moment')} are in this page: the newest of every model "
            "and slice first."
        )
    title = ", ".join(filter(None, (rows.models[key[2]], key[1])))
    chart = {"names": [list(each) for each in known], "series": [series[each] for each in sorted(series)]}
    return ClassPairs(about, title, _lines(lists.matrix(first.classes), known[0]), chart)


def _moments(rows: ReportRows, classes: PageClasses) -> dict[tuple[int, int], list[_Moment]]:
    """Return by model and slice its moments, newest first."""
    has_pairs = np.asarray(classes.table.column("pair_aucs").is_valid())
    places = {name: place for place, name in enumerate(rows.slices)}
    of_class: dict[tuple[int, int], list[tuple[str, int, int]]] = {}
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    for model, part, first, stop in rows.series.tolist():
        if part in classes.parts:
            base, name = classes.parts[part]
            of_class.setdefault((model, base), []).append((name, first, stop))
        else:
            spans[model, part] = first, stop
    found: dict[tuple[int, int], list[_Moment]] = {}
    for key, parts in of_class.items():
        if key not in spans or key[1] not in places.values():
            continue
        known: dict[tuple[float, ...], dict[str, int]] = {}
        for name, first, stop in parts:
            for row in (first + np.flatnonzero(has_pairs[first:stop])).tolist():
                known.setdefault(_moment_of(rows, row), {})[name] = row
        moments: list[_Moment] = []
        for row in range(spans[key][1] - 1, spans[key][0] - 1, -1):
            of_names = known.get(_moment_of(rows, row))
            if not of_names:
                continue
            wanted = classes.means(row)["classes"] or []
            if all(name in of_names for name in wanted):
                moments.append(_Moment(len(moments), row, np.array([of_names[name] for name in wanted])))
        if moments:
            found[key] = moments
    return found


def _moment_of(rows: ReportRows, row: int) -> tuple[float, float, float]:
    pane, number, seq = (float(rows.columns[name][row]) for name in ("pane_start", "row", "seq"))
    return 0.0 if math.isnan(pane) else pane, number, seq


class _Lists:
    """The column of lists of AUCs, of which some are read."""

    def __init__(self, table: pa.Table) -> None:
        column = table.column("pair_aucs")
        whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        self._offsets = np.asarray(whole.offsets, np.int64)
        self._values = whole.values.to_numpy(zero_copy_only=False).astype(np.float64)

    def matrix(self, rows: Int64Array) -> FloatArray:
        """Return the lists of n rows as a matrix, n times n; NaN stands for null."""
        n = len(rows)
        starts = self._offsets[rows]
        if (self._offsets[rows + 1] - starts != n).any():
            return np.full((n, n), np.nan)
        found: FloatArray = self._values[starts[:, np.newaxis] + np.arange(n)]
        return found


def _whole(aucs: FloatArray) -> list[int | None]:
    return [
        None if math.isnan(value) else int(value) for value in np.round(aucs.ravel() * 10**_DIGITS).tolist()
    ]


def _lines(aucs: FloatArray, names: Sequence[str]) -> list[PairLine]:
    """Return the worst pairs of a matrix as texts."""
    one, other = np.triu_indices(len(names), 1)
    means = (aucs[one, other] + aucs[other, one]) / 2
    order = [place for place in np.argsort(means, kind="stable").tolist() if not math.isnan(means[place])]
    return [
        PairLine(names[i], names[j], f"{means[place]:.3f}", f"{aucs[i, j]:.3f}", f"{aucs[j, i]:.3f}")
        for place in order[:WORST_PAIRS]
        for i, j in ((int(one[place]), int(other[place])),)
    ]
