"""Who is better, as the report tells it: the tables' own figures, since when, and no more than they say."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from html import escape
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.compare.comparisons import (
    LOWER_IS_BETTER,
    Checkpoint,
    FoldMean,
    compare_learners,
    found_since,
)
from rocsteady.pipelines.report.better import PAIRS_SHOWN, better_section
from rocsteady.pipelines.report.comparisons import comparisons_of, means_of
from rocsteady.pipelines.report.render import render
from rocsteady.pipelines.report.report import report_page, write_report
from rocsteady.pipelines.report.report_rows import Tables, report_rows
from rocsteady.pipelines.words import DASH, p_value
from rocsteady.transforms.sinks.comparisons import (
    COMPARISON_SCHEMA,
    MEAN_SCHEMA,
    comparisons_to_arrow,
    means_to_arrow,
)
from rocsteady.transforms.sinks.table import write_table

from tests.support.pages.comparison_files import compared_tables, edited, fold_rows
from tests.support.pages.report_tables import NASTIER, NASTY, evaluated_rows
from tests.support.processes.command import call


class ParsedTables(HTMLParser):
    """Tables of a page: rows of (tag, scope, text), and every tag with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.tags, self.cell = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.cell = [tag, dict(attributes).get("scope"), ""]
            self.tables[-1][-1].append(self.cell)
        elif tag == "br" and self.cell:
            self.cell[2] += "\n"

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self.cell = None

    def handle_data(self, data):
        if self.cell:
            self.cell[2] += data


def texts(table):
    return [[cell[2] for cell in row] for row in table]


def html_of(found):
    """The section as it stands in a page, in one line."""
    return one_line(render("better.html", better=found.facts))


def one_line(html):
    return " ".join(html.split())


def section(comparisons, means=None):
    return html_of(better_section(comparisons_of(comparisons), None if means is None else means_of(means)))


@pytest.fixture(scope="module")
def tables():
    return compared_tables()


# ---- the facts


def test_a_last_checkpoint_with_too_few_folds_is_told_and_not_used():
    values = np.array([[0.8 + 0.01 * fold for fold in range(8)], [0.7 + 0.01 * fold for fold in range(8)]])
    rows = [
        row
        for place in range(3)
        for row in compare_learners(["a", "b"], values, "auc", Checkpoint(place, None, place))
    ]
    late = values.copy()
    late[:, 2:] = np.nan
    rows += compare_learners(["a", "b"], late, "auc", Checkpoint(3, None, 3))
    (one,) = comparisons_of(comparisons_to_arrow(rows))
    assert (one.at.checkpoint, one.folds, one.last.checkpoint, one.last_folds) == (2, 8, 3, 2)
    assert one.leader is not None
    assert (one.leader.learner, one.leader.since.checkpoint) == ("a", 0)
    page = section(comparisons_to_arrow(rows))
    assert (
        "over 8 folds at event 2, because the last checkpoint, event 3, has 2 folds: a is better than b"
        in page
    )
    assert "up to the last checkpoint (event 3)" in page


def test_means_are_of_the_last_checkpoint_with_enough_folds():
    means = [
        FoldMean(place, None, place, model, "auc", folds, 0.5 + place / 10, 0.1, 0.4, 0.9)
        for place, folds in ((0, 8), (1, 8), (2, 1))
        for model in ("a", "b")
    ]
    found = means_of(means_to_arrow(means))
    assert found.latest(0, 0) == (0.6, 0.1, 8)


@given(st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 6), st.sampled_from(["", "a", "b"]))))
def test_since_is_the_first_checkpoint_of_an_unbroken_run(found):
    found = sorted(
        {(which, at): (which, at, better) for which, at, better in found}.values(), key=lambda one: one[1]
    )
    since = found_since(found)
    runs = defaultdict(list)
    for which, at, better in found:
        runs[which].append((at, better))
    assert since.keys() == runs.keys()
    for which, run in runs.items():
        last = run[-1][1]
        first = len(run)
        while first and run[first - 1][1] == last:
            first -= 1
        assert since[which] == run[first][0]


