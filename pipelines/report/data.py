"""The page's data: rows and curves, packed by column, and thinned only where they are too many.

A column is 8-byte little-endian floats with shuffled bytes (all first bytes, then all second bytes, ...),
gzipped and in base64. The page unpacks a column when it first needs the column. On the demo's rows, shuffling
takes 0.79 of the bytes of plain gzip for whole numbers, and 0.97 for fractions.

`MEANINGS` is the meaning of every measure for readers: a name, a sentence, and the format of its numbers. The
module core/rows/measure_table.py has the words. docs/architecture/math.md has the exact definitions.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import FloatArray, Int64Array
from ...core.rows.columns import measure_of, reasons_by_measure
from ...core.rows.curves import RESOLUTION, points_kept
from ...core.rows.measure_table import CLASS_TABLE, CONTENT_TABLE, MEASURE_TABLE, MEASURES, Measure
from ..words import counted
from .classes.page_classes import CLASS, CLASS_NUMBERS
from .report_rows import ReportRows, floats

HEADLINES = ("auc", "h", "ks", "kappa_m")
"""The measures whose extremes are kept where a report holds fewer rows than it was given."""

GROUPS = {
    "ranking": "How well scores rank",
    "probability": "Scores as probabilities",
    "decision": "Decisions at the threshold",
    "window": "What the window holds",
}

CONTEXT = tuple(column.name for column in CONTENT_TABLE)
"""Columns beside the measures that describe the content of a window."""


class Meaning(NamedTuple):
    """The presentation of one column.

    label     the column's name for people
    group     one of `GROUPS`
    digits    "rank" (3 decimals: the AUC and its interval), "share" (4 decimals), "score" (5 significant
              digits) or "count" (whole numbers)
    better    "higher", "lower", or "" where neither direction is better by itself: always predicting one
              class makes the recall of that class perfect
    sentence  the column's meaning
    """

    label: str
    group: str
    digits: str
    better: str
    sentence: str


def _meaning(measure: Measure) -> Meaning:
    group = "ranking" if measure.family == "evidence" else measure.family
    better = measure.better if measure.by_itself else ""
    return Meaning(measure.label, group, measure.digits, better, measure.about)


_FAMILIES = ("ranking", "probability", "evidence", "decision")

MEANINGS = {
    measure.name: _meaning(measure)
    for measure in (
        *sorted(MEASURE_TABLE, key=lambda measure: _FAMILIES.index(measure.family)),
        *CONTENT_TABLE,
    )
}
"""Meanings by column, in the order of pages: measures by family, then what a window holds."""

_OF_CLASSES = {measure.name: _meaning(measure) for measure in CLASS_TABLE}
CLASS_MEANINGS = {"auc": _OF_CLASSES.pop("auc_macro"), **_OF_CLASSES}
"""Meanings of the columns that models with classes have beside others, and of `auc` there."""

ROW_WORDS = {
    "due": "The point of the grid of times that the row was made for (--every with a duration): its window "
    "is that of this moment, and where nothing changed since the row before there is no row.",
    "drift": "An adaptive window shrank since the row before, because its signal had changed: what was older "
    "than the change was dropped, out of every measure.",
}
"""The meanings of a row's other columns, each in a sentence."""

DRAWN = tuple(name for name in (*MEASURES, *CONTEXT) if name not in ("auc_low", "auc_high", "weight"))
"""The columns with a chart of their own; the ends of the interval are the band of the AUC's chart."""


def meanings_of(rows: ReportRows) -> dict[str, Meaning]:
    """Return the meanings of the columns of rows, in the order in which a page shows them."""
    with_values = {}
    for name in filter(measure_of, rows.columns):
        base = MEANINGS[measure_of(name) or name]
        about = f"{base.label} at the value that stands in {name}, in place of the usual value."
        with_values[name] = base._replace(label=f"{base.label} ({name})", sentence=about)
    if rows.classes is None:
        return MEANINGS | with_values
    of_auc = {"auc": CLASS_MEANINGS["auc"]}
    return of_auc | CLASS_MEANINGS | MEANINGS | of_auc | with_values


