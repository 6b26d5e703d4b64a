"""The report's sections on many models: gaps between slices, roll-ups of groups, champion and challengers."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.core.errors import InputError
from rocsteady.pipelines.report.fleet.gaps import gaps_section, page_gaps
from rocsteady.pipelines.report.fleet.pairs import pairs_section
from rocsteady.pipelines.report.fleet.roll_ups import MEANS, roll_ups_section
from rocsteady.pipelines.report.fleet.tables import POINTS, drawn, series_of_table
from rocsteady.pipelines.report.report import report_page
from rocsteady.pipelines.report.report_rows import Tables, report_rows

from tests.support.pages.fleet_tables import HOUR, fleet_rows, pair_rows, slice_rows
from tests.support.pages.report_tables import NASTIER, NASTY, START, filled
from tests.support.processes.command import call
from tests.support.streams.roll_up_events import some_events

SECTION = re.compile(r'<section id="(gaps|roll_ups|pairs)".*?</section>', re.DOTALL)


def sections_of(page):
    return {found.group(1): found.group(0) for found in SECTION.finditer(page)}


def block(page, name):
    packed = re.search(rf'id="block-{name}">([^<]*)</script>', page).group(1)
    return json.loads(gzip.decompress(b64decode(packed)))


def meta(page):
    return json.loads(re.search(r'id="meta">(.*?)</script>', page, re.DOTALL).group(1))


def gaps_of(table, confidence=0.95):
    rows = report_rows(table)
    found = page_gaps(rows, confidence)
    return rows, found, gaps_section(rows, found)


# ---- gaps between slices


def test_the_worst_gap_of_a_group_is_that_of_its_latest_roll_up_row():
    table = slice_rows({"m": {"c=x": [0.8, 0.7], "c=y": [0.7, 0.8], "c=z": [0.9, 0.82], "d=1": [0.9, 0.9]}})
    rows, found, section = gaps_of(table)
    rolled = [row for row in rs.roll_up(table, by="slices").to_pylist() if row["group"] == "model=m,slice=c"]
    last = rolled[-1]
    ((group, spread),) = found.gaps.groups.items()
    assert group == (0, ("c",))  # one slice of d has no other one
    assert spread.spread.q == last["heterogeneity_q"]
    assert spread.p == last["heterogeneity_p"]
    gaps = {rows.slices[part]: gap for (_, part), (gap, _) in found.by_slice().items()}
    worst = gaps[last["worst"]]
    assert worst == tuple(last[f"worst_{end}"] for end in ("gap", "gap_low", "gap_high", "p"))
    assert [line.part for line in section.lines] == ["c=x", "c=y", "c=z"]
    assert found.names_of_groups(rows) == {"model=m,slice=c"}


def test_a_silent_slice_counts_for_a_day_with_its_last_row_and_then_no_more():
    values = {"c=x": [0.8] * 30, "c=y": [0.7] * 29 + [None], "c=z": [0.9] * 5 + [None] * 25}
    table = slice_rows({"m": values})
    rows, found, _ = gaps_of(table)
    assert {rows.slices[one.slice] for one in found.slices} == {"c=x", "c=y"}
    last = rs.roll_up(table, by="slices").to_pylist()[-1]
    assert (last["members"], last["members_silent"]) == (2, 1)
    assert min(gap.gap for gap in found.gaps.of) == last["worst_gap"]


def test_rows_behind_the_last_grid_point_do_not_hide_it():
    """The last row of a job is on no grid; a roll-up has none of it, and so have the gaps."""
    table = slice_rows({"m": {"c=x": [0.8, 0.8], "c=y": [0.7, 0.7]}})
    late = table.slice(0, 1).to_pylist()[0] | {"row": 2, "seq": 3_000, "due": None, "auc": 0.99}
    extended = pa.concat_tables([table, pa.Table.from_pylist([late], table.schema)])
    assert gaps_of(extended)[1].gaps == gaps_of(table)[1].gaps


def test_rows_on_no_grid_count_with_their_last_row():
    table = slice_rows({"m": {"c=x": [0.8, 0.8, 0.9], "c=y": [0.9, 0.7, None]}}, due=False)
    rows, found, section = gaps_of(table)
    assert [float(rows.columns["auc"][one.row]) for one in found.slices] == [0.9, 0.7]
    assert [line.part for line in section.lines] == ["c=y", "c=x"]


def test_only_slices_of_the_latest_pane_are_compared():
    panes = [START, START + HOUR]
    table = slice_rows({"m": {"c=x": [0.8, 0.9], "c=y": [0.7, 0.8], "c=z": [0.6, None]}}, panes=panes)
    rows, found, _ = gaps_of(table)
    assert {rows.slices[one.slice] for one in found.slices} == {"c=x", "c=y"}


def test_one_page_has_one_gap_for_a_slice():
    """The heatmap's cells, the table and the sentence tell the same gaps and p-values."""
    values = {"c=x": [0.6, 0.6], "c=y": [0.8, 0.8], "c=z": [0.81, 0.81]}
    table = slice_rows({"m": values, "n": {"c=x": [0.8], "c=y": [0.8], "c=z": [0.81]}})
    page = report_page(report_rows(table))
    _, found, section = gaps_of(table)
    cells = {(model, part): (gap, p, sure) for model, part, gap, p, sure, *_ in block(page, "heatmap")}
    for key, (gap, sure) in found.by_slice().items():
        assert cells[key] == (round(gap.gap, 4), round(gap.p, 6), sure)
    assert section.sentences[0].startswith(
        "1 of 6 slices ranks below the other slices of the model: m in c=x ("
    )
    assert "Slices differ by more than chance in 1 of 2 groups" in section.sentences[1]
    assert section.sentences[0].replace("<", "&lt;") in sections_of(page)["gaps"]
    assert section.lines[0].state == "worse"
    assert section.lines[0].told.startswith("below the others, p ")


