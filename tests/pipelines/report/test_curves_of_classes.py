"""The curves of classes on a page: those of the job, in the order of the classes."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import rocsteady as rs
from rocsteady.pipelines.report.data import CURVE_BLOCKS, curve_blocks
from rocsteady.pipelines.report.facts import page_facts
from rocsteady.pipelines.report.report_rows import report_rows
from rocsteady.transforms.tables.read import ANY_ROWS, read_tables

from tests.support.pages.report_tables import curve, filled
from tests.support.pages.served import numbers
from tests.support.processes.command import call

NAMES = ("10", "9", "a=b,c")
"""In the order of the columns, which is neither that of letters nor that of numbers."""

SCORES = {name: f"p{place}" for place, name in enumerate(NAMES)}


def events(column="class", n=900):
    rng = np.random.default_rng(5)
    label = rng.integers(0, 3, n)
    scores = (rng.random((n, 3)) + 0.4 * np.eye(3)[label]).round(2)
    return pa.table(
        {
            "model": np.array(["m", "n"])[np.arange(n) % 2],
            column: np.array(["x", "y"])[np.arange(n) // 2 % 2],
            "label": np.array(NAMES)[label],
            **{f"p{place}": scores[:, place] for place in range(3)},
        }
    )


@pytest.fixture(scope="module")
def evaluated():
    """Rows and curves of models whose events are sliced by a column `class`."""
    return rs.evaluate(
        events(), class_scores=SCORES, slices=["class"], window="last:150", every="50", curves=150
    )


def told(rows, curves):
    """By model, slice and moment the points of each curve of a page."""
    listed, blocks, note = curve_blocks(curves, rows)
    columns = [numbers(base64.b64decode(blocks[name])) for name in CURVE_BLOCKS]
    points = np.stack(columns, axis=1)
    return note, {
        (rows.models[model], rows.slices[part], seq): points[first : first + count]
        for model, part, seq, _, _, _, first, count in listed
    }


def expected(curves):
    """By model, slice and class, and moment, the points of each curve of a file."""
    found = {}
    for line in curves.to_pylist():
        name = shown_name(line["slice"], line["class"])
        point = [np.nan if line[name] is None else float(line[name])
                 for name in ("threshold", "tp", "fp", "on_hull", "block_score")]  # fmt: skip
        found.setdefault((line["model"], name, line["seq"]), []).append(point)
    return found


def shown_name(part, name):
    escaped = name.replace("=", "\\=").replace(",", "\\,")
    return f"{part}{',' if part else ''}scored class={escaped}"


def test_the_page_has_the_curve_of_every_class_in_every_slice(evaluated):
    note, shown = told(report_rows(evaluated.to_arrow()), evaluated.curves)
    wanted = expected(evaluated.curves)
    assert (note, shown.keys()) == ("", wanted.keys())
    assert {name for _, name, _ in wanted} == {shown_name(part, name) for part in ("", "class=x", "class=y")
                                               for name in NAMES}  # fmt: skip
    assert all(np.array_equal(shown[key], wanted[key], equal_nan=True) for key in wanted)


def test_classes_stand_in_the_order_of_the_scores(evaluated):
    facts = page_facts(report_rows(evaluated.to_arrow()))
    parts = ("", "class=x", "class=y")
    assert facts.meta["slices"] == [
        shown for part in parts for shown in (part, *(shown_name(part, name) for name in NAMES))
    ]
    by_class = dict(facts.shown["heatmap"].groups)["scored class"]
    assert [facts.meta["slices"][place] for place in by_class] == [shown_name("", name) for name in NAMES]
    assert facts.meta["parts"] == ("class or slice", "classes and slices")


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_files_of_rows_and_curves_give_the_curves_of_the_job_s_own_page(
    tmp_path, monkeypatch, capsys, ending
):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(events("region"), "s.csv")
    scores = ("--class-scores", "10=p0,9=p1,a=p2")
    table = events("region")
    labels = pa.array([name[0] if name[0] == "a" else name for name in table["label"].to_pylist()])
    pa.csv.write_csv(table.set_column(2, "label", labels), "s.csv")
    words = ("s.csv", *scores, "--slice", "region", "--window", "last:150", "--curves-every", "150")
    files = ("--output", f"r.{ending}", "--curves", f"c.{ending}")
    assert call(capsys, "evaluate", *words, *files, "--report", "own.html").status == 0
    assert call(capsys, "evaluate", *words, "--report", "alone.html").status == 0
    assert call(capsys, "report", f"r.{ending}", "--curves", f"c.{ending}", "-o", "again.html").status == 0
    own, alone, again = (meta_in(Path(name).read_text()) for name in ("own.html", "alone.html", "again.html"))
    assert own["curves"] == alone["curves"] == again["curves"]
    assert len(own["curves"]) == 2 * 3 * (3 + 2 + 2)  # a model has 450 events, and each of its slices 225
    rows = report_rows(read_tables([f"r.{ending}"], ANY_ROWS)[0])
    curves = read_tables([f"c.{ending}"], "curves")[0]
    assert curve_blocks(curves, rows)[0] == own["curves"]


def meta_in(page):
    found = re.search(r'<script[^>]*id="meta"[^>]*>(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def test_a_frame_s_report_has_its_curves(evaluated, tmp_path):
    evaluated.report(tmp_path / "r.html")
    meta = meta_in((tmp_path / "r.html").read_text())
    assert len(meta["curves"]) == len(expected(evaluated.curves))


def test_curves_of_the_other_kind_are_left_out_and_told(evaluated):
    labels, scores = np.array([0, 1, 1, 0]), np.array([0.1, 0.2, 0.8, 0.9])
    plain = curve("m", 150, labels, scores, config="")
    rows = report_rows(evaluated.to_arrow())
    assert curve_blocks(plain, rows)[2].startswith("The curves given are of none of the models")
    one_score = report_rows(filled([("m", 60)]))
    place = plain.schema.get_field_index("class")
    of_classes = plain.set_column(place, "class", pa.array(["10"] * len(plain)))
    assert curve_blocks(of_classes, one_score)[0] == []
    assert curve_blocks(plain, one_score)[0] != []


def test_curves_of_both_kinds_are_each_shown_with_their_own_rows(evaluated):
    plain = curve("m", 150, np.array([0, 1]), np.array([0.2, 0.8]), config="")
    both = pa.concat_tables([evaluated.curves, plain])
    note, shown = told(report_rows(evaluated.to_arrow()), both)
    assert shown.keys() == expected(evaluated.curves).keys()
    assert note == "1 curve of models, slices or settings that the rows do not have is left out."
