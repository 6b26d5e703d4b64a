"""`roll_up`: makes roll-up rows from existing rows of measures, in this process and without Beam.

Invariant
    Roll-up rows equal those of `rocsteady evaluate --roll-up` and of `RollUp` for the same rows: one
    `FleetTable` makes them, and its rows depend on the set of its input rows alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from ...core.errors import InputError
from ...core.fleet.members import MemberRows
from ...core.fleet.roll_up_settings import RollUpSettings, choices_of
from ...core.fleet.table import roll_up_all
from ...core.rows.class_rows import ClassRow, ClassRows
from ...core.rows.records import MeasureRow
from ...core.rows.rows import Rows
from ...core.settings.durations import Duration, lateness_of
from ...transforms.evaluate.members import members_of_table
from ...transforms.events.dead_letters import in_columns
from ...transforms.sinks.kinds import ROLL_UP_SCHEMA
from ...transforms.tables.table_rows import distinct_rows, row_files
from ..report.command import confidence_of
from .evaluated import Evaluated
from .frames import frame_of

_HOW = "give rows that rocsteady evaluated on a grid of times, such as every='1h'"
_CONFIDENCE = 0.95


def roll_up(
    rows: Any,
    *,
    by: str | Iterable[str] = "models",
    stale: Duration = "1d",
    confidence: float | None = None,
    dependent: bool = False,
) -> Any:
    """Return roll-up rows: one row for each group of models, or of slices, and each grid point.

    rows        the result of `evaluate`; a frame of rows, of polars, pandas or pyarrow; `Rows`, or a list of
                MeasureRows or ClassRows; or the path of files, a folder or a topic, or a list of paths. The
                rows must be on a grid of times: `every="1h"`
    by          "models": all models are one group; "slices": a group for every model and column of slices;
                a pattern of models, such as "team1/*"; or a list of these
    stale       how long the last row of a silent member counts: such as "1d", a number of seconds, or a
                timedelta; 0 = not at all
    confidence  the confidence of the rows' intervals, and of the intervals that are made. None = as the
                result, or a Parquet file, says; otherwise 0.95
    dependent   True if models score the same events: intervals then hold for any dependence

    The result is a frame of the package of `rows`, or a pyarrow.Table if `rows` is no frame. Its columns are
    those of `RollUpRow`; `class` is there if the rows have it. O(rows). Beam is not imported.

    Raises ConfigError for an invalid setting. Raises InputError for an object that is no rows, for rows
    without `due`, and for rows of different windows or grids in one group.

        rows = rs.evaluate(frame, time="sent", every="1h", window="last:7d")
        rs.roll_up(rows, by=["models", "team1/*"])
    """
    kind = nw.Implementation.PYARROW
    found: Rows | Sequence[MeasureRow | ClassRow] | pa.Table
    if isinstance(rows, Rows | ClassRows):
        found = rows.rows if isinstance(rows, ClassRows) else rows
    elif isinstance(rows, Evaluated):
        found, kind = rows.to_arrow(), rows.kind
        confidence = rows.confidence if confidence is None else confidence
    elif isinstance(rows, str | os.PathLike) or (_are(rows, (str, os.PathLike)) and len(rows)):
        paths = [os.fspath(each) for each in ([rows] if isinstance(rows, str | os.PathLike) else rows)]
        found, confidence = rows_of_files(paths, confidence)
    elif _are(rows, (MeasureRow, ClassRow)):
        found = rows
    else:
        found, kind = _rows_of_frame(rows)
    settings = RollUpSettings(
        choices_of(by),
        lateness_of(stale, "stale"),
        _CONFIDENCE if confidence is None else confidence,
        dependent,
    )
    return frame_of(roll_up_table(found, settings), kind)


def roll_up_table(
    rows: Rows | Sequence[MeasureRow | ClassRow] | pa.Table, settings: RollUpSettings
) -> pa.Table:
    """Return the roll-up rows of a complete set of rows as a table, in order of group, pane and row."""
    if isinstance(rows, pa.Table):
        members = members_of_table(rows, settings, _HOW)
    elif isinstance(rows, Rows):
        members = MemberRows.of_rows(rows, settings)
    else:
        members = MemberRows.of_records(rows, settings)
    return pa.Table.from_batches([in_columns(roll_up_all(members, settings), ROLL_UP_SCHEMA)])


def rows_of_files(
    paths: Sequence[str], confidence: float | None, options: Iterable[str] = ()
) -> tuple[pa.Table, float]:
    """Return the rows of files, folders and topics, each once, and the confidence of their intervals.

    confidence  the confidence that the user says; None = as Parquet files say, otherwise 0.95
    options     options of librdkafka

    Raises InputError if a source cannot be read, and if the files have different levels.
    """
    files = [file.name for file in row_files(paths)]
    level, _ = confidence_of(None if confidence is None else repr(confidence), files)
    table = distinct_rows(paths, options)[0]
    return table, level


def _are(rows: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether an object is a list or tuple that has only objects of these types."""
    return isinstance(rows, list | tuple) and all(isinstance(each, kinds) for each in rows)


def _rows_of_frame(given: Any) -> tuple[pa.Table, nw.Implementation]:
    """Return a frame's rows as a table, and the package of the frame.

    Raises InputError for an object that is no frame.
    """
    if isinstance(given, pa.RecordBatch):
        given = pa.Table.from_batches([given])
    try:
        frame = nw.from_native(given)
    except TypeError:
        raise InputError(
            f"roll_up() is given {type(given).__name__!r}, which is no rows; give the result of evaluate(), "
            "a frame of rows, Rows, MeasureRows, or the path of a file of rows"
        ) from None
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return eager.to_arrow(), eager.implementation