def test_a_slice_of_few_labels_is_listed_and_never_named():
    table = slice_rows({"m": {"c=x": [0.5], "c=y": [0.8], "c=z": [0.8]}}, counts={"c=x": 20, "c=y": 60})
    _, found, section = gaps_of(table)
    by_part = {line.part: line for line in section.lines}
    assert by_part["c=x"].told == "too few labels to tell"
    assert by_part["c=x"].state == ""
    assert by_part["c=y"].remark.startswith("fewer than 100 positives or negatives")
    assert by_part["c=z"].remark == ""
    assert section.sentences[0].startswith("None of 3 slices is shown to rank below")
    assert not found.is_sure(0)


def test_a_slice_without_an_interval_is_not_compared_and_is_counted():
    table = slice_rows({"m": {"c=x": [0.7], "c=y": [0.8], "c=z": [1.0]}})
    _, found, section = gaps_of(table)
    assert [gap is None for gap in found.gaps.of] == [False, False, True]
    ((group,),) = ([*section.facts["groups"]],)
    assert group.slices == "2 slices, 1 without"


def test_without_slices_that_can_be_compared_there_is_no_section():
    for table in (
        filled([("a", 5)]),
        slice_rows({"m": {"c=x": [0.8]}}),
        slice_rows({"m": {"c=x": [1.0], "c=y": [1.0]}}),
    ):
        page = report_page(report_rows(table))
        assert sections_of(page) == {}
        assert meta(page)["sections"] == {}
        assert 'href="#gaps"' not in page