def test_every_measure_has_the_figures_of_its_last_checkpoint(tables):
    comparisons, _ = tables
    rows = comparisons.to_pylist()
    end = max(row["checkpoint"] for row in rows)
    found = {one.measure: one for one in comparisons_of(comparisons)}
    assert found.keys() == {row["measure"] for row in rows} == {"accuracy", "auc", "log_loss"}
    seen = 0
    for row in rows:
        if row["checkpoint"] != end or row["slice"] or row["test"] == "friedman":
            continue
        one = found[row["measure"]]
        (pair,) = [
            pair
            for pair in one.pairs
            if (pair.learner_a, pair.learner_b) == (row["learner_a"], row["learner_b"])
        ]
        told = pair.over[row["test"]]
        assert (told.p_value, told.p_holm, told.better) == (row["p_value"], row["p_holm"], row["better"])
        names = ("measure", "slice", "test", "learner_a", "learner_b")
        mine = [other for other in rows if all(other[name] == row[name] for name in names)]
        first = end
        while first and next(o for o in mine if o["checkpoint"] == first - 1)["better"] == row["better"]:
            first -= 1
        assert told.since.checkpoint == first
        assert told.since.seq == next(o for o in mine if o["checkpoint"] == first)["seq"]
        if row["test"] == "nemenyi":
            assert pair.rank_difference == row["rank_b"] - row["rank_a"]
            ranks = one.friedman.ranks
            assert (ranks[row["learner_a"]], ranks[row["learner_b"]]) == (row["rank_a"], row["rank_b"])
        else:
            assert pair.wins == (row["wins_a"], row["wins_b"])
        seen += 1
    assert seen == 2 * 3 * 3  # measures over folds, pairs, tests


def test_tests_within_folds_are_summed_up(tables):
    comparisons, _ = tables
    rows = [row for row in comparisons.to_pylist() if row["slice"] and row["checkpoint"] == 4]
    found = {one.measure: one for one in comparisons_of(comparisons)}
    for measure, test in (("accuracy", "mcnemar"), ("auc", "delong")):
        for pair in found[measure].pairs:
            mine = [
                row
                for row in rows
                if row["test"] == test
                and (row["learner_a"], row["learner_b"]) == (pair.learner_a, pair.learner_b)
            ]
            told = pair.within[test]
            p_values = [row["p_value"] for row in mine]
            assert told.folds == 8
            assert told.p_values == (min(p_values), max(p_values))
            assert told.better_a == sum(row["better"] == pair.learner_a for row in mine)
            assert told.better_b == sum(row["better"] == pair.learner_b for row in mine)
            if test == "mcnemar":
                anytime = [row["p_anytime"] for row in mine]
                assert told.p_anytime == (min(anytime), max(anytime))
                assert told.anytime == sum(p <= 0.05 for p in anytime)
            else:
                assert told.p_anytime is None
    assert found["accuracy"].pairs[1].within["mcnemar"].better_a > 0  # best against poor


def test_order_and_repetition_of_rows_do_not_matter(tables):
    comparisons, means = tables
    order = np.random.default_rng(0).permutation(len(comparisons))
    mixed = pa.concat_tables([comparisons.take(order), comparisons.take(order[:100])])
    again = pa.concat_tables([means.take(np.arange(len(means))[::-1]), means])

    def known(found):
        return {
            one.measure: (
                one.at, one.folds, one.leader, dict(one.friedman.ranks) if one.friedman else None,
                {(pair.learner_a, pair.learner_b): (pair.over, pair.within, pair.wins) for pair in one.pairs},
            )
            for one in found
        }  # fmt: skip

    assert known(comparisons_of(mixed)) == known(comparisons_of(comparisons))
    one, other = means_of(means), means_of(again)
    np.testing.assert_array_equal(one.values, other.values)
    assert (one.learners, one.measures, one.moments) == (other.learners, other.measures, other.moments)


def test_means_are_the_table_and_the_best_depends_on_the_measure(tables):
    _, means = tables
    found = means_of(means)
    for row in means.to_pylist():
        place = found.measures.index(row["measure"]), found.learners.index(row["model"])
        told = found.values[(*place, slice(None), row["checkpoint"])].tolist()
        assert told == [row[name] for name in ("mean", "standard_deviation", "least", "greatest")]
    last = {
        (row["measure"], row["model"]): row["mean"] for row in means.to_pylist() if row["checkpoint"] == 4
    }
    for measure, choose in (("auc", max), ("log_loss", min)):
        held = {name: last[measure, name] for name in found.learners}
        best = [name for name in found.learners if held[name] == choose(held.values())]
        assert [found.learners[place] for place in found.best(found.measures.index(measure))] == best
    assert found.best(found.measures.index("ks_threshold")) == []
    assert "log_loss" in LOWER_IS_BETTER


