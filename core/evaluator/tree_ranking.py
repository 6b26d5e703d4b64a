"""The window in score order by a ScoreTree: one call of a kernel applies a batch and makes its rows."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..arrays import NO_INT64, FloatArray, Int8Array, Int64Array
from ..errors import InputError
from ..measures.at_row import made_at_row, write_at_row
from ..measures.scan import write_tree_rows
from ..measures.steps import ROW_DUE, Steps
from ..score_tree.rows import Ask
from ..score_tree.window import BRIDGES_FROM, ScoreWindow, keeps_hull_for
from ..settings.evaluator import EvaluatorSettings
from .ranking import asked_of_rows, placed, refuse_infinite, stride_of


class TreeRanking:
    """A ranking that is current after every event, with the methods of `SortedRanking`.

    O(log k) an event for AUC, O(log^2 k) with the hull.
    """

    def __init__(self, settings: EvaluatorSettings, labels: Int8Array, scores: FloatArray) -> None:
        asked = settings.measures or ()
        self._settings = settings
        self._at_row = made_at_row(settings)
        self._asked, self._z, curvature = asked_of_rows(settings)
        self._ask = Ask(
            h=int("h" in asked and not self._at_row.h),
            ks=int("ks" in asked or "ks_threshold" in asked),
            tpr_at_fpr=int("tpr_at_fpr" in asked),
            cost_threshold=int("cost_threshold" in asked),
            aum=int("aum" in asked),
            losses=int("brier" in asked or "log_loss" in asked),
            **settings.points._asdict(),
        )
        size = settings.window.size
        self._needs_hull = bool(self._ask.h or self._ask.ks or self._ask.cost_threshold or self._at_row.hull)
        self._stride = stride_of(settings)
        self._window = ScoreWindow(
            size,
            cost=(1, 1) if curvature == 0.0 else (2, 2),
            keeps_hull=self._needs_hull and keeps_hull_for(size or len(scores), self._stride),
        )
        self._sized = size is not None
        self._window.load(labels, scores)

    def follow(
        self, labels: Int8Array, scores: FloatArray, steps: Steps, numbers: FloatArray, reasons: Int8Array
    ) -> None:
        """See `SortedRanking`."""
        start = row = 0
        stops = []  # steps at which Python reads the tree for a row
        if self._at_row.anything and len(numbers):
            stops = (np.flatnonzero(steps.flags & ROW_DUE) + 1).tolist()
        while start < len(scores):
            end = min(len(scores), start + self._events_until_bridges())
            if row < len(stops):
                end = min(end, stops[row])
            rows = self._window.follow(
                labels[start:end], scores[start:end], steps.part(start, end), self._ask
            )
            if row + len(rows) > len(numbers):  # a kernel does not check bounds
                raise InputError(f"{row + len(rows)} rows fell due where {len(numbers)} were expected")
            written = slice(row, row + len(rows))
            if len(rows):
                self._write(rows, numbers[written], reasons[written])
            start, row = end, row + len(rows)
        if row != len(numbers):
            raise InputError(f"{row} rows fell due where {len(numbers)} were expected")
        if row:
            refuse_infinite(numbers, reasons)

    def placements_ahead(self, labels: Int8Array, scores: FloatArray, chosen: Int64Array) -> FloatArray:
        """See `SortedRanking`. O(log k) for each chosen event, and the cost of `place`."""
        tree = self._window.tree
        return placed(labels, scores, chosen, tree.ranks(scores[chosen]), tree.negatives, tree.positives)

    def _events_until_bridges(self) -> int:
        """Return the number of events after which bridges cost less than scans, in an unbounded window.

        From that size on the tree keeps bridges.
        """
        tree = self._window.tree
        if not self._needs_hull or tree.keeps_hull or self._sized:
            return sys.maxsize
        if keeps_hull_for(len(tree), self._stride):
            tree.keeps_hull = True
            return sys.maxsize
        return BRIDGES_FROM * self._stride - len(tree)

    def write_row(self, numbers: FloatArray, reasons: Int8Array) -> None:
        """See `SortedRanking`."""
        row = self._window.tree.rows_now(self._ask)
        self._write(row, numbers[np.newaxis], reasons[np.newaxis])
        refuse_infinite(numbers[np.newaxis], reasons[np.newaxis])

    def _write(self, rows: Any, numbers: FloatArray, reasons: Int8Array) -> None:
        """Write rows from records of ROW, one at a time if some measures are made at the row (`AtRow`)."""
        write_tree_rows(rows, self._ask.h, self._z, numbers, reasons)
        tree = self._window.tree
        if self._at_row.anything and 0 < tree.positives < len(tree):
            edges = NO_INT64, NO_INT64
            if self._at_row.hull:
                x, y = (np.diff(vertices) for vertices in tree.hull())
                edges = x - y, y
            write_at_row(
                self._settings, self._at_row, self._asked, edges, self.to_entries, numbers[0], reasons[0]
            )

    def to_arrays(self) -> tuple[Int8Array, FloatArray]:
        """See `SortedRanking`."""
        return self._window.to_arrays()

    def to_entries(self) -> tuple[FloatArray, Int64Array, Int64Array]:
        """See `SortedRanking`. O(k)."""
        entries = self._window.tree.to_sorted()
        return entries.scores, entries.negatives, entries.positives

    def live_bytes(self) -> int:
        """See `SortedRanking`."""
        return self._window.nbytes