def test_more_slices_than_a_table_lists_are_counted_and_the_worst_are_listed(monkeypatch):
    monkeypatch.setattr("rocsteady.pipelines.report.fleet.gaps.MOST_LINES", 40)
    rng = np.random.default_rng(1)
    values = {f"c={place}": [float(auc)] for place, auc in enumerate(rng.uniform(0.7, 0.9, 60))}
    table = slice_rows({"m": values})
    _, found, section = gaps_of(table)
    page = sections_of(report_page(report_rows(table)))["gaps"]
    assert len(section.lines) == 40
    assert "20 slices with greater gaps are left out of the table" in page
    assert page.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr") == 25
    sure = [line for line in section.lines if line.state == "worse"]
    assert section.lines[: len(sure)] == sure
    assert sum(found.is_sure(place) and gap.gap < 0 for place, gap in enumerate(found.gaps.of)) == len(sure)


# ---- roll-ups


def test_a_group_has_its_mean_its_spread_and_its_extremes_in_words():
    table = fleet_rows({"a": [0.8, 0.8], "b": [0.8, 0.81], "c": [0.8, 0.6], "d": [1.0, 1.0]})
    rolled = rs.roll_up(table, by="models")
    section = roll_ups_section(rolled, 0.95)
    (line,) = section.lines
    last = rolled.to_pylist()[-1]
    assert line.auc == f"{last['auc_mean']:.3f} [{last['auc_mean_low']:.3f}, {last['auc_mean_high']:.3f}]"
    assert line.spread[0] == "differ by more than chance"
    assert f"Q {last['heterogeneity_q']:,.1f} on 2 degrees of freedom" in line.spread[1]
    assert (line.worst.name, line.worst.state) == ("c", "worse")
    assert line.worst.told == "below the others, p <0.0001"
    assert line.best.state == "better"
    assert line.members == "3"
    assert line.without.startswith("1 without: ")
    assert line.without.removeprefix("1 without: ") == last["without_reason"]
    assert section.sentences[0].startswith("models: 3 members, AUC ")
    gap = line.worst.gap.partition(" ")[0]
    assert section.sentences[1] == f"Furthest below the others of its group: c in models ({gap})."


def test_the_members_that_lie_below_are_named_first_of_every_group_and_counted():
    fleet = {"t1/a": [0.8], "t1/b": [0.8], "t1/c": [0.6], "t1/d": [0.65], "t2/a": [0.8], "t2/b": [0.8]}
    rolled = rs.roll_up(fleet_rows(fleet), by=["models", "t1/*", "t2/*"])
    _, told = roll_ups_section(rolled, 0.95).sentences
    assert re.sub("\u22120[.][0-9]+", "GAP", told) == (
        "Furthest below the others of its group: t1/c in models (GAP, and 1 more below); "
        "t1/c in t1/* (GAP, and 1 more below)."
    )
    equal = rs.roll_up(fleet_rows({"a": [0.8], "b": [0.8]}), by="models")
    assert len(roll_ups_section(equal, 0.95).sentences) == 1


def test_a_group_of_none_and_of_one_says_why_there_is_nothing_to_compare():
    rolled = rs.roll_up(fleet_rows({"t1/a": [1.0], "t2/a": [0.8], "t2/b": [1.0]}), by=["t1/*", "t2/*"])
    none, one = roll_ups_section(rolled, 0.95).lines
    assert (none.auc, none.members, none.worst) == ("1.000 [1.000, 1.000]", "0", None)
    assert none.remark == "the interval of the mean is too narrow: the interval of a member has no width"
    assert none.spread == ("not tested", "no member counts")
    assert one.spread == ("not tested", "fewer than two members count")
    page = report_page(report_rows(filled([("a", 3)])), Tables(roll_ups=rolled))
    assert "fewer than two members count" in sections_of(page)["roll_ups"]


def test_dependent_members_have_no_test_of_their_spread():
    rolled = rs.roll_up(fleet_rows({"a": [0.8], "b": [0.7]}), dependent=True)
    (line,) = roll_ups_section(rolled, 0.95).lines
    assert line.spread == ("not tested", "the members may depend on each other")
    assert line.worst.name == "b"