def test_of_many_checkpoints_every_other_is_drawn_and_the_last(tables):
    _, means = tables
    found = means_of(means, limit=3)
    assert [moment.checkpoint for moment in found.moments] == [0, 2, 4]
    assert found.total == 5
    whole = means_of(means)
    np.testing.assert_array_equal(found.values, whole.values[..., [0, 2, 4]])


def test_the_leader_is_better_than_every_other_since_the_last_of_its_pairs():
    values = np.array([[0.9] * 10, [0.8] * 10, [0.5] * 10]) + np.arange(10) / 1_000
    tied = values.copy()
    tied[1] = values[0]
    rows = [
        row
        for checkpoint, table in enumerate((values[[2, 1, 0]], tied, values, values))
        for row in compare_learners(
            ["a", "b", "c"], table, "auc", Checkpoint(checkpoint, None, 10 * checkpoint)
        )
    ]
    (one,) = comparisons_of(comparisons_to_arrow(rows))
    assert (one.leader.learner, one.leader.test, one.leader.since) == (
        "a",
        "wilcoxon",
        Checkpoint(2, None, 20),
    )
    assert one.pairs[1].over["wilcoxon"].since.checkpoint == 1  # a against c
    html = section(comparisons_to_arrow(rows))
    assert "a is better than every other by Wilcoxon&#39;s test, since event 20." in html
    (none,) = comparisons_of(comparisons_to_arrow(rows[: len(rows) // 2]))
    assert none.leader is None


# ---- the words


def test_tables_hold_the_figures_and_have_headers(tables):
    comparisons, means = tables
    page = ParsedTables(section(comparisons, means))
    assert len(page.tables) == 6  # means twice, pairs by two measures, tests within folds by two
    for table in page.tables:
        assert {(tag, scope) for tag, scope, _ in table[0]} == {("th", "col")}
        assert all((row[0][0], row[0][1]) == ("th", "row") for row in table[1:])
        assert {len(row) for row in table} == {len(table[0])}
    found = means_of(means)
    head, *lines = texts(page.tables[0])
    assert head == ["Learner", "AUC", "H-measure", "Accuracy", "Kappa", "Kappa-m", "KS", "Brier score"]
    assert [line[0] for line in lines] == ["best", "good", "poor"]
    for line, learner in zip(lines, range(3), strict=True):
        mean, deviation, _ = found.latest(found.measures.index("auc"), learner)
        assert line[1] == f"{mean:.4f} ± {deviation:.4f}"


def test_bold_is_the_best_mean(tables):
    comparisons, means = tables
    html = section(comparisons, means)
    found = means_of(means)
    table = re.search(r"<tbody>(.*?)</tbody>", html, re.DOTALL).group(1)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
    best = found.best(found.measures.index("auc"))
    assert [place for place, row in enumerate(cells) if row[0].startswith("<b>")] == best


def test_a_pair_says_who_is_better_by_which_tests_and_since_when():
    values = np.array([[0.5] * 10, [0.9] * 10, [0.8] * 10]) + np.arange(10) / 1_000
    rows = [
        row
        for checkpoint in range(3)
        for row in compare_learners(
            ["a", "b", "c"],
            values if checkpoint else values[::-1],
            "auc",
            Checkpoint(checkpoint, None, checkpoint),
        )
    ]
    (table,) = ParsedTables(section(comparisons_to_arrow(rows))).tables
    head, *lines = texts(table)
    assert head == [
        "Pair", "Wins in folds", "Wilcoxon p", "Wilcoxon Holm p", "Sign test p", "Sign test Holm p",
        "Difference of ranks", "Better, by which test and since when",
    ]  # fmt: skip
    assert [line[0] for line in lines] == ["b against c", "b against a", "c against a"]  # best ranks first
    assert lines[0][1:7] == ["10 : 0", "0.002", "0.006", "0.002", "0.006", "1.00"]
    assert lines[1][6] == "2.00"
    assert lines[1][7] == "b: Wilcoxon, sign test since event 0; Nemenyi since event 1"
    assert lines[2][7] == "c: Wilcoxon, sign test since event 1"


def test_p_values_without_a_number_are_dashes(tables):
    comparisons, means = tables
    gone = edited(
        comparisons, [True] * len(comparisons), p_value=None, p_holm=None, p_anytime=float("nan"), better=""
    )
    page = ParsedTables(section(gone, means))
    pairs = next(texts(table) for table in page.tables if table[0][1][2] == "Wins in folds")
    assert {cell for line in pairs[1:] for cell in line[2:6]} == {DASH}
    assert {line[-1] for line in pairs[1:]} == {"no difference shown"}
    assert "no pair differs by any test" in section(gone)
    assert p_value(float(np.nextafter(0.0001, 0))) == "<0.0001"


def test_reasons_are_told_and_counted():
    rows = compare_learners(["a", "b"], np.array([[0.5, 0.6, 0.7]] * 2), "auc", Checkpoint(0, None, 9))
    html = section(comparisons_to_arrow(rows))
    assert "fewer than 6 folds: no outcome reaches .05 (2 tests)" in html
    assert "Over 3 folds neither the sign test nor Wilcoxon's can give less than 0.25" in html
    assert "evaluate with 6 folds or more" in html


def test_notes_are_those_of_the_tests_at_hand(tables):
    comparisons, _ = tables
    html = section(comparisons)
    for said in (
        "31% of all streams",
        "anytime-valid",
        "Holm's p",
        "share one stream",
        "Tests within a fold",
    ):
        assert said in html
    assert "evaluate with 6 folds" not in html
    over = section(comparisons.filter(pc.equal(comparisons["slice"], "")))
    assert "anytime-valid" not in over
    assert "Tests within a fold" not in over


# ---- what comes, comes


@pytest.mark.parametrize(
    "learners", [("only",), ("a", "b"), tuple(f"learner {n} {'long ' * 30}" for n in range(20))]
)
def test_any_number_of_learners_with_any_names(learners):
    comparisons, means = compared_tables(learners, folds=3, checkpoints=2)
    found = better_section(comparisons_of(comparisons), means_of(means))
    page = ParsedTables(html_of(found))
    assert ("svg" in {tag for tag, _ in page.tags}) == ("nemenyi" in comparisons["test"].to_pylist())
    named = [line[0] for line in texts(page.tables[0])[1:]]
    assert named == sorted(learners)
    assert sorted(found.meta["slots"]) == list(range(len(learners)))
    if len(learners) > 7:  # the best seven have the first colours
        auc = {
            row["model"]: row["mean"]
            for row in means.to_pylist()
            if (row["checkpoint"], row["measure"]) == (1, "auc")
        }
        best = sorted(learners, key=lambda name: -auc[name])[:7]
        first = [name for name, slot in zip(sorted(learners), found.meta["slots"], strict=True) if slot < 7]
        assert set(first) == set(best)
    if len(learners) == 1:
        assert "who is better than whom" not in html_of(found)


def test_names_are_text():
    comparisons, means = compared_tables((NASTY, NASTIER, "\x00"), folds=3, checkpoints=2)
    page = report_page(report_rows(fold_rows((NASTY,), 2, 2)), Tables(comparisons=comparisons, means=means))
    assert "<script>alert" not in page
    assert escape(NASTY) in page
    told = json.loads(re.search(r'id="meta">(.*?)</script>', page, re.DOTALL).group(1))
    assert told["better"]["learners"] == sorted((NASTY, NASTIER, "\x00"))
    for part in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        root = ET.fromstring(part)
        assert root[0].tag.endswith("title")
        assert root.get("role") == "img"


def test_a_measure_of_another_version_is_text_too(tables):
    comparisons, means = tables
    comparisons = edited(comparisons, [True] * len(comparisons), measure=NASTY)
    means = edited(means, [True] * len(means), measure=NASTY)
    found = better_section(comparisons_of(comparisons), means_of(means))
    assert "<script" not in html_of(found)
    assert found.meta["measures"] == [NASTY]
    assert all(re.fullmatch(r"means_\w+", name) for name in found.blocks)


def test_empty_tables_say_that_nothing_was_compared():
    page = report_page(
        report_rows(evaluated_rows(("m",), 600)),
        Tables(comparisons=COMPARISON_SCHEMA.empty_table(), means=MEAN_SCHEMA.empty_table()),
    )
    assert "Nothing was compared" in page
    assert "What these p-values are worth" not in page
    alone = report_page(report_rows(evaluated_rows(("m",), 600)))
    assert "better-title" not in re.sub("<script.*?</script>", "", alone, flags=re.DOTALL)
    assert 'href="#better"' not in alone


def test_each_table_alone_makes_a_section(tables):
    comparisons, means = tables
    html = section(COMPARISON_SCHEMA.empty_table(), means)
    assert "Means over folds" in html
    assert "p-values are worth" not in html
    assert "Means over folds" not in section(comparisons)


def test_of_very_many_pairs_those_of_least_p_values_are_listed():
    k = 26  # 325 pairs
    values = (
        np.random.default_rng(1).random((k, 6)) * 0.01 + np.arange(k)[:, None] * (np.arange(k) > 20)[:, None]
    )
    names = [f"l{place:02}" for place in range(k)]
    html = section(comparisons_to_arrow(compare_learners(names, values, "auc", Checkpoint(0, None, 1))))
    (table,) = ParsedTables(html).tables
    assert len(table) == 1 + PAIRS_SHOWN
    assert f"Listed are the {PAIRS_SHOWN} pairs" in html
    assert "holds all 325" in html


def test_the_diagram_can_be_saved_as_a_file_of_its_own(tables):
    comparisons, _ = tables
    html = section(comparisons)
    links = [attributes for tag, attributes in ParsedTables(html).tags if tag == "a"]
    assert len(links) == 2  # auc and log loss
    for link in links:
        head, _, data = link["href"].partition(",")
        assert head == "data:image/svg+xml;base64"
        assert link["download"].endswith(".svg")
        assert base64.b64decode(data).decode() in html


def test_nothing_of_the_section_comes_from_a_network(tables):
    html = section(*tables)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}


# ---- the command


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".jsonl"])
def test_the_command_reads_tables_of_every_format(ending, tables, tmp_path, capsys):
    comparisons, means = tables
    paths = [tmp_path / f"{name}{ending}" for name in ("rows", "comparisons", "means")]
    for table, path in zip((fold_rows(), comparisons, means), paths, strict=True):
        write_table(table, path)
    output = tmp_path / "report.html"
    ran = call(capsys, "report", paths[0], "--comparisons", paths[1], "--means", paths[2], "-o", output)
    assert ran.status == 0
    page = output.read_text()
    assert section(comparisons, means) in one_line(page)
    assert "Slices have no best and worst windows here" in page


