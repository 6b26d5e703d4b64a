"""Evaluated: the rows and dead letters of an evaluated frame, as frames of the same package."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import narwhals as nw
import pyarrow as pa

from ...core.errors import MissingPackageError
from ...core.rows.arrow import table_to_pandas
from ...core.rows.rows import Rows
from ...core.settings.evaluator import EvaluatorSettings
from ...core.verdicts.choice import reference_of
from ..report.report_rows import EventCounters, Tables, count_dead_letters
from ..sums import EVENTS
from ..words import counted
from .frames import frame_of
from .summary import rows_of_slice, summary_of

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure
    from polars import DataFrame as PolarsFrame

_REASONS_SHOWN = 5


class Evaluated:
    """The result of `evaluate`, which makes it. Its frames are of the package of the user's frame.

    tables    rows, dead letters and curves, as tables of pyarrow
    newest    the newest row of every model
    counters  how many events had each fate, by the names that the command uses: events_read, events_applied,
              dead_letters, late, duplicate, events_tied, events_in_other, evaluators_retired, rows_written,
              curves_written. Every event that was read was applied, or is a dead letter, late or a duplicate
    kind      the package of the frame that was given
    settings  the settings of the evaluators
    notes     sentences for the report

    A frame is made when it is first asked for.

    >>> import pyarrow as pa
    >>> import rocsteady as rs
    >>> result = rs.evaluate(pa.table({"score": [0.9, 0.2, 0.7, 0.4], "label": [1, 0, 1, 1]}))
    >>> result.counters["events_applied"], result.rows.column("auc").to_pylist()
    (4, [1.0])
    """

    counters: dict[str, int]

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        newest: Rows,
        counters: Mapping[str, int],
        kind: nw.Implementation,
        settings: EvaluatorSettings,
        notes: Sequence[str] = (),
    ) -> None:
        self.counters = dict(counters)
        self._tables = dict(tables)
        self._newest_by_slice = newest
        self._kind = kind
        self._settings = settings
        self._notes = tuple(notes)

    @property
    def kind(self) -> nw.Implementation:
        """The package of the frames."""
        return self._kind

    @property
    def confidence(self) -> float:
        """The confidence level of the rows' intervals."""
        return self._settings.confidence

    @cached_property
    def rows(self) -> Any:
        """The rows of measures, sorted by model, slice and row.

        The columns are those that the command writes.
        """
        return frame_of(self._tables["rows"], self._kind)

    @cached_property
    def dead_letters(self) -> Any:
        """The events that do not count, each with its reason.

        The columns are those that the command writes.
        """
        return frame_of(self._tables["dead letters"], self._kind)

    @cached_property
    def curves(self) -> Any:
        """The points of ROC curves; without rows unless `curves=` asked for curves."""
        return frame_of(self._tables["curves"], self._kind)

    def summary(self, *, reference: str | None = None) -> Any:
        """Return one row for each model: its newest values, whether it got worse, by how much and since when.

        reference  the reference of the latest full window, in the command's words, such as "30d"; None = all
                   earlier windows that share no event with it

        Intervals and p-values are corrected for the number of models and slices, as in the report. Raises
        ConfigError for a text that names no reference.
        """
        chosen = reference_of(reference)
        summary = summary_of(self._newest, self._tables["rows"], self._settings.confidence, chosen)
        return frame_of(summary, self._kind)

    def to_arrow(self) -> pa.Table:
        """Return the rows as a pyarrow.Table."""
        return self._tables["rows"]

    def to_pandas(self) -> DataFrame:
        """Return the rows as a pandas.DataFrame. Raises MissingPackageError without pandas."""
        return table_to_pandas(self._tables["rows"])

    def to_polars(self) -> PolarsFrame:
        """Return the rows as a polars.DataFrame. Raises MissingPackageError without polars."""
        try:
            import polars
        except ImportError:
            raise MissingPackageError(
                "to_polars() needs the package polars, which is not installed here; run: pip install polars "
                "(to_arrow() does without)"
            ) from None
        return polars.DataFrame(self._tables["rows"])

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        reference: str | None = None,
        roll_ups: Any = None,
        pairs: Any = None,
    ) -> int:
        """Write the page about the rows to an HTML file; return its size in bytes.

        path       the file to write
        title      the title above the page
        reference  as in `summary`
        roll_ups   the result of `roll_up`: a frame of polars, pandas or pyarrow, or a list of RollUpRows
        pairs      rows of pairs of models: a list of PairRows, or a frame

        Raises ConfigError for a text that names no reference, InputError if the file cannot be written, and
        for objects that are no roll-ups or no pairs.
        """
        from ...core.encoding.json import read_object
        from ..report.facts import TITLE
        from ..report.report import write_report
        from .given import given_table

        canonical = self._settings.canonical()
        return write_report(
            self._tables["rows"],
            path,
            Tables(
                curves=None if self._settings.curves is None else self._tables["curves"],
                counters=replace(
                    self._lost, read=self.counters["events_read"], applied=self.counters["events_applied"]
                ),
                roll_ups=None if roll_ups is None else given_table(roll_ups, "roll-ups"),
                pairs=None if pairs is None else given_table(pairs, "pairs"),
            ),
            title=title or TITLE,
            confidence=self._settings.confidence,
            reference=reference_of(reference),
            settings={self._settings.config_hash(): read_object(canonical, "the settings of rows")},
            notes=self._notes,
        )

    def plot(
        self,
        measure: str = "auc",
        *,
        models: int | Sequence[str] = 10,
        slice: str = "",  # noqa: A002  the column's name
    ) -> Figure:
        """Return a figure of plotly: one line for each model over time, or over events if there are no times.

        measure  a column of the rows, such as "auc", which has the band of its interval
        models   the names of models, or how many: those whose newest value is worst. The figure says how
                 many models are left out
        slice    the slice to draw, such as "country=NZ"; "" is the whole model

        Raises ConfigError for a measure that was not computed, InputError for an unknown model or slice.
        """
        from .plot import figure_of

        return figure_of(self._tables["rows"], self._newest_by_slice, measure, models, slice)

    @cached_property
    def _newest(self) -> Rows:
        """The newest row of every model, without slices."""
        return rows_of_slice(self._newest_by_slice, "")

    @cached_property
    def _lost(self) -> EventCounters:
        """The numbers of dead letters by reason and by model."""
        return count_dead_letters(self._tables["dead letters"])

    def _told(self) -> list[str]:
        """Return sentences on the counters and on the most frequent reasons of dead letters."""
        counts, lost = self.counters, self._lost.lost
        lines = [f"{EVENTS.told(counts, 'event')}; {counted(counts['rows_written'], 'row')}"]
        lines += [f"  {count:,} x {reason}" for _, reason, count in lost[:_REASONS_SHOWN]]
        if len(lost) > _REASONS_SHOWN:
            lines.append(f"  and {len(lost) - _REASONS_SHOWN} more reasons")
        if tied := counts["events_tied"]:
            lines.append(
                f"{counted(tied, 'event')} share their time with others of their model, in an arbitrary "
                "order: id= tells them apart, and deduplicate= drops repeated ones"
            )
        if beyond := counts["events_in_other"]:
            lines.append(f"{counted(beyond, 'event')} of slices are in a slice of others: see slice_cap=")
        return lines

    def __repr__(self) -> str:
        """Return the counters, the most frequent reasons of dead letters, and the newest rows of models."""
        return "\n".join((*self._told(), repr(self._newest)))

    def _repr_html_(self) -> str:
        """Return the text of `repr` as HTML."""
        told = "<br>".join(map(escape, self._told()))
        return f"<div><p>{told}</p>{self._newest._repr_html_()}</div>"