def test_groups_are_in_order_and_a_group_of_slices_of_the_page_is_in_the_chart_alone():
    table = pa.concat_tables(
        [fleet_rows({"t/a": [0.8], "t/b": [0.81]}), slice_rows({"t/a": {"c=x": [0.8], "c=y": [0.7]}})]
    )
    rolled = rs.roll_up(table, by=["slices", "t/*", "models"])
    page = report_page(report_rows(table), Tables(roll_ups=rolled))
    names = [one["name"] for one in block(page, "roll_ups_chart")["series"]]
    assert names == ["models", "t/*", "model=t/a,slice=c"]
    assert ["model=t/a" in line["html"] for line in block(page, "roll_ups")] == [False, False]
    assert "1 group of slices is in the chart alone" in sections_of(page)["roll_ups"]
    elsewhere = report_page(report_rows(filled([("a", 3)])), Tables(roll_ups=rolled))
    assert "model=t/a,slice=c" in block(elsewhere, "roll_ups")[2]["html"]


def test_the_chart_has_every_mean_over_time():
    rolled = rs.roll_up(fleet_rows({"a": [0.8, 0.82, None], "b": [0.7, 0.7, 0.72]}))
    page = report_page(report_rows(filled([("a", 3)])), Tables(roll_ups=rolled))
    found = block(page, "roll_ups_chart")
    (one,) = found["series"]
    rows = rolled.to_pylist()
    assert one["x"] == [row["due"].timestamp() * 1000 for row in rows]
    for name in MEANS:
        assert one[name] == [round(row[name], 5) for row in rows]
    assert one["worst"] == ["b", "b", "b"]
    assert found["step"] == 1


# ---- pairs


def test_a_pair_has_its_verdict_since_when_and_who_scored_alone():
    table = pair_rows(
        {"verdict": "undecided", "anytime_low": -0.01, "anytime_high": 0.03},
        {
            "verdict": "better",
            "anytime_low": 0.001,
            "anytime_high": 0.02,
            "only_model": 3,
            "only_against": 1_200,
        },
        {
            "verdict": "better",
            "anytime_low": 0.002,
            "anytime_high": 0.02,
            "only_model": 3,
            "only_against": 1_201,
        },
    )
    section = pairs_section(table, 0.95)
    (line,) = section.lines
    assert (line.verdict, line.state) == ("better", "better")
    assert line.since == "since 2013-01-01 02:26, after 2,000 instances"
    assert line.anytime == "[+0.002, +0.020]"
    assert (line.only_model, line.only_against) == (3, 1_201)
    assert section.sentences == ["new ranks better than old, after 3,000 instances that both scored."]
    page = report_page(report_rows(filled([("a", 3)])), Tables(pairs=table))
    assert "only new: 3; only old: 1,201" in sections_of(page)["pairs"]
    (one,) = block(page, "pairs_chart")["series"]
    assert one["anytime_low"] == [-0.01, 0.001, 0.002]
    assert one["seq"] == [1_000, 2_000, 3_000]


@pytest.mark.parametrize(
    ("values", "verdict", "why"),
    [
        ({"anytime_low": -0.1, "anytime_high": 0.1}, "undecided", "the any-time interval holds 0"),
        (
            {"reason": "anytime_low, anytime_high: fewer than 30 instances of a class so far"},
            "undecided", "fewer than 30 instances of a class so far",
        ),
        ({"seq": 0, "difference": None}, "undecided", "no instance was scored by both models"),
        (
            {"verdict": "contradicted", "reason": "anytime_low, anytime_high: no difference lies in all"},
            "contradicted", "no difference lies in all",
        ),
        (
            {"anytime_low": -0.1, "anytime_high": 0.1, "reason": "anytime_low, anytime_high: over pairs"},
            "undecided", "the any-time interval holds 0; over pairs",
        ),
    ],
)  # fmt: skip
def test_every_verdict_says_why(values, verdict, why):
    (line,) = pairs_section(pair_rows(values), 0.95).lines
    assert (line.verdict, line.why, line.state) == (verdict, why, "")


