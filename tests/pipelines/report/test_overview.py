"""The overview and the terminal's table: which models got worse, since when; the words, and hostile names."""

from __future__ import annotations

import html
import math
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rocsteady.core.verdicts.choice import reference_of
from rocsteady.core.verdicts.judge import Judged, Verdict
from rocsteady.core.verdicts.since import Since
from rocsteady.pipelines.report.glance import LINES, glance
from rocsteady.pipelines.report.overview import overview_of, preselected
from rocsteady.pipelines.report.report import report_page
from rocsteady.pipelines.report.report_rows import report_rows
from rocsteady.pipelines.report.sparkline import Axis, bar, sparkline
from rocsteady.pipelines.report.verdicts import (
    ModelVerdict,
    _of_model,
    judge_rows,
    sentence,
    since_text,
    state_text,
)
from rocsteady.pipelines.words import letters

from tests.support.pages.planted import DAY, FIRST, planted
from tests.support.pages.report_tables import NASTY, evaluated_rows
from tests.support.processes.command import call

WINDOW_DAYS = 15


@pytest.fixture(scope="module")
def ten():
    return planted(10)


@pytest.fixture(scope="module")
def judged(ten):
    rows = report_rows(ten.rows)
    return rows, judge_rows(rows, 0.95)


def of(rows, judged, kind, faults):
    (name,) = [name for name, (each, _) in faults.items() if each == kind]
    return next(one for one in judged.models if rows.models[one.model] == name), faults[name][1]


def test_every_planted_fault_is_named(ten, judged):
    rows, found = judged
    for kind, state in (("abrupt", "worse"), ("gradual", "worse"), ("rise", "better"), ("slice", "worse")):
        assert of(rows, found, kind, ten.faults)[0].state == state
    assert state_text(of(rows, found, "slice", ten.faults)[0], rows.slices) == "worse only in region=eu"
    assert state_text(of(rows, found, "few", ten.faults)[0], rows.slices) == "cannot tell: too few labels"
    others = [one for one in found.models if rows.models[one.model] not in ten.faults]
    assert {one.state for one in others} == {"no change shown"}


@pytest.mark.parametrize("kind", ["abrupt", "gradual", "slice", "rise"])
def test_a_fault_is_dated_within_a_window(ten, judged, kind):
    one, at = of(*judged, kind, ten.faults)
    since = one.shown.since
    window = WINDOW_DAYS / (0.35 if kind == "slice" else 1)
    assert abs((since.time - FIRST) / DAY - at) <= window
    assert (since.time_earliest - FIRST) / DAY <= at + 1
    assert (since.time_latest - FIRST) / DAY >= at - 1


def test_the_sentence_and_the_order(ten, judged):
    rows, found = judged
    assert sentence(found.models, rows.models, rows.slices) == (
        "2 of 10 models rank worse than they did; 1 ranks worse only in region=eu; 1 ranks better than it "
        "did; 5 show no change; 1 has too few labels."
    )
    kinds = [ten.faults.get(rows.models[one.model], ("",))[0] for one in found.models]
    assert {*kinds[:2]} == {"abrupt", "gradual"}
    assert kinds[2:4] == ["slice", "few"]
    assert kinds[-1] == "rise"
    assert preselected(found) == [one.model for one in found.models[:3]]


def model_verdict(model, state, *, slices=(), why="", change=-0.1):
    whole = Verdict(model, 0, "no change shown" if slices else state, why, 9, change=change)
    parts = [Verdict(model, part, state, "", 9, change=change) for part in slices]
    return ModelVerdict(model, state, whole, parts, [], {})


@pytest.mark.parametrize(
    ("models", "told"),
    [
        ([], "There is no model to judge: there are no rows."),
        ([model_verdict(0, "worse")], "m0 ranks worse than it did."),
        ([model_verdict(0, "worse", slices=[1])], "m0 ranks worse only in c=1."),
        ([model_verdict(0, "worse", slices=[1, 2])], "m0 ranks worse only in 2 slices."),
        ([model_verdict(0, "no change shown")], "m0 shows no change."),
        ([model_verdict(0, "cannot tell", why="no AUC")], "m0 has no AUC."),
        (
            [model_verdict(k, "no change shown") for k in range(3)],
            "None of 3 models ranks worse than it did; 3 show no change.",
        ),
        (
            [model_verdict(0, "worse"), *(model_verdict(k, "worse", slices=[k]) for k in (1, 2))],
            "1 of 3 models ranks worse than it did; 2 rank worse only in slices.",
        ),
        (
            [
                model_verdict(0, "better"),
                model_verdict(1, "better", slices=[2]),
                model_verdict(2, "cannot tell", why="no full window"),
                model_verdict(3, "cannot tell", why="no earlier window"),
            ],
            (
                "None of 4 models ranks worse than it did; 1 ranks better than it did; 1 ranks better only "
                "in c=2; 2 have no earlier window."
            ),
        ),
    ],
)
def test_the_sentence_in_its_forms(models, told):
    assert sentence(models, ["m0", "m1", "m2", "m3"], ["", "c=1", "c=2"]) == told


