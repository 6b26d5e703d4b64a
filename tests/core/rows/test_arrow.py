"""Rows as Arrow tables and data frames say what the rows say."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from rocsteady.core.rows.arrow import ROW_SCHEMA, rows_to_arrow
from rocsteady.core.rows.columns import COLUMNS, INTEGER_COLUMNS, NUMBER_COLUMNS, TIME_COLUMNS
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.core.rows.rows import Rows

from tests.support.stored.awkward_rows import KEYS, some_rows
from tests.support.streams.times import moments

PARTS = {"all": slice(None), "some": slice(1, 4), "backwards": slice(None, None, -1), "none": slice(3, 3)}


def test_the_columns_are_those_of_a_row_in_their_order() -> None:
    assert tuple(ROW_SCHEMA.names) == COLUMNS
    kinds = {str(kind) for kind in ROW_SCHEMA.types}
    assert kinds == {"string", "int64", "double", "bool", "timestamp[us, tz=UTC]"}


@pytest.mark.parametrize("part", PARTS)
def test_a_table_says_what_the_rows_say(part: str) -> None:
    rows = some_rows()[PARTS[part]]
    table = rows.to_arrow()
    table.validate(full=True)
    assert isinstance(table, pa.Table)
    assert table.schema == rows_to_arrow(rows).schema == ROW_SCHEMA
    columns = {
        name: table[name].cast(pa.int64()) if name in TIME_COLUMNS else table[name] for name in COLUMNS
    }
    assert [tuple(row.values()) for row in pa.table(columns).to_pylist()] == [tuple(row) for row in rows]
    assert Rows.empty().to_arrow().schema == ROW_SCHEMA


@pytest.mark.parametrize("part", PARTS)
def test_a_data_frame_says_what_the_rows_say(part: str) -> None:
    pandas = pytest.importorskip("pandas", reason="pip install pandas")
    rows = some_rows()[PARTS[part]]
    frame = rows.to_pandas()
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == len(rows)
    for name in COLUMNS:
        if name in TIME_COLUMNS:
            assert str(frame[name].dtype) == "datetime64[us, UTC]"
        elif name in NUMBER_COLUMNS:
            assert frame[name].dtype == np.float64
        elif name in INTEGER_COLUMNS:
            assert frame[name].dtype == np.int64
        got = [None if pandas.isna(value) else value for value in frame[name].tolist()]
        if name in TIME_COLUMNS:
            got = [None if value is None else value.value // 1000 for value in got]
        assert got == [getattr(row, name) for row in rows], name
    assert str(frame.drift.dtype) == "boolean"


def test_a_data_frame_and_its_rows_do_not_share_memory() -> None:
    pytest.importorskip("pandas", reason="pip install pandas")
    rows = some_rows()
    before = list(rows)
    frame = rows.to_pandas()
    frame["auc"] = 0.0
    frame.loc[:, "row"] = 9
    assert list(rows) == before


def test_rows_of_an_evaluator_become_a_table() -> None:
    ev = rs.ModelEvaluator(window=rs.LastEvents(3), every=rs.EveryEvents(1), model="m")
    rows = ev.update([0, 0, 1, 1, 0], np.arange(5) % 4 / 4, times=moments(np.arange(5) * 10**6))
    assert rows.to_arrow()["auc"].to_pylist() == [row.auc for row in rows]
    assert rows[2:].to_arrow()["seq"].to_pylist() == [3, 4, 5]


def test_a_hundred_thousand_rows_become_columns_without_python_for_each() -> None:
    n = 100_000
    rows = Rows(
        KEYS,
        np.zeros(n, np.int32),
        np.zeros((n, len(INTEGER_COLUMNS)), np.int64),
        np.zeros((n, len(NUMBER_COLUMNS))),
        np.zeros((n, len(MEASURES)), np.int8),
        np.zeros(n, np.int8),
        "c",
    )
    start = time.process_time()
    assert rows.to_arrow().num_rows == n
    assert time.process_time() - start < 5  # a fraction of a second; a record each would take ten