def test_pairs_are_worst_first_whole_models_before_slices_and_counted():
    table = pa.concat_tables(
        [
            pair_rows({"verdict": verdict}, model=model, slice=part)
            for model, verdict, part in (
                ("a", "better", ""), ("b{0}", "worse", ""), ("c", "undecided", ""), ("d", "better", ""),
                ("a", "worse", "c=x"),
            )
        ]
    )  # fmt: skip
    section = pairs_section(table, 0.95)
    assert [(line.model, line.part) for line in section.lines] == [
        ("b{0}", ""), ("a", ""), ("d", ""), ("c", ""), ("a", "c=x")
    ]  # fmt: skip
    assert section.sentences == [
        "2 of 4 challengers rank better than old: a, d; 1 worse: b{0}; 1 undecided: c."
    ]
    changed = pa.concat_tables([pair_rows({"verdict": "contradicted"}, model=name) for name in "ab"])
    assert pairs_section(changed, 0.95).sentences == [
        "0 of 2 challengers rank better than old; 2 contradicted, as the difference has changed: a, b."
    ]


def test_rows_that_came_twice_count_once_and_other_settings_are_a_pair_of_their_own():
    once = pair_rows({}, {"verdict": "worse"})
    other = pair_rows({}, config="fedcba987654")
    section = pairs_section(pa.concat_tables([once, once, other]), 0.95)
    assert [line.config for line in section.lines] == ["(config 0123456789ab)", "(config fedcba987654)"]
    assert [len(one["seq"]) for one in section.chart["series"]] == [2, 1]


def test_many_rows_are_thinned_and_the_last_one_stays():
    rng = np.random.default_rng(1)
    n = 3 * POINTS
    table = pa.table(
        {
            "group": pa.array(rng.choice(["a", "b"], n)), "config": pa.array(["c"] * n), "row": np.arange(n),
            "pane_start": pa.nulls(n, pa.int64()), "pane_end": pa.nulls(n, pa.int64()),
        }
    )  # fmt: skip
    series = series_of_table(table, ["group"])
    kept, step = drawn(series)
    assert step == 3
    assert sum(map(len, kept)) <= POINTS + 2
    for one, rows in zip(series, kept, strict=True):
        assert rows[-1] == one.rows[-1]
        assert (np.diff(one.rows) > 0).all()


# ---- the page and the commands


def test_names_are_text_and_the_first_lines_are_in_the_html():
    table = slice_rows({NASTY: {f"c={NASTIER}": [0.6], "c=y": [0.8], "c=z": [0.8]}})
    rolled = rs.roll_up(fleet_rows({NASTY: [0.6], NASTIER: [0.8], "x": [0.8]}), by=["models", "*</script>*"])
    pairs = pa.concat_tables([pair_rows({}, model=NASTY, against=NASTIER, slice=f"c={NASTY}")])
    page = report_page(report_rows(table), Tables(roll_ups=rolled, pairs=pairs))
    assert NASTY not in page
    assert NASTIER not in page
    found = sections_of(page)
    assert list(found) == ["roll_ups", "pairs", "gaps"]
    for name in found:
        written = found[name].partition("<tbody>")[2].partition("</tbody>")[0]
        lines = block(page, name)
        assert written.split() == "".join(line["html"] for line in lines).split()
        assert not any(NASTY in line["html"] for line in lines)