def test_when_a_change_began_in_words():
    at = [FIRST + day * DAY for day in (0, 1, 9, 40)]
    none = [math.nan] * 3
    assert since_text(None) == ""
    assert since_text(Since(10, 10, 10, *none, 10, math.nan, 0.8)) == "since event 10"
    assert (
        since_text(Since(10, 8, 12, *none, 40, math.nan, 0.8)) == "gradually from event 10 (8 to 12) until 40"
    )
    sudden = Since(10, 8, 12, at[1], at[0], at[2], 10, at[1], 0.8)
    assert since_text(sudden) == "since 2 Jan 2026 (1 Jan to 10 Jan)"
    assert since_text(sudden, interval=False) == "since 2 Jan 2026"
    gradual = sudden._replace(until=40, time_until=at[3])
    assert since_text(gradual) == "gradually from 2 Jan 2026 (1 Jan to 10 Jan) until 10 Feb 2026"
    hours = Since(10, 8, 12, at[0] + 1, at[0] + 2, at[0] + 3, 10, at[0] + 1, 0.8)
    assert since_text(hours) == "since 1 Jan 2026, 00:00"
    years = sudden._replace(time_earliest=FIRST - DAY)
    assert since_text(years) == "since 2 Jan 2026 (31 Dec 2025 to 10 Jan 2026)"


def lines_of(page):
    return re.findall(r'<tr class="[a-z-]*" data-model.*?</tr>', page, re.DOTALL)


def text_of(markup):
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup)))


def test_the_page_opens_with_the_sentence_and_the_worst(ten, judged):
    rows, found = judged
    page = report_page(report_rows(ten.rows))
    main = page[page.index("<main") :]
    assert main.index('class="sentence"') < main.index("<svg") < main.index('id="over-time"')
    assert f">{sentence(found.models, rows.models, rows.slices)}</h2>" in page
    lines = lines_of(page)
    assert len(lines) == 10
    (gradual,) = [name for name, (kind, _) in ten.faults.items() if kind == "gradual"]
    (told,) = [text_of(line) for line in lines if gradual in line]
    assert "worse" in told
    assert "gradually from" in told
    assert "\N{MINUS SIGN}0." in told
    assert page.count('class="bar"') >= 10


def test_a_line_of_a_slice_has_the_evidence_of_that_slice(ten, judged):
    rows, found = judged
    overview = overview_of(rows, found, 0.95)
    line = next(line for line in overview.lines if line.part)
    one = found.models[line.keys["place"]]
    series = one.series[one.slices[0].slice]
    assert line.part == "region=eu"
    assert line.auc.startswith(f"{series.auc[one.shown.row]:.3f} [")
    assert line.change == overview_of(rows, found, 0.95).lines[line.keys["place"]].change
    assert line.whole
    assert line.keys["change"] == one.slices[0].change
    before = one.shown.since.before
    assert line.levels == f"from {before:.3f} to {series.auc[one.shown.row]:.3f}"
    worse = next(line for line in overview.lines if line.state == "worse" and not line.part)
    level = float(worse.levels.split(" ")[1])
    assert 0.7 < level < 0.9


def test_slices_that_cannot_be_judged_are_counted(ten):
    rows = report_rows(planted(4, n=3_000, window=900, kinds=()).rows)
    overview = overview_of(rows, judge_rows(rows, 0.95), 0.95)
    assert re.fullmatch(
        r"\d+ of 16 slices of models cannot be judged: \d+ with no earlier window.*\.", overview.unjudged
    )
    assert overview.unjudged in report_page(rows)


def test_a_bar_is_true_to_its_axis():
    drawn = bar(0.75, 0.7, 0.8, 0.9, Axis(0.5, 1.0))
    assert 'cx="60.0"' in drawn
    assert 'd="M48.8 8H71.2"' in drawn
    assert 'd="M93.6 1V15"' in drawn
    assert bar(math.nan, math.nan, math.nan, math.nan, Axis(0.5, 1.0)) == ""


