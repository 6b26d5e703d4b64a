"""Rows are columns that read as records, and records that say why they are null."""

from __future__ import annotations

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.rows.columns import (
    COLUMNS,
    INTEGER_COLUMNS,
    NUMBER_COLUMNS,
    reason_clauses,
    reason_text,
    reasons_by_measure,
)
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.core.rows.reasons import DEGENERATE, ONE_CLASS, REASONS
from rocsteady.core.rows.rows import Rows

from tests.support.streams.times import moments


def some_rows(model: str, n: int) -> Rows:
    ev = rs.ModelEvaluator(window=rs.LastEvents(3), every=rs.EveryEvents(1), model=model, slice="s=1")
    labels = [0, 0, 1, 1, 0, 1, 1, 1, 1][:n]
    return ev.update(labels, np.arange(n) % 4 / 4, times=moments(np.arange(n) * 10**6))


def test_a_row_has_the_columns_of_the_interface_in_their_order() -> None:
    assert rs.MeasureRow._fields == COLUMNS
    assert rs.Measures._fields == ("window_events", *NUMBER_COLUMNS, "reason")


def test_columns_and_records_say_the_same() -> None:
    rows = some_rows("m", 9)
    assert len(rows) == 9
    for index, row in enumerate(rows):
        assert rows[index] == row
        for name in NUMBER_COLUMNS:
            value = rows.number(name)[index]
            assert getattr(row, name) == (None if np.isnan(value) else value)
        for name in INTEGER_COLUMNS:
            value = rows.integer(name)[index]
            assert getattr(row, name) == (None if value == NO_TIME else value)
        assert rows.reason_texts()[index] == row.reason
        assert rows.measures(index)._asdict().items() <= row._asdict().items()
    assert rows[-1] == list(rows)[-1]
    assert {type(value) for row in rows for value in row} <= {str, int, float, type(None)}


def test_rows_go_one_after_another() -> None:
    parts = [some_rows("a", 4), Rows.empty(), some_rows("b", 2), some_rows("a", 9)]
    rows = Rows.concat(parts)
    assert list(rows) == [row for part in parts for row in part]
    assert set(rows.keys) == {("a", "s=1"), ("b", "s=1")}
    assert Rows.concat(parts[:2]) is parts[0]
    assert len(Rows.concat([])) == 0
    assert list(Rows.empty().reason_texts()) == []


def test_a_slice_of_rows_is_rows() -> None:
    rows = Rows.concat([some_rows("a", 7), some_rows("b", 9)])
    records = list(rows)
    for part in (
        slice(None),
        slice(2, 9),
        slice(-3, None),
        slice(None, None, -2),
        slice(5, 5),
        slice(40, 50),
    ):
        assert isinstance(rows[part], Rows)
        assert list(rows[part]) == records[part]
        assert rows[part].reason_texts() == [row.reason for row in records[part]]
    assert list(Rows.concat([rows[:4], rows[9:]])) == records[:4] + records[9:]
    assert rows[np.int64(-1)] == rows[-1] == records[-1]
    assert records[3] in rows
    assert rows.index(records[11]) == 11
    assert list(reversed(rows)) == records[::-1]


def test_there_is_nothing_beyond_the_last_row() -> None:
    rows = some_rows("a", 4)
    for index in (4, -5):
        with pytest.raises(IndexError):
            rows[index]
    with pytest.raises(IndexError):
        Rows.empty()[0]


def test_reasons_are_words_in_column_order() -> None:
    codes = [0] * len(MEASURES)
    assert reason_text(codes) is None
    codes[MEASURES.index("mcc")] = codes[MEASURES.index("h")] = ONE_CLASS
    assert reason_text(codes) == "h, mcc: one class in window"
    codes[MEASURES.index("auc")] = DEGENERATE
    codes[MEASURES.index("kappa")] = DEGENERATE
    assert reason_text(codes) == "auc, kappa: degenerate interval; h, mcc: one class in window"
    assert len(set(REASONS) - {""}) == len(REASONS) - 2


def test_a_reason_is_read_as_it_was_written() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        codes = random.integers(0, len(REASONS), len(MEASURES)).tolist()
        why = {name: REASONS[code] for name, code in zip(MEASURES, codes, strict=True) if REASONS[code]}
        text = reason_text(codes)
        assert reasons_by_measure(text) == why
        assert reasons_by_measure("; ".join(f"{name}: {words}" for name, words in why.items())) == why
        assert reasons_by_measure(f"the learner failed at 1,234 events; {text}") == why
        assert text is not None
        assert text.count("; ") == len(set(why.values())) - 1
    assert reasons_by_measure(None) == {}
    assert reason_clauses({}) is None


def test_the_words_of_reasons_are_frozen_and_leave_the_grammar_alone() -> None:
    assert REASONS == (
        "", "one class in window", "degenerate interval", "fewer than two positives or negatives in window",
        "no predicted positives in window", "no positives in window", "no negatives in window",
        "no positive class is named", "chance agreement is certain", "the majority classifier makes no error",
        "the persistent classifier makes no error", "one class in the labels or in the predictions",
        "no positives and no predicted positives in window", "the numbers are beyond what a float holds",
        "constant scores in window", "", "no block of positives and negatives is full yet",
        "no event has come after the reference period yet", "the reference period has too few events",
    )  # fmt: skip
    assert not any(mark in words for words in REASONS for mark in ":;,")
