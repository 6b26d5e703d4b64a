"""Several columns of scores: rows are those of the long form, a record for each score, to the last bit."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.transforms.evaluate import choices
from rocsteady.transforms.events.fields import EventFields

from tests.support.processes.command import call
from tests.support.streams.frame_runs import SPAN, assert_as_command, assert_same, some_frame

WAYS = [
    {"window": "last:100", "every": 20},
    {"time": "t", "window": "last:7d", "every": "1d"},
    {"time": "t", "id": "key", "every": 50},
    {"time": "t", "id": "key", "deduplicate": "10d", "every": 50},
    {"time": "t", "order": "time:5d", "every": 50, "slices": ["country", ("country", "device")]},
    {"weight": "w", "every": 70, "window": "fading:50"},
]


def wide_frame(n: int, seed: int) -> pl.DataFrame:
    """Return records with the scores `p` and `q`; where one of them is bad, the other need not be."""
    other = some_frame(n, seed + 100)["p"]
    return some_frame(n, seed).with_columns(q=other)


def long_form(frame: pl.DataFrame, prefix: pl.Expr) -> pl.DataFrame:
    """Return a row for each score, next to each other."""
    each = [
        frame.with_columns(model=prefix + name, p=pl.col(name), place=pl.int_range(pl.len())).drop("q")
        for name in ("p", "q")
    ]
    return pl.concat(each).sort("place", maintain_order=True)


def letters_of(evaluated):
    """What dead letters say, but their positions, and the record."""
    letters = evaluated.to_polars(), pl.DataFrame(evaluated.dead_letters)
    columns = ("kind", "reason", "model", "time", "id", "value", "detail", "gap_seconds")
    return sorted(letters[1].select(columns).rows(), key=repr)


@pytest.mark.parametrize("keywords", WAYS, ids=str)
@pytest.mark.parametrize("models", ["of a column", "bare", "one"])
def test_rows_are_those_of_the_long_form(monkeypatch, keywords, models):
    frame = wide_frame(900, seed=1)
    if models == "of a column":
        long, how = long_form(frame, pl.when(pl.col("model") != "").then(pl.col("model") + "/")), {}
    elif models == "bare":
        frame = frame.drop("model")
        long, how = long_form(frame, pl.lit("")), {}
    else:
        long, how = long_form(frame, pl.lit("one/")), {"model_name": "one"}
    expected = rs.evaluate(long, score="p", label="clicked", **keywords)
    monkeypatch.setattr(choices, "CHUNK_ROWS", 97)
    monkeypatch.setattr(choices, "_ROWS_AT_ONCE", 0)
    wide = rs.evaluate(frame, score=["p", "q"], label="clicked", **how, **keywords)
    assert_same(wide.to_arrow(), expected.to_arrow())
    assert wide.counters == expected.counters
    assert letters_of(wide) == letters_of(expected)
    counts = wide.counters
    lost = counts["dead_letters"] + counts["late"] + counts["duplicate"]
    assert counts["events_read"] == 2 * frame.height == counts["events_applied"] + lost


def test_a_bad_score_is_a_dead_letter_of_its_own_model():
    frame = pl.DataFrame({"a": [0.1, None, 0.3], "b": [0.2, 0.4, float("inf")], "label": [1, 0, None]})
    evaluated = rs.evaluate(frame, score=["a", "b"])
    assert evaluated.counters["events_applied"] == 3
    letters = evaluated.dead_letters
    assert letters.select("position", "model", "field", "value", "detail").rows() == [
        (1, "a", "a", None, "score: missing"),
        (2, "a", "label", None, "label: missing"),
        (2, "b", "b", "inf", "score: inf is not finite; label: missing"),
    ]
    assert letters["raw"][0] == '{"a": null, "b": 0.4, "label": 0}'
    assert evaluated.summary()["model"].to_list() == ["a", "b"]


def test_a_list_of_one_column_is_a_model_of_its_name():
    frame = pl.DataFrame({"a": [0.1, 0.5], "label": [1, 0]})
    assert rs.evaluate(frame, score=["a"]).summary()["model"].to_list() == ["a"]
    assert rs.evaluate(frame, score="a").summary()["model"].to_list() == ["model"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"scores": ("a", "a")}, "the column of scores 'a' is named twice; name each column once"),
        ({"scores": ("a", 1)}, "score=1: give the name of a column, as text"),
        ({"scores": ("b", "a/b"), "model": "m"},
         "the columns of scores 'b' and 'a/b' may give two models one name, such as 'x/a/b'; rename one"),
        ({"model_name": ""}, "model_name='': give a name, as text"),
    ],
    ids=str,
)  # fmt: skip
def test_columns_that_do_not_tell_models_apart_are_refused(fields, words):
    with pytest.raises(rs.ConfigError) as told:
        EventFields(**fields)
    assert words in str(told.value)


@pytest.mark.parametrize("score", [[], (), 1, None], ids=str)
def test_no_column_of_scores_is_refused(score):
    with pytest.raises(rs.ConfigError, match="give the name of a column as text, or a list of names"):
        rs.evaluate(pl.DataFrame({"score": [0.5], "label": [1]}), score=score)


# ---- the command

LABEL = ("--label", "clicked")
OPTIONS = ("--score", "p", "--score", "q", *LABEL)


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (("--window", "last:100", "--every", "20"), {"window": "last:100", "every": 20}),
        (("--time", "t", "--id", "key", "--deduplicate", "10d"),
         {"time": "t", "id": "key", "deduplicate": "10d"}),
        (("--time", "t", "--order", "time:5d", "--slice", "country"),
         {"time": "t", "order": "time:5d", "slices": "country"}),
        (("--model-name", "one"), {"model_name": "one"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_the_command_gives_the_same(capsys, tmp_path, options, keywords):
    frame = wide_frame(900, seed=2)
    path = tmp_path / "events.parquet"
    frame.write_parquet(path)
    evaluated = rs.evaluate(frame, score=["p", "q"], label="clicked", **keywords)
    assert_as_command(capsys, evaluated, path, *OPTIONS, *options)


def sound_frame(n, seed):
    """Records whose values are the same in every format."""
    return some_frame(n, seed, sound=True).with_columns(q=some_frame(n, seed + 1, sound=True)["p"])


def rows_of(capsys, source, *options):
    ran = call(capsys, "evaluate", source, *OPTIONS, *options, "--output", "rows.parquet")
    assert ran.status == 0, ran
    assert any("s read = 1,200 applied + 0 dead letters; " in line for line in ran.lines)
    return pq.read_table("rows.parquet")


@pytest.mark.parametrize("source", ["events.csv", "events.jsonl", "folder"])
def test_every_source_gives_the_same_rows(capsys, tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    frame = sound_frame(600, seed=3)
    expected = rs.evaluate(frame, score=["p", "q"], label="clicked", every=40)
    options = ["--every", "40"]
    if source.endswith("csv"):
        frame.write_csv(source)
    elif source == "folder":
        (tmp_path / source).mkdir()
        frame[:250].write_ndjson(tmp_path / source / "1.jsonl")
        frame[250:].write_csv(tmp_path / source / "2.csv")
        (tmp_path / source / "_END").touch()
        options.append("--follow")
    else:
        frame.write_ndjson(source)
    assert_same(rows_of(capsys, source, *options), expected.to_arrow())


def test_stdin_gives_the_same_rows(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = sound_frame(600, seed=3)
    frame.write_ndjson("lines.jsonl")
    with Path("lines.jsonl").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        rows = rows_of(capsys, "-", "--every", "40")
    assert_same(rows, rs.evaluate(frame, score=["p", "q"], label="clicked", every=40).to_arrow())


def test_labels_that_come_later_serve_every_score(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = sound_frame(600, seed=4).with_columns(key=pl.int_range(600).cast(pl.String))
    frame.drop("clicked").write_parquet("predictions.parquet")
    labels = frame.select("key", "clicked", known=pl.col("t") + 3_600)
    labels.write_parquet("labels.parquet")
    rows = rows_of(
        capsys, "predictions.parquet", "--time", "t", "--id", "key", "--labels", "labels.parquet",
        "--label-time", "known",
    )  # fmt: skip
    later = frame.with_columns(t=pl.col("t") + 3_600)
    expected = rs.evaluate(later, score=["p", "q"], label="clicked", time="t", id="key")
    assert_same(rows, expected.to_arrow())
    assert SPAN > 3_600


def test_a_missing_column_of_scores_is_named(capsys, tmp_path):
    path = tmp_path / "events.parquet"
    sound_frame(30, seed=1).write_parquet(path)
    ran = call(
        capsys, "evaluate", path, "--score", "p", "--score", "r", "--label", "clicked", "--output", "-"
    )
    assert ran.status == 2
    assert f"{path} has no column 'r'" in ran.lines[0]
    assert "Say which with --score COL" in ran.lines[0]


def test_the_same_column_twice_is_refused(capsys, tmp_path):
    path = tmp_path / "events.parquet"
    sound_frame(30, seed=1).write_parquet(path)
    ran = call(
        capsys, "evaluate", path, "--score", "p", "--score", "p", "--label", "clicked", "--output", "-"
    )
    assert ran.status == 2
    assert "the column of scores 'p' is named twice; name each column once" in ran.lines[0]