def test_a_sparkline_has_all_the_range_of_the_rows(judged):
    _, found = judged
    series = found.models[0].series[found.models[0].whole.slice]
    points = [
        tuple(map(int, point.split()))
        for point in re.search(r'class="line" d="M([^"]*)"', sparkline(series, math.nan)).group(1).split("L")
    ]
    across = [x for x, _ in points]
    assert across == sorted(across)
    assert (across[0], across[-1]) == (3, 117)
    first = series.auc[np.flatnonzero(series.full)[0]]
    assert (points[-1][1] > points[0][1]) == (series.auc[-1] < first)
    assert "since" in sparkline(series, float(series.end[-1] - 100))
    assert sparkline(series._replace(auc=np.full(len(series.auc), np.nan)), math.nan) == ""


def test_open_alerts_are_counted_by_model(judged):
    rows, found = judged
    name = rows.models[3]
    overview = overview_of(rows, found, 0.95, None, {name: 3, "other": 9})
    assert [line.alerts for line in overview.lines if line.name == name] == [3]
    assert sum(line.alerts for line in overview.lines) == 3
    assert overview.alerted
    assert not overview_of(rows, found, 0.95).alerted


def test_nasty_names_are_text():
    page = report_page(report_rows(evaluated_rows()))
    assert NASTY not in page
    assert "b<i>" not in page
    assert "%3Cscript%3E" in page


def test_rows_of_slices_alone_are_judged(ten):
    only = ten.rows.filter(pc.not_equal(ten.rows["slice"], ""))
    rows = report_rows(only)
    found = judge_rows(rows, 0.95)
    one, _ = of(rows, found, "slice", ten.faults)
    assert (one.whole, one.state) == (None, "worse")
    assert "only in" in sentence(found.models, rows.models, rows.slices)
    assert report_page(rows)
    assert len(glance(rows, 0.95)) <= LINES


# ---- the terminal


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_for_a_terminal_fits(judged, width):
    rows, found = judged
    lines = glance(rows, 0.95, below=["how to go on"], width=width)
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= width
    assert lines[-1] == "how to go on"
    assert " ".join(lines[:4]).startswith(sentence(found.models, rows.models, rows.slices)[:60])
    if width == 200:
        assert any("worse only in region=eu -0." in line and "since" in line for line in lines)


def test_the_table_says_that_measures_are_of_a_slice_where_only_the_slice_changed(judged):
    rows, found = judged
    said = "Of a model that changed only in a slice, the measures are those of the slice."
    assert any(one.only_in_slices for one in found.models)
    assert said in glance(rows, 0.95)
    assert said not in glance(report_rows(planted(6, kinds=("abrupt",)).rows), 0.95)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_narrow_terminal_keeps_the_verdict(width):
    rows = report_rows(planted(6, kinds=("abrupt",)).rows)
    wide = "\u6f22\u5b57"
    long = [f"models/of a team with a long name/{wide * (place % 2)}{place}" for place in range(6)]
    lines = glance(replace(rows, models=long), 0.95, width=width)
    table = lines[lines.index("") + 1 :]
    assert max(map(letters, lines)) <= width
    assert re.search(r"worse -0\.\d{3}, since \d+ \w+ 2026", table[1])
    assert all("no change shown" in line for line in table[2:])
    columns = {letters(line[: line.index("0.")]) for line in table[1:]}
    assert len(columns) == 1


def test_a_better_model_does_not_hide_a_slice_that_is_worse():
    whole = Verdict(0, 0, "better", "", 9, change=0.05)
    judged = [
        Verdict(0, 1, "worse", "", 9, change=-0.2),
        Verdict(0, 2, "better", "", 9, change=0.1),
    ]
    parts = [(Judged(0, part, name, None), verdict) for part, name, verdict in (
        (0, "", whole), (1, "c=NZ", judged[0]), (2, "c=AU", judged[1]),
    )]  # fmt: skip
    one = _of_model(0, parts)
    assert (one.state, one.only_in_slices) == ("worse", True)
    assert [verdict.slice for verdict in one.slices] == [1]
    assert [verdict.slice for verdict in one.others] == [2]
    assert sentence([one], ["m"], ["", "c=NZ", "c=AU"]) == "m ranks worse only in c=NZ."


def test_many_models_are_cut_and_counted():
    rows = report_rows(planted(40, n=2_000, window=500, kinds=()).rows)
    lines = glance(rows, 0.95, below=["a", "b"])
    assert len(lines) == LINES
    (left,) = [
        line for line in lines if re.fullmatch(r"\.\.\. and \d+ more, none of them worse than these", line)
    ]
    named = sum(line.startswith("team") for line in lines)
    assert f"and {40 - named} more" in left
    assert lines[-2:] == ["a", "b"]