def test_sections_without_data_are_not_there():
    rows = report_rows(filled([("a", 3)]))
    empty = report_page(
        rows,
        Tables(roll_ups=rs.roll_up(fleet_rows({"a": [0.8]})).slice(0, 0), pairs=pair_rows({}).slice(0, 0)),
    )
    assert sections_of(empty) == sections_of(report_page(rows)) == {}


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_the_command_reads_roll_ups_and_pairs_in_every_format(ending, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(fleet_rows({"a": [0.8, 0.8], "b": [0.7, 0.71]}), "rows.parquet")
    assert call(capsys, "roll-up", "rows.parquet", "--output", f"fleet{ending}").status == 0
    rng = np.random.default_rng(1)
    wide = {
        "id": np.arange(600),
        "label": rng.integers(0, 2, 600),
        "p": rng.random(600),
        "q": rng.random(600),
    }
    pq.write_table(pa.table(wide), "wide.parquet")
    ran = call(
        capsys, "evaluate", "wide.parquet", "--score", "p", "--against", "q", "--every", "200",
        "--output", "of_wide.parquet", "--pairs", f"pairs{ending}", "--report", "own.html",
    )  # fmt: skip
    assert ran.status == 0, ran
    assert list(sections_of(Path("own.html").read_text())) == ["pairs"]
    given = ("--roll-ups", f"fleet{ending}", "--pairs", f"pairs{ending}", "-o", "r.html")
    ran = call(capsys, "report", "rows.parquet", *given)
    assert ran.status == 0, ran
    page = Path("r.html").read_text()
    assert list(sections_of(page)) == ["roll_ups", "pairs"]
    assert len(block(page, "pairs_chart")["series"][0]["seq"]) == 3


@pytest.mark.parametrize(("option", "what"), [("--roll-ups", "roll-ups"), ("--pairs", "pairs")])
def test_a_file_of_something_else_is_refused_in_a_sentence(option, what, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(filled([("a", 6)]), "rows.parquet")
    ran = call(capsys, "report", "rows.parquet", option, "rows.parquet", "-o", "r.html")
    assert (ran.status, len(ran.lines)) == (2, 1)
    assert f"rows.parquet holds no {what} of rocsteady" in ran.lines[0]
    assert f"rocsteady evaluate {option}" in ran.lines[0]


def test_a_result_in_python_shows_the_same_sections(tmp_path):
    events = some_events()
    result = rs.evaluate(events, time="time", window="last:400", every="1h", slices=["c"])
    rolled = rs.roll_up(result, by=["models", "t/*"])
    rng = np.random.default_rng(1)
    pair = rs.PairEvaluator(every=rs.EveryEvents(100), model="new", against="old")
    compared = pair.update(rng.integers(0, 2, 300), rng.random(300), rng.random(300))
    of_pairs = pa.Table.from_pylist([row._asdict() for row in compared])
    pages = []
    for roll_ups, pairs in (
        (rolled, compared),
        (rolled.to_pandas(), of_pairs.to_pandas()),
        (pl.DataFrame(rolled).lazy(), pl.DataFrame(of_pairs)),
    ):
        result.report(tmp_path / "r.html", roll_ups=roll_ups, pairs=pairs)
        pages.append((tmp_path / "r.html").read_text())
    assert pages[0] == pages[1] == pages[2]
    assert list(sections_of(pages[0])) == ["roll_ups", "pairs", "gaps"]
    result.report(tmp_path / "r.html")
    assert list(sections_of((tmp_path / "r.html").read_text())) == ["gaps"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"roll_ups": 3}, "'int' holds no roll-ups; give the result of roll_up"),
        ({"pairs": pa.table({"model": ["a"]})}, "the frame holds no pairs: it has no column 'against'"),
        (
            {"pairs": pair_rows({}).to_pandas().assign(seq="many")},
            "the frame holds no pairs: Failed to parse",
        ),
        ({"pairs": ["a"]}, "'list' holds no pairs; give the rows of a PairEvaluator"),
    ],
)
def test_what_is_no_roll_up_and_no_pair_is_refused_in_python(given, said, tmp_path):
    result = rs.evaluate(some_events(200))
    with pytest.raises(InputError, match=re.escape(said)):
        result.report(tmp_path / "r.html", **given)
    assert not (tmp_path / "r.html").exists()
