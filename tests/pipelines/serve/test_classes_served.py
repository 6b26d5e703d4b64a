"""A served page of models with a score of each class: its rows, its API and its time series."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from rocsteady.core.rows.arrow import ROW_SCHEMA
from rocsteady.pipelines.report.alerts import alerts_of
from rocsteady.pipelines.report.report_rows import report_rows
from rocsteady.pipelines.serve import gauges
from rocsteady.pipelines.serve.gauges import newest_of, page_series
from rocsteady.pipelines.serve.keeper import Keeper
from rocsteady.pipelines.serve.pages import Look
from rocsteady.pipelines.serve.reading import Source
from rocsteady.transforms.tables.followed import Came

from tests.support.pages.class_tables import CLASSES, class_rows
from tests.support.pages.fleet_tables import fleet_rows
from tests.support.pages.report_tables import alert_events

SOURCE = Source("rows", "rows", iter(()))


@cache
def all_rows():
    return class_rows(slices=("", "region=EU"), n=600)


@pytest.fixture
def keeper():
    made = Keeper(Look())
    in_time = all_rows().take(pa.array(np.argsort(all_rows().column("seq").to_numpy(), kind="stable")))
    for part in (in_time.slice(0, 7), in_time.slice(7), in_time.slice(0, 20)):  # the last ones came before
        made.gathered.take(SOURCE, Came(part, {}))
        made.make_page()
    return made


def test_rows_in_pieces_give_the_page_of_all_rows(keeper):
    rows = report_rows(all_rows())
    history = keeper.gathered.history
    assert (history.came, history.differing, len(history)) == (all_rows().num_rows, 0, all_rows().num_rows)
    epoch = keeper.published.epoch
    for name in ("auc", "auc_m", "positives", "worst_pair_auc"):
        order = np.argsort(epoch._of[: epoch.position], kind="stable")
        assert np.array_equal(
            epoch._columns[name][: epoch.position][order], rows.columns[name], equal_nan=True
        )
    page = keeper.published.page
    assert "class_pairs_chart" in page.texts
    assert b"Pairs of classes" in page.html


def test_rows_of_the_other_kind_are_left_out_and_told(keeper):
    plain = all_rows().select(ROW_SCHEMA.names).slice(0, 3)
    keeper.gathered.take(SOURCE, Came(plain, {}))
    assert keeper.gathered.history.came == all_rows().num_rows
    assert "follow them apart" in keeper.gathered.troubles["rows"]


def test_alerts_of_classes_are_told_apart(keeper):
    gathered = Keeper(Look(followed=("alerts",))).gathered
    opened = {"model": "good", "row": 1, "state": "open"}
    plain = alert_events(opened, opened)
    place = plain.schema.get_field_index("class")
    of_alerts = Source("alerts", "alerts", iter(()))
    for name in ("cat", "dog=x,y"):
        table = plain.slice(0, 1).set_column(place, "class", pa.array([name]))
        gathered.take(of_alerts, Came(table, {}))
    assert gathered.troubles == {}
    assert [alert.slice for alert in alerts_of(gathered.alerts)] == ["class=cat", r"class=dog\=x\,y"]


def test_roll_ups_of_all_classes_are_shown_and_those_of_a_class_are_not():
    gathered = Keeper(Look(followed=("roll-ups",))).gathered
    plain = rs.roll_up(fleet_rows({"a": [0.8, 0.7], "b": [0.9, 0.8]}))
    of_classes = pa.concat_tables(
        [
            plain.set_column(1, "class", pa.array([name] * len(plain), pa.string()))
            for name in ("cat", None, "dog")
        ]
    )
    gathered.take(Source("roll-ups", "roll-ups", iter(())), Came(of_classes, {}))
    assert gathered.troubles == {}
    assert gathered.beside["roll-ups"].table.to_pylist() == plain.to_pylist()


def test_the_api_names_the_class_of_a_row(keeper):
    told = [row.told() for row in keeper.published.page.latest]
    last = {(line["model"], line["slice"], line["class"]): line for line in all_rows().to_pylist()}
    assert {(row["model"], row["slice"], row["class"]) for row in told} == set(last)
    for row in told:
        line = last[row["model"], row["slice"], row["class"]]
        assert row["auc"] == (line["auc"] if line["class"] else line["auc_macro"])


def test_models_have_the_macro_auc_and_classes_have_their_name_as_a_label(keeper, monkeypatch):
    series = {one.name: [*one.samples()] for one in page_series(keeper)}
    last = {(line["model"], line["slice"], line["class"]): line for line in all_rows().to_pylist()}
    assert series["model_auc"] == series["slice_auc"] == []
    assert series["model_auc_macro_low"] == [
        ({"model": model}, last[model, "", None]["auc_macro_low"]) for model in ("fallen", "good")
    ]
    assert {
        (labels["model"], labels["slice"], labels["class"]): value for labels, value in series["class_auc"]
    } == {key: line["auc"] for key, line in last.items() if key[2]}
    assert [value for _, value in series["classes_without_gauges"]] == [0]
    monkeypatch.setattr(gauges, "MODELS", 5)
    newest = newest_of(keeper.published.page.latest)
    assert (len(newest.classes), newest.classes_beyond) == (5, 4 * len(CLASSES) - 5)