def test_tables_of_an_older_rocsteady_are_read(tables, tmp_path, capsys):
    comparisons, _ = tables
    old = comparisons.filter(pc.equal(comparisons["slice"], "")).drop_columns(["slice", "p_anytime"])
    write_table(old, tmp_path / "old.parquet")
    write_table(fold_rows(), tmp_path / "rows.parquet")
    output = tmp_path / "report.html"
    ran = call(
        capsys, "report", tmp_path / "rows.parquet", "--comparisons", tmp_path / "old.parquet", "-o", output
    )
    assert ran.status == 0
    assert "Wilcoxon Holm p" in output.read_text()


def test_a_file_of_something_else_is_refused_with_words(tables, tmp_path, capsys):
    _, means = tables
    write_table(fold_rows(), tmp_path / "rows.parquet")
    write_table(means, tmp_path / "means.parquet")
    output = tmp_path / "report.html"
    for option, file, said in (
        ("--comparisons", "means.parquet", "holds no comparisons of rocsteady: it has no column 'learner_a'"),
        ("--means", "rows.parquet", "holds no means of rocsteady: it has no column 'checkpoint'"),
        ("--means", "none.parquet", "none.parquet"),
    ):
        ran = call(capsys, "report", tmp_path / "rows.parquet", option, tmp_path / file, "-o", output)
        assert ran.status == 2
        assert said in ran.lines[-1]
        assert not output.exists()
    ran = call(
        capsys,
        "report",
        tmp_path / "rows.parquet",
        "--means",
        tmp_path / "means.parquet",
        "-o",
        tmp_path / "means.parquet",
    )
    assert ran.status == 2


def test_write_report_takes_the_tables(tables, tmp_path):
    write_report(fold_rows(), tmp_path / "r.html", Tables(comparisons=tables[0], means=tables[1]))
    assert '<a href="#better">' in (tmp_path / "r.html").read_text()
