"""The rows that a page shows while a stream goes on.

Each row once, all of the newest rows, and fewer of the older rows.

A history holds rows of one kind: rows of measures, roll-up rows, or rows of pairs (`HeldKind`).

Thinning
    The rows of a series (such as a model, its settings and a slice) are numbered 0, 1, 2, ... as they come.
    If the history would hold more than `most` rows, it keeps of each series the newest N rows, every second
    of the N rows before these, every fourth of the 2 N rows before those, and so on: `is_kept`. So the
    distance between kept rows grows with their age, and a series of R rows keeps about N + N/2 log2(R / N). N
    is halved until three quarters of `most` suffice. The first row of every series stays. Values are never
    changed or averaged.

Invariant
    `table` holds each row at most once. Within an epoch it only grows at its end, and the rows of a series
    stand in the order of their panes and ordinals. So a reader that has the first n rows of an epoch needs
    only the rows behind these. A new epoch begins if this would not hold: rows were thinned, a row came late,
    or a model, a slice, settings or a text of `reason` is new.

Memory: about 550 bytes a row, and 100 bytes a series.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import BoolArray, Int64Array
from ...core.rows.arrow import CLASS_ROW_SCHEMA, ROW_SCHEMA
from ...transforms.sinks.kinds import PAIR_SCHEMA, ROLL_UP_SCHEMA

ROWS_HELD = 100_000
"""The most rows of a history, unless the user says otherwise."""

ROWS_OF_SERIES = 20
"""The least number of rows that stay of a series of a million rows: the history holds `most` / 20 series at
most.
"""

NEWEST = 1 << 14
"""The first value of N."""

_NULL = np.iinfo(np.int64).min


class HeldKind(NamedTuple):
    """A kind of rows that a history holds.

    series    the columns of texts that name a row's series
    compared  the columns in which two rows of one identity are compared
    """

    schema: pa.Schema
    series: tuple[str, ...]
    compared: tuple[str, ...]


ROWS = HeldKind(ROW_SCHEMA, ("model", "config", "slice"), ("seq", "time", "auc", "tp"))
CLASS_ROWS = HeldKind(CLASS_ROW_SCHEMA, (*ROWS.series, "class"), (*ROWS.compared, "auc_macro", "auc_m"))
ROLL_UPS = HeldKind(ROLL_UP_SCHEMA, ("group", "config"), ("due", "members", "auc_mean"))
PAIRS = HeldKind(PAIR_SCHEMA, ("model", "against", "config", "slice"), ("seq", "time", "difference"))


def is_kept(numbers: Int64Array, counts: Int64Array, newest: int) -> BoolArray:
    """Return which rows the thinning keeps. O(rows).

    numbers  the number of each row in its series
    counts   the number of rows that came of its series

    >>> np.flatnonzero(is_kept(np.arange(20), np.full(20, 20), 4)).tolist()
    [0, 4, 8, 12, 14, 16, 17, 18, 19]
    """
    _, level = np.frexp((counts - 1 - numbers) // newest)
    kept: BoolArray = numbers & ((np.int64(1) << level.astype(np.int64)) - 1) == 0
    return kept


class History:
    """The rows of a stream, in bounded memory.

    most       how many rows are held at the most
    epoch      the number of the epoch
    newest     N, the number of newest rows of a series that the last thinning kept without a gap; None before
               the first thinning
    came       the number of rows that came, repeats left out
    differing  the number of rows whose identity came before with other values; the first row stays
    beyond     the number of rows in series beyond the most that are held; these rows are left out
    """

    def __init__(self, most: int = ROWS_HELD, kind: HeldKind = ROWS) -> None:
        self.most = most
        self._most_series = max(1, most // ROWS_OF_SERIES)
        self._kind = kind
        self._schema = pa.schema([column.with_nullable(True) for column in kind.schema])
        self._places: dict[tuple[str, ...], int] = {}
        self._reasons: set[str | None] = {None}
        self._last = np.full((0, 3), _NULL)
        self._counts = np.zeros(0, np.int64)
        self._table = self._schema.empty_table()
        self._of = np.zeros(0, np.int64)
        self._keys = np.zeros((0, 3), np.int64)
        self._numbers = np.zeros(0, np.int64)
        self.epoch = 0
        self.newest: int | None = None
        self.came = self.differing = self.beyond = 0

    def __len__(self) -> int:
        return len(self._of)

    @property
    def kind(self) -> HeldKind:
        """The kind of the rows."""
        return self._kind

    @property
    def table(self) -> pa.Table:
        """The rows held, with the columns of the kind."""
        return self._table

    @property
    def series(self) -> list[tuple[str, ...]]:
        """The texts that name each series, such as (model, config, slice), in the order of their places."""
        return [*self._places]

    @property
    def series_of_rows(self) -> Int64Array:
        """For each row of `table`, the place of its series in `series`."""
        return self._of

    def add(self, table: pa.Table) -> None:
        """Add rows, with the columns of the kind. O(rows log rows); O(history) if a row came late."""
        if not table.num_rows:
            return
        of = self._series_of(table)
        if (known := of >= 0).sum() < len(of):
            self.beyond += int((~known).sum())
            table, of = table.filter(pa.array(known)), of[known]
        keys = _keys_of(table)
        order = np.lexsort((*keys.T[::-1], of))
        table, of, keys = table.take(pa.array(order)), of[order], keys[order]
        self._add_sorted(table.select(self._schema.names).cast(self._schema), of, keys)
        if len(self) > self.most:
            self._thin()

    def _series_of(self, table: pa.Table) -> Int64Array:
        """Return the place of the series of each row; -1 if the series is beyond the most."""
        codes = [_coded(table.column(name)) for name in self._kind.series]
        whole = np.zeros(table.num_rows, np.int64)
        for code, texts in codes:
            whole = whole * (len(texts) + 1) + code
        _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
        places = np.full(len(first), -1)
        before = len(self._places)
        for at in np.argsort(first):  # in the order in which the series came
            key = tuple(texts[code[first[at]]] for code, texts in codes)
            if key not in self._places and len(self._places) < self._most_series:
                self._places[key] = len(self._places)
            places[at] = self._places.get(key, -1)
        if new := len(self._places) - before:
            self._last = np.concatenate([self._last, np.full((new, 3), _NULL)])
            self._counts = np.append(self._counts, np.zeros(new, np.int64))
            self._begin_epoch()
        found: Int64Array = places[inverse.reshape(-1)]
        return found

    def _add_sorted(self, table: pa.Table, of: Int64Array, keys: Int64Array) -> None:
        same = (of[1:] == of[:-1]) & (keys[1:] == keys[:-1]).all(axis=1)
        fresh = np.append(True, ~same)
        if not fresh.all():
            first = np.flatnonzero(same)
            self.differing += _differing(table, first, first + 1, self._kind.compared)
            table, of, keys = table.filter(pa.array(fresh)), of[fresh], keys[fresh]
        late = ~_after(keys, self._last[of])
        if late.any():
            late &= ~self._repeated(table, of, keys, late)
            fresh = _after(keys, self._last[of]) | late
            late = late[fresh]
            table, of, keys = table.filter(pa.array(fresh)), of[fresh], keys[fresh]
        if not len(of):
            return
        starts = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
        sizes = np.diff(np.append(starts, len(of)))
        numbers = self._counts[of] + np.arange(len(of)) - np.repeat(starts, sizes)
        self._counts[of[starts]] += sizes
        ends = starts + sizes - 1
        ends = ends[~late[ends]]
        self._last[of[ends]] = keys[ends]
        self.came += len(of)
        reasons = set(table.column("reason").unique().to_pylist())
        anew = bool(late.any()) or not reasons <= self._reasons
        self._reasons |= reasons
        self._table = pa.concat_tables([self._table, table])
        self._of = np.append(self._of, of)
        self._keys = np.concatenate([self._keys, keys])
        self._numbers = np.append(self._numbers, numbers)
        if self._table.column(0).num_chunks > _CHUNKS:
            self._table = self._table.combine_chunks()
        if anew:
            self._begin_epoch()

    def _repeated(self, table: pa.Table, of: Int64Array, keys: Int64Array, late: BoolArray) -> BoolArray:
        """Return which of the late rows repeat a row that is held or was thinned away.

        Count the repeats whose values differ.
        """
        repeated = np.zeros(len(of), np.bool_)
        at = np.flatnonzero(late)
        held = len(self._of)
        both = np.column_stack([np.append(self._of, of[at]), np.concatenate([self._keys, keys[at]])])
        order = np.lexsort(both.T[::-1])  # the sort is stable, so the row that is held comes first
        same = (both[order][1:] == both[order][:-1]).all(axis=1)
        first, second = order[:-1][same], order[1:][same] - held
        repeated[at[second]] = True
        one, other = self._table.take(pa.array(first)), table.take(pa.array(at[second]))
        both, place = pa.concat_tables([one, other]), np.arange(len(first))
        self.differing += _differing(both, place, place + len(first), self._kind.compared)
        if self.newest is not None:  # a late row cannot be told from a repeat of a row that was thinned away
            oldest = np.full(len(self._counts), held)
            ages = self._counts[self._of] - 1 - self._numbers
            whole = np.flatnonzero(ages < self.newest)[::-1]
            oldest[self._of[whole]] = whole
            rest = at[~repeated[at]]
            rest = rest[oldest[of[rest]] < held]
            repeated[rest] = _after(self._keys[oldest[of[rest]]], keys[rest])
        return repeated

    def _thin(self) -> None:
        newest = self.newest or NEWEST
        counts = self._counts[self._of]
        while (kept := is_kept(self._numbers, counts, newest)).sum() > 0.75 * self.most and newest > 1:
            newest //= 2
        self.newest = newest
        self._keep(np.flatnonzero(kept))
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        """Begin an epoch, with the rows in the order of series, panes and ordinals."""
        self.epoch += 1
        order = np.lexsort((*self._keys.T[::-1], self._of))
        if (np.diff(order) != 1).any():
            self._keep(order)

    def _keep(self, places: Int64Array) -> None:
        self._table = self._table.take(pa.array(places)).combine_chunks()
        self._of, self._keys, self._numbers = self._of[places], self._keys[places], self._numbers[places]


_CHUNKS = 200


def _coded(column: pa.ChunkedArray) -> tuple[Int64Array, list[str]]:
    """Return texts as places in a list; null is ""."""
    found = column.cast(pa.string()).combine_chunks().fill_null("").dictionary_encode()
    return found.indices.to_numpy().astype(np.int64), found.dictionary.to_pylist()


def _keys_of(table: pa.Table) -> Int64Array:
    """Return pane_start, pane_end and the ordinal of each row; a row without an ordinal has its `seq`."""
    row, seq = (
        table.column(name).cast(pa.int64()).combine_chunks()
        for name in ("row", "seq" if "seq" in table.column_names else "row")
    )
    columns = [
        table.column("pane_start").cast(pa.int64()).combine_chunks().fill_null(_NULL),
        table.column("pane_end").cast(pa.int64()).combine_chunks().fill_null(_NULL),
        pc.coalesce(row, seq).fill_null(0),
    ]
    return np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1)


def _after(keys: Int64Array, others: Int64Array) -> BoolArray:
    """Return, for each place, whether the key is behind the other key."""
    later = np.zeros(len(keys), np.bool_)
    for place in range(keys.shape[1] - 1, -1, -1):
        one, other = keys[:, place], others[:, place]
        later = (one > other) | ((one == other) & later)
    return later


def _differing(table: pa.Table, first: Int64Array, second: Int64Array, names: Sequence[str]) -> int:
    """Return how many of the pairs of rows differ in the columns `names`."""
    differs = np.zeros(len(first), np.bool_)
    for name in names:
        column = table.column(name)
        column = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        values = column.cast(pa.float64()).to_numpy()
        one, other = values[first], values[second]
        differs |= (one != other) & ~(np.isnan(one) & np.isnan(other))
    return int(differs.sum())
