"""The page about models with a score of each class: its numbers are those of the rows."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from rocsteady.core.errors import InputError
from rocsteady.pipelines.report.alerts import alerts_of, shown_alerts
from rocsteady.pipelines.report.classes.page_classes import slice_of
from rocsteady.pipelines.report.facts import page_facts
from rocsteady.pipelines.report.fleet import class_pairs as pairs_section
from rocsteady.pipelines.report.fleet.class_pairs import class_pairs
from rocsteady.pipelines.report.fleet.gaps import page_gaps
from rocsteady.pipelines.report.glance import glance
from rocsteady.pipelines.report.overview import overview_of
from rocsteady.pipelines.report.report import write_report
from rocsteady.pipelines.report.report_rows import report_rows
from rocsteady.pipelines.report.verdicts import judge_rows

from tests.support.pages.class_tables import CLASSES, class_rows
from tests.support.pages.report_tables import alert_events

SLICES = ["", "class=cat", r"class=dog\=x\,y", "class=<owl>"]


@cache
def all_rows():
    return class_rows()


def of(table, model, name):
    """The rows of a class of a model, in order; None: the rows of the model."""
    return [line for line in table.to_pylist() if (line["model"], line["class"]) == (model, name)]


def overview(rows):
    return overview_of(rows, judge_rows(rows, 0.95), 0.95)


def test_the_auc_of_a_model_is_its_macro_auc_and_a_class_is_like_a_slice():
    rows = report_rows(all_rows())
    assert rows.slices == SLICES
    assert len(rows) == all_rows().num_rows
    for model, part, first, stop in rows.series.tolist():
        name = None if not part else rows.classes.parts[part][1]
        lines = of(all_rows(), rows.models[model], name)
        column = "auc" if name else "auc_macro"
        for shown, stored in (("auc", column), ("auc_low", f"{column}_low"), ("auc_m", "auc_m")):
            values = [np.nan if line[stored] is None else line[stored] for line in lines]
            assert np.array_equal(rows.columns[shown][first:stop], values, equal_nan=True)


def test_a_class_that_is_lost_is_named_beside_its_model():
    rows = report_rows(all_rows())
    fallen, good = overview(rows).lines
    assert (fallen.name, fallen.state, [part.name for part in fallen.slices]) == (
        "fallen",
        "worse",
        ["class=cat"],
    )
    assert (good.name, good.state) == ("good", "no change shown")
    last = of(all_rows(), "fallen", None)[-1]
    assert (
        fallen.auc == f"{last['auc_macro']:.3f} [{last['auc_macro_low']:.3f}, {last['auc_macro_high']:.3f}]"
    )
    assert fallen.classes.m == f"{last['auc_m']:.3f} [{last['auc_m_low']:.3f}, {last['auc_m_high']:.3f}]"
    assert fallen.classes.worst_class == f"cat {last['worst_class_auc']:.3f}"
    assert fallen.classes.worst_pair == f"{last['worst_pair']} {last['worst_pair_auc']:.3f}"
    assert fallen.classes.absent == ""


def test_a_model_with_an_absent_class_is_not_judged_and_says_which_it_is():
    table = class_rows(("m",), absent=1)
    rows = report_rows(table)
    (line,) = overview(rows).lines
    assert line.words == "cannot tell: too few labels"
    assert line.why == "fewer than 30 events of a class in the latest window"
    assert line.classes.absent == "1 absent: dog=x,y"


@pytest.mark.parametrize("left_out", [0, 3])
def test_the_rarest_class_of_each_row_is_found_whatever_rows_are_left_out(left_out):
    table = class_rows(("m",), n=200, window=60, every=40)
    lines = table.to_pylist()
    least = [
        min(
            min(line["positives"], line["negatives"])
            for line in lines
            if line["class"] and line["row"] == row
        )
        for row in range(5)
    ]
    if left_out:  # rows of one class, of which the others still know
        kept = [not (line["class"] == CLASSES[0] and line["row"] < left_out) for line in lines]
        table = table.filter(pa.array(kept))
    (one,) = judge_rows(report_rows(table), 0.95).models
    rarer = one.series[0].rarer.tolist()
    assert rarer[left_out:] == least[left_out:]
    assert all(found >= exact for found, exact in zip(rarer, least, strict=True))


def test_pairs_are_those_of_the_rows_of_every_moment():
    rows = report_rows(all_rows())
    found = class_pairs(rows, [0, 1])
    assert found.chart["names"] == [list(CLASSES)]
    assert [(rows.models[one["model"]], rows.slices[one["slice"]]) for one in found.chart["series"]] == [
        ("fallen", ""), ("good", ""),
    ]  # fmt: skip
    for one in found.chart["series"]:
        lines = [of(all_rows(), rows.models[one["model"]], name) for name in CLASSES]
        assert len(one["moments"]) == len(lines[0])
        for number, (seq, time, aucs) in enumerate(one["moments"]):
            assert (seq, time) == (lines[0][number]["seq"], None)
            exact = [value for of_class in lines for value in of_class[number]["pair_aucs"]]
            assert aucs == [None if value is None else round(value * 10_000) for value in exact]
    last = of(all_rows(), "fallen", None)[-1]
    worst = found.lines[0]
    assert {worst.one, worst.other} == set(last["worst_pair"].split("|"))
    assert worst.mean == f"{last['worst_pair_auc']:.3f}"
    assert found.title == "fallen"


def test_of_too_many_moments_the_newest_of_each_model_stay_and_the_page_says_so(monkeypatch):
    monkeypatch.setattr(pairs_section, "CELLS", 5 * 9)
    found = class_pairs(report_rows(all_rows()), [1, 0])
    assert [len(one["moments"]) for one in found.chart["series"]] == [3, 2]
    assert [one["moments"][-1][0] for one in found.chart["series"]] == [1_200, 1_200]
    assert "5 of 16 moments are in this page" in found.about


def test_slices_by_a_column_called_class_are_told_from_classes():
    table = class_rows(("m",), slices=("", "class=cat"), n=300)
    rows = report_rows(table)
    assert "class=cat" in rows.slices
    assert "scored class=cat" in rows.slices
    assert "class=cat,scored class=cat" in rows.slices
    assert len(rows) == table.num_rows


@pytest.mark.parametrize("slices", [("",), ("", "class=cat")])
def test_an_alert_of_a_class_is_beside_the_class_and_not_its_model(slices):
    rows = report_rows(class_rows(("m",), slices=slices, n=600))
    opened = {"model": "m", "row": 2, "state": "open"}
    plain = alert_events({**opened, "column": "auc_macro"}, {**opened, "column": "auc"}, {**opened, "row": 3})
    place = plain.schema.get_field_index("class")
    table = plain.set_column(place, "class", pa.array([None, "cat", "dog=x,y"]))
    names = [alert.slice for alert in alerts_of(table, rows.classes.label)]
    assert sorted(names) == sorted(["", slice_of("", "cat", rows.classes.label),
                                    slice_of("", "dog=x,y", rows.classes.label)])  # fmt: skip
    assert set(names) <= set(rows.slices)
    shown = shown_alerts(table, rows, 50, dates=False)
    assert shown.open_of_models == {"m": 3}


def test_classes_have_no_gaps_since_they_share_their_events():
    assert page_gaps(report_rows(all_rows()), 0.95).slices == []


def test_a_page_without_aucs_of_pairs_says_why(tmp_path):
    many = class_rows(("m",), classes=[f"c{number}" for number in range(101)], n=200)
    facts = page_facts(report_rows(many))
    assert facts.shown["class_pairs"] is None
    write_report(many, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "These rows have no AUCs of pairs of classes" in page
    assert "1 model with 101 classes" in re.sub(r"\s+", " ", page)


def test_figures_of_all_events_are_told_from_those_of_a_class_that_fell(tmp_path):
    rows = class_rows(classes=[f"c{number}" for number in range(30)], n=6_000, window=1_500, every=750)
    write_report(rows, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    lines = dict(re.findall(r'<th scope="row"><a [^>]*>(\w+)</a></th>(.*?)</tr>', page, re.DOTALL))
    assert "worse only in <a" in lines["fallen"]
    assert "<small>all events: M " in lines["fallen"]
    assert "<small>M " in lines["good"]


def test_names_of_classes_are_escaped_in_the_page(tmp_path):
    write_report(all_rows(), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "<owl>" not in page
    assert "&lt;owl&gt;" in page


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_of_a_terminal_names_the_worst_class(width):
    lines = glance(report_rows(all_rows()), 0.95, width=width)
    assert max(map(len, lines)) <= width
    assert "3 classes; the AUC of a model is its macro AUC" in " ".join(lines)
    last = of(all_rows(), "fallen", None)[-1]
    (line,) = [line for line in lines if line.startswith("fallen")]
    assert f"cat {last['worst_class_auc']:.3f}" in line
    assert "worse" in line


def test_rows_of_both_kinds_are_refused_together():
    from rocsteady.core.rows.arrow import ROW_SCHEMA
    from rocsteady.transforms.tables.read import joined_rows

    plain = all_rows().select(ROW_SCHEMA.names).slice(0, 3)
    with pytest.raises(InputError, match="give them apart"):
        joined_rows([all_rows(), plain])
