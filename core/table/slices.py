"""SliceNumbers: numbers for (model, slice) of every event, with a bound on how many values have a slice.

Invariant: in each (model, tuple of slice columns) the first `cap` distinct values, in the order in which
events apply, have a slice of their own. All later values share the slice whose values are all `OTHER`
("carrier=other", "carrier=other,origin=other"). So every event counts once in each slice asked for, and the
memory for a column of a million values is bounded. A value that itself is `OTHER` goes to the shared slice.

Values that have a slice keep it. These are the values of the evaluators that exist, so no other state stores
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np

from ..arrays import Int64Array
from ..errors import InputError
from ..events.batch import EventBatch
from ..events.columns import TextColumn
from ..settings.table import OTHER, escape_slice, parse_slice

_GROUPS = 1 << 62  # the numbers of groups stay below this

Make = Callable[[str, str], int]
"""A function that makes an evaluator for a model and a slice, and returns its number."""


def slice_columns(batch: EventBatch, names: Sequence[str]) -> list[TextColumn]:
    """Return some slice columns of a batch. Raises InputError for a column that the batch has not."""
    columns = dict(batch.slices)
    if missing := [name for name in names if name not in columns]:
        raise InputError(
            f"a packet of {batch.source!r} has no slice column {missing[0]!r}; its reader must do so"
        )
    return [columns[name] for name in names]


class SliceNumbers:
    """The numbers of all evaluators, by model and slice.

    cap     how many distinct values of a model and a tuple of slice columns have a slice of their own
    beyond  how many events went to a shared slice because their value came after the cap; an event counts
            once for each slice asked for

    >>> numbers, made = SliceNumbers(1), []
    >>> def make(model, label):
    ...     made.append((model, label))
    ...     return len(made) - 1
    >>> models, carriers = TextColumn.of(["m", "m", "m"]), TextColumn.of(["UA", "DL", "UA"])
    >>> numbers.of(models, ("carrier",), [carriers], make)
    array([0, 1, 0])
    >>> made, numbers.beyond
    ([('m', 'carrier=UA'), ('m', 'carrier=other')], 1)
    """

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.beyond = 0
        self._models: dict[str, int] = {}
        self._of: dict[tuple[str, ...], dict[tuple[str, ...], int]] = {}
        self._own: Counter[tuple[tuple[str, ...], str]] = Counter()

    def add(self, model: str, label: str, number: int) -> bool:
        """Add an existing evaluator; return False if its model and slice already have another evaluator.

        O(label).

        Raises ValueError if `label` is not the name of a slice.
        """
        if not label:
            return self._models.setdefault(model, number) == number
        pairs = parse_slice(label)
        names = tuple(name for name, _ in pairs)
        texts = (model, *(value for _, value in pairs))
        seen = self._of.setdefault(names, {})
        if texts in seen:
            return False
        seen[texts] = number
        self._own[names, model] += not _is_other(texts)
        return True

    def of(
        self, models: TextColumn, names: tuple[str, ...], columns: list[TextColumn], make: Make
    ) -> Int64Array:
        """Return the number of every event's evaluator.

        New evaluators are made by `make`, in the order of the codes of their values.
        """
        if not columns:
            return self._of_models(models, make)
        seen = self._of.setdefault(names, {})
        group = _codes_of_texts(models)
        for column in columns:
            if int(group.max(initial=0)) > _GROUPS // (len(column.values) + 1):
                group = np.unique(group, return_inverse=True)[1].astype(np.int64)
            group = group * (len(column.values) + 1) + _codes_of_texts(column)
        _, first, which, counts = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
        texts_of = [tuple(column[row] or "" for column in (models, *columns)) for row in first.tolist()]
        # the order of the first rows decides which values come before the cap
        for place in np.argsort(first).tolist():
            texts = texts_of[place]
            if texts in seen or _is_other(texts):
                continue
            if self._own[names, texts[0]] < self.cap:
                self._own[names, texts[0]] += 1
            else:
                texts_of[place] = (texts[0], *(OTHER for _ in names))
                self.beyond += int(counts[place])
        for texts in texts_of:
            if texts not in seen:
                seen[texts] = make(texts[0], _label(names, texts[1:]))
        return np.array([seen[texts] for texts in texts_of], np.int64)[which]

    def _of_models(self, models: TextColumn, make: Make) -> Int64Array:
        """Return the numbers of the evaluators of whole models, for each event.

        O(values of the column), and O(1) for each event.
        """
        values, seen = models.values, self._models
        found = np.fromiter(map(seen.get, values, repeat(-1)), np.int64, len(values))
        numbers: Int64Array = found[models.codes]
        if numbers.min() < 0:
            for code in np.unique(models.codes[numbers < 0]).tolist():
                model = values[code]
                if model not in seen:
                    seen[model] = make(model, "")
                found[code] = seen[model]
            numbers = found[models.codes]
        return numbers


def _is_other(texts: tuple[str, ...]) -> bool:
    """Return whether all values of a slice are `OTHER`: then (model, values) is the shared slice."""
    return all(text == OTHER for text in texts[1:])


def _label(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = zip(names, values, strict=True)
    return ",".join(f"{escape_slice(name)}={escape_slice(value)}" for name, value in pairs)


def _codes_of_texts(column: TextColumn) -> Int64Array:
    """Return codes from 0 on, such that equal texts have equal codes.

    A missing text counts as the empty text.
    """
    first = {"": 0}
    table = [first.setdefault(text, entry) for entry, text in enumerate(column.values, 1)]
    return np.array([*table, 0], np.int64)[column.codes]