def drawn_columns(rows: ReportRows) -> tuple[str, ...]:
    """Return the columns of rows that may have a chart of their own; see `DRAWN`."""
    with_values = filter(measure_of, rows.columns)
    if rows.classes is None:
        return (*DRAWN, *with_values)
    first, *others = DRAWN
    return (first, *CLASS_NUMBERS, *others, *with_values)


ROWS_DRAWN = 60_000
"""The most rows of all series that a page holds, apart from first and last rows and those of the worst."""

WORST = 50
"""The number of models, worst first, of which a page holds all rows."""

ROWS_OF_WORST = 120_000
"""The most rows of the worst models that a page holds: of more, some of these are left out, too."""

_CURVE_COLUMNS = ("threshold", "tp", "fp", "on_hull", "block_score")
CURVE_BLOCKS = tuple(f"curve_{name}" for name in _CURVE_COLUMNS)
"""The blocks of the points of curves."""

CURVE_POINTS = 400_000
"""The most points of all curves that a page holds."""

ROWS_EXACT = 70_000
"""The most rows whose fractions a page holds with all their digits."""

_BINARY_DIGITS = 13

_KEPT_OF_BUCKET = 3 * len(HEADLINES) + 1
"""Rows that a run keeps: per headline measure the least, the greatest and the first null; and one drift."""


def packed(values: np.ndarray) -> str:
    """Return numbers of 8 bytes, packed for the page; O(bytes)."""
    return _packed_bytes(shuffled(values))


def shuffled(values: np.ndarray) -> bytes:
    """Return numbers of 8 bytes as their first bytes, then their second bytes, and so on."""
    little = np.ascontiguousarray(values, "<f8")
    return little.view(np.uint8).reshape(-1, 8).T.tobytes()


def packed_text(text: str) -> str:
    """Return text, packed for the page."""
    return _packed_bytes(text.encode())