def test_a_window_that_is_too_large_is_told():
    rows = report_rows(planted(3, n=2_000, window=1_900, kinds=()).rows)
    lines = glance(rows, 0.95)
    assert lines[0] == "None of 3 models can be judged: 3 have no earlier window."
    said = " ".join(lines)
    assert "Windows hold up to 1,900 events: wait for more, or evaluate with a smaller --window." in said
    assert "compared with" not in said
    assert "compared with the windows of the 3 rows before" in glance(rows, 0.95, reference_of("3 rows"))


def test_rows_without_anything_say_so():
    assert glance(report_rows(planted(1, n=300, kinds=()).rows.slice(0, 0)), 0.95) == [
        "There is no model to judge: there are no rows."
    ]  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def test_show_tells_what_the_page_tells(ten, here, capsys):
    pq.write_table(ten.rows, "rows.parquet")
    ran = call(capsys, "show", "rows.parquet", "--confidence", "0.95")
    assert ran.status == 0
    assert ran.out.startswith(
        "2 of 10 models rank worse than they did; 1 ranks worse only in region=eu; 1 ranks"
    )
    assert len(ran.out.splitlines()) <= LINES
    assert ran.lines == []
    assert call(capsys, "show", "rows.parquet").lines[0].endswith("(--confidence says otherwise).")


def test_show_reads_a_folder_and_a_reference(ten, here, capsys):
    (here / "rows").mkdir()
    half = len(ten.rows) // 2
    pq.write_table(ten.rows.slice(0, half), "rows/a.parquet")
    pq.write_table(ten.rows.slice(half), "rows/b.parquet")
    whole = call(capsys, "show", "rows/")
    assert whole.out.startswith("2 of 10 models rank worse")
    recent = call(capsys, "show", "rows/", "--reference", "1 row")
    assert recent.out.startswith("None of 10 models ranks worse")
    wrong = call(capsys, "show", "rows/", "--reference", "last month")
    assert (wrong.status, len(wrong.lines)) == (2, 1)
    assert "reference 'last month'" in wrong.lines[0]
    missing = call(capsys, "show", "nothing.parquet")
    assert missing.status == 2


def test_a_report_names_its_reference(ten, here, capsys):
    pq.write_table(ten.rows, "rows.parquet")
    ran = call(capsys, "report", "rows.parquet", "-o", "r.html", "--reference", "2026-01-01..2026-02-01")
    assert ran.status == 0
    page = (here / "r.html").read_text()
    assert "the windows within 2026-01-01..2026-02-01" in page
    rows = report_rows(ten.rows)
    found = judge_rows(rows, 0.95, reference_of("2026-01-01..2026-02-01"))
    assert sentence(found.models, rows.models, rows.slices) in page


EVIL = "m\x1b[2J\x1b[1;1Hgone\u202e\nrocsteady: all is well"


def test_names_from_outside_cannot_move_the_cursor(here, capsys):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 4_000)
    frame = {
        "model": [EVIL] * 4_000,
        "score": rng.normal(labels * (np.arange(4_000) < 3_000)),
        "label": labels,
        "site": ["s\x1b[31m"] * 4_000,
    }
    pq.write_table(pa.table(frame), "e.parquet")
    ran = call(capsys, "evaluate", "e.parquet", "--window", "last:500", "--every", "100", "--slice", "site")
    assert ran.status == 0
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert "m\\x1b[2J" in ran.out
    assert "worse" in ran.out
    assert not any(line.startswith("rocsteady: all is well") for line in ran.out.splitlines())


def test_dead_letters_stand_beside_their_models(here, capsys):
    table = {
        "model": ["a"] * 300 + ["b"] * 300,
        "score": [None, *(i % 7 for i in range(299)), *(i % 5 for i in range(300))],
        "label": [int(i % 3 == 0) for i in range(600)],
    }
    pq.write_table(pa.table(table), "e.parquet")
    asked = ("evaluate", "e.parquet", "--output", "rows.parquet", "--dead-letters", "dead.jsonl")
    assert call(capsys, *asked, "--report", "r.html").status == 0
    again = ("report", "rows.parquet", "--dead-letters", "dead.jsonl", "-o", "again.html")
    assert call(capsys, *again).status == 0
    for page in ("r.html", "again.html"):
        told = [text_of(line) for line in lines_of((here / page).read_text())]
        assert ["1 dead letter" in line for line in sorted(told)] == [True, False]
