"""The table of measures agrees with itself, with the settings, and with all that is written from it."""

from __future__ import annotations

from dataclasses import fields

import pytest
import rocsteady as rs
from rocsteady.core.compare.comparisons import COMPARED, LOWER_IS_BETTER, OF_CLASSES
from rocsteady.core.rows import slots
from rocsteady.core.rows.class_columns import MEANS_COLUMNS
from rocsteady.core.rows.columns import COLUMNS, NUMBER_COLUMNS
from rocsteady.core.rows.measure_table import (
    CLASS_TABLE,
    CONTENT_TABLE,
    MEASURE_TABLE,
    MEASURES,
    RANKING_MEASURES,
    Measure,
)
from rocsteady.core.rows.reasons import NO_POSITIVE_CLASS, NOT_ASKED, OK, OUT_OF_RANGE, REASONS

from tests.support import ROOT
from tests.support.pages.written import COMMAND, written

TABLES = (*MEASURE_TABLE, *CLASS_TABLE, *CONTENT_TABLE)


@pytest.mark.parametrize("path", written(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_script_writes_is_as_the_script_writes_it(path) -> None:
    assert path.read_text() == written()[path], f"{COMMAND} renews the file"


def test_every_measure_has_a_name_and_a_slot_of_its_own() -> None:
    assert len({measure.name for measure in TABLES}) == len(TABLES)
    assert [getattr(slots, name.upper()) for name in MEASURES] == [*range(len(MEASURES))]
    assert all(measure.family == "decision" for measure in MEASURE_TABLE[RANKING_MEASURES:])
    assert {column.name for column in CONTENT_TABLE} <= {*COLUMNS}
    assert {measure.name for measure in CLASS_TABLE} <= {*MEANS_COLUMNS}


@pytest.mark.parametrize("measure", TABLES, ids=lambda measure: measure.name)
def test_a_measure_names_what_there_is(measure: Measure) -> None:
    codes = {*measure.reasons}
    assert codes <= {*range(len(REASONS))} - {OK, NOT_ASKED, NO_POSITIVE_CLASS, OUT_OF_RANGE}
    assert len(codes) == len(measure.reasons)
    assert measure.beside in {"", *MEASURES}
    assert {*measure.parameters} <= {field.name for field in fields(rs.EvaluatorSettings)}
    ends = {f"{measure.name}_{end}" for end in ("low", "high")}
    assert bool(measure.interval) == (ends <= {*MEASURES, *MEANS_COLUMNS})
    assert measure.by_itself or measure.better


def test_records_have_the_columns_of_the_table() -> None:
    assert rs.MeasureRow._fields == COLUMNS
    assert rs.Measures._fields == ("window_events", *NUMBER_COLUMNS, "reason")
    assert [name for name in rs.ClassRow._fields if name in NUMBER_COLUMNS] == [*NUMBER_COLUMNS]


def test_what_is_better_decides_what_is_compared() -> None:
    assert {"aum", "brier", "calibration_error", "cost_curve_area", "fn", "fp", "log_loss"} <= LOWER_IS_BETTER
    assert {*OF_CLASSES, *LOWER_IS_BETTER} < COMPARED
    assert COMPARED.isdisjoint(("auc_low", "auc_high", "ks_threshold", "cost_threshold", "evidence"))