def _packed_bytes(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode()


def script_json(value: Any) -> str:
    r"""Return JSON that is safe inside a <script>: without "<", which could begin an end tag or a comment.

    >>> script_json({"m": "</script><!--"})
    '{"m":"\\u003c/script>\\u003c!--"}'
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def thinned(rows: ReportRows, worst: Sequence[int] = (), limit: int = ROWS_DRAWN) -> ReportRows:
    """Return all rows of the first WORST of the worst models, and about `limit` rows of the others at most.

    worst  models by their places, worst first; of more than ROWS_OF_WORST rows, the series that come last
           are thinned as others are

    Of each other series the first and the last row stay, and extremes of the rest: the series is cut into
    runs of equally many rows. A run keeps the rows in which a headline measure is least, greatest, or null
    for the first time, and the first row with drift. O(rows).
    """
    n = len(rows)
    if n <= limit:
        return rows
    first, stop = rows.series[:, 2], rows.series[:, 3]
    lengths = stop - first
    place_of = np.full(len(rows.models), WORST)
    place_of[np.array(worst[:WORST], np.int64)] = np.arange(len(worst[:WORST]))
    places = place_of[rows.series[:, 0]]
    order = np.argsort(places, kind="stable")  # the worst first
    whole = places < WORST
    whole[order] &= np.cumsum(lengths[order]) <= ROWS_OF_WORST
    keep = np.repeat(whole, lengths)
    others = n - int(keep.sum())
    keep[first] = keep[stop - 1] = True
    spare = limit - 2 * int((~whole).sum())
    share = np.where(whole, 0, lengths)
    buckets = share * max(spare, 0) // (max(others, 1) * _KEPT_OF_BUCKET)
    offsets = np.repeat(first, stop - first)
    lengths, of = np.repeat(lengths, stop - first), np.repeat(buckets, stop - first)
    inside = np.flatnonzero(of > 0)
    if len(inside):
        place = (inside - offsets[inside]) * of[inside] // lengths[inside]
        fresh = np.append(True, (np.diff(place) != 0) | (np.diff(offsets[inside]) != 0))
        number, starts = np.cumsum(fresh) - 1, np.flatnonzero(fresh)
        wanted = [rows.columns["drift"][inside] == 1]
        for name in HEADLINES:
            values = rows.columns[name][inside]
            wanted += [
                values == np.fmin.reduceat(values, starts)[number],
                values == np.fmax.reduceat(values, starts)[number],
                np.isnan(values),
            ]
        for of_bucket in wanted:
            hits = np.flatnonzero(of_bucket)
            _, once = np.unique(number[hits], return_index=True)
            keep[inside[hits[once]]] = True
    kept, series = np.flatnonzero(keep), rows.series.copy()
    series[:, 2:] = np.searchsorted(kept, series[:, 2:])
    return replace(
        rows,
        series=series,
        columns={name: values[kept] for name, values in rows.columns.items()},
        reason_codes=rows.reason_codes[kept],
        classes=None if rows.classes is None else rows.classes.take(kept),
    )


def rounded(values: FloatArray) -> FloatArray:
    """Return fractions of at most 1 to 2^-13, others to 13 binary digits; whole numbers as they are. O(n).

    >>> rounded(np.array([2 / 3])).tolist(), rounded(np.array([1e9 + 1, np.nan])).tolist()
    ([0.6666259765625], [1000000001.0, nan])
    """
    known = values[np.isfinite(values)]
    if (known == np.rint(known)).all():
        return values
    _, exponent = np.frexp(np.where(np.abs(values) <= 1, 1.0, values))
    unit = np.ldexp(1.0, np.where(np.abs(values) <= 1, 0, exponent) - _BINARY_DIGITS)
    return np.where(np.isfinite(values), np.rint(values / unit) * unit, values)


def row_blocks(rows: ReportRows) -> dict[str, str]:
    """Return the columns with at least one value, and the codes of reasons, packed; by name.

    Of more than ROWS_EXACT rows, fractions are `rounded`: that takes a quarter of the bytes.
    """
    held = rows.held
    exact = len(rows) <= ROWS_EXACT
    blocks = {
        name: packed(values if exact else rounded(values))
        for name, values in rows.columns.items()
        if name in held
    }
    blocks["reason"] = packed(rows.reason_codes.astype(np.float64))
    return blocks


def null_reasons(rows: ReportRows, names: Iterable[str]) -> dict[str, str]:
    """Return the reason of each column that is null in every row, as far as the rows give a reason."""
    first: dict[str, str] = {}
    for text in rows.reasons:
        first = reasons_by_measure(text) | first
    held = rows.held
    return {name: first.get(name, "not asked for") for name in names if name not in held}


def curve_blocks(
    table: pa.Table | None, rows: ReportRows, budget: int = CURVE_POINTS
) -> tuple[list[list[Any]], dict[str, str], str]:
    """Return the list of curves, their packed columns, and a note on the curves that were left out.

    table  the columns of CURVE_SCHEMA; None: no curves

    A curve is [model, slice, seq, time, positives, negatives, first point, points].

    A curve of all points is thinned. Within the budget, whole models precede slices, and later moments
    precede earlier ones. The first curve is always kept. O(points log points).
    """
    if table is None or not table.num_rows:
        return [], {}, ""
    models = {name: at for at, name in enumerate(rows.models)}
    slices: dict[tuple[str, str | None], int] = {}
    if rows.classes is None:
        slices.update(((name, None), at) for at, name in enumerate(rows.slices))
    else:  # only classes have curves
        slices.update(rows.classes.places.items())
    names = ("model", "slice", CLASS, "pane_start", "seq", "config", "point")
    coded = [_codes(table.column(name)) for name in names]
    order = np.lexsort(coded[::-1])
    again = np.all([np.diff(codes[order]) == 0 for codes in coded], axis=0)
    order = order[np.append(True, ~again)]  # a file may be given twice
    *coded, _ = coded
    fresh = np.any([np.diff(codes[order]) != 0 for codes in coded], axis=0)
    starts = np.flatnonzero(np.append(True, fresh))
    order, starts = _thinned(table, order, starts)
    lengths = np.diff(np.append(starts, len(order)))
    heads = _lines(table, order[starts])
    ends = _lines(table, order[starts + lengths - 1])
    configs = {"", *rows.configs}

    def model_of(head: dict[str, Any]) -> int | None:
        """Return the place of a curve's model; None where the rows lack its model, slice, class or config."""
        known = (head["slice"], head[CLASS]) in slices
        if not known or (rows.configs and (head["config"] or "") not in configs):
            return None
        place, _ = rows.shown.get((head["model"], head["config"] or ""), (models.get(head["model"]), 0))
        return place

    places = [model_of(head) for head in heads]
    known = [at for at, place in enumerate(places) if place is not None]
    if not known:
        return [], {}, "The curves given are of none of the models, slices and settings in the rows."

    def rank(at: int) -> tuple[bool, int, str]:
        head = heads[at]
        return head["slice"] != "", -(head["seq"] if head["time"] is None else head["time"]), head["model"]

    ranked = sorted(known, key=rank)
    fitting = int(np.count_nonzero(np.cumsum(lengths[ranked]) <= budget))
    chosen = sorted(ranked[: max(fitting, 1)])
    taken, listed, offset = [], [], 0
    for at in chosen:
        head, end, length = heads[at], ends[at], int(lengths[at])
        listed.append(
            [
                places[at], slices[head["slice"], head[CLASS]], head["seq"], head["time"],
                end["tp"], end["fp"], offset, length,
            ]
        )  # fmt: skip
        taken.append(order[starts[at] : starts[at] + length])
        offset += length
    part = table.take(pa.array(np.concatenate(taken)))
    blocks = {
        block: packed(floats(part.column(name)))
        for name, block in zip(_CURVE_COLUMNS, CURVE_BLOCKS, strict=True)
    }
    notes = []
    if len(listed) < len(known):
        notes.append(
            f"{len(listed):,} of {len(known):,} curves are in this page: whole models first, then the latest "
            "moments."
        )
    if others := len(heads) - len(known):
        notes.append(
            f"{counted(others, 'curve')} of models, slices or settings that the rows do not have "
            f"{'is' if others == 1 else 'are'} left out."
        )
    return listed, blocks, " ".join(notes)


def _thinned(table: pa.Table, order: Int64Array, starts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the rows of points in their order, and where each curve starts, without points too near to show.

    A curve that is thinned already stays as it is.
    """
    tp, fp, on_hull = (floats(table.column(name)) for name in ("tp", "fp", "on_hull"))
    kept = []
    for start, end in pairwise([*starts.tolist(), len(order)]):
        rows = order[start:end]
        many = end - start > 2 * RESOLUTION
        kept.append(rows[points_kept(tp[rows], fp[rows], on_hull[rows] == 1.0)] if many else rows)
    return np.concatenate(kept), np.cumsum([0, *map(len, kept[:-1])])


def _lines(table: pa.Table, places: Int64Array) -> list[dict[str, Any]]:
    """Return rows of a table; a row of a pane without a time has the pane's end as its time.

    Times are microseconds, because Python's datetime cannot hold all of them.
    """
    part = table.take(pa.array(places))
    times = pc.coalesce(*(part.column(name).cast(pa.int64()) for name in ("time", "pane_end")))
    part = part.select(["model", "slice", CLASS, "seq", "tp", "fp", "config"]).append_column("time", times)
    lines: list[dict[str, Any]] = part.to_pylist()
    return lines


def _codes(column: pa.ChunkedArray) -> Int64Array:
    if pa.types.is_string(column.type):
        column = column.combine_chunks().dictionary_encode().indices
    codes: Int64Array = np.asarray(column.cast(pa.int64()).fill_null(-(2**62)), np.int64)
    return codes
