"""`rs.evaluate` on frames of every package: what it takes, what it gives, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import rocsteady as rs
from rocsteady.core.settings.choices import EvaluatorChoices
from rocsteady.core.settings.table import TableChoices
from rocsteady.pipelines.frames.evaluate import FrameChoices, evaluate
from rocsteady.transforms.events.fields import EventColumns

from tests.support.streams.frame_runs import NAMED, assert_same, of_command, some_frame

KINDS = {
    "polars": (lambda frame: frame, pl.DataFrame),
    "lazy": (pl.DataFrame.lazy, pl.DataFrame),
    "pandas": (pl.DataFrame.to_pandas, pd.DataFrame),
    "arrow": (pl.DataFrame.to_arrow, pa.Table),
    "batch": (lambda frame: frame.to_arrow().combine_chunks().to_batches()[0], pa.Table),
}


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_frames_of_the_same_package(kind):
    make, made = KINDS[kind]
    frame = some_frame(600, seed=3)
    evaluated = rs.evaluate(make(frame), **NAMED, time="t", every=100, curves=100)
    for name in ("rows", "dead_letters", "curves"):
        table = getattr(evaluated, name)
        assert type(table) is made
        assert len(table)
    assert type(evaluated.summary()) is made
    assert evaluated.counters == rs.evaluate(frame, **NAMED, time="t", every=100, curves=100).counters


@pytest.mark.parametrize("kind", ["lazy", "arrow", "batch"])
def test_rows_do_not_depend_on_the_package(kind):
    frame = some_frame(600, seed=4)
    one, other = (rs.evaluate(each, **NAMED, every=50) for each in (frame, KINDS[kind][0](frame)))
    assert_same(one.to_arrow(), other.to_arrow())
    assert one.dead_letters.to_dicts() == pl.DataFrame(other.dead_letters).to_dicts()


def test_a_frame_of_pandas_has_the_rows_of_the_file_that_pandas_writes(capsys, tmp_path):
    """pandas has no null numbers beside NaN: both are missing in its frames and in its files."""
    frame = some_frame(600, seed=5).to_pandas()
    path = tmp_path / "events.parquet"
    frame.to_parquet(path)
    rows, letters, _ = of_command(capsys, path, "--score", "p", "--label", "clicked")
    evaluated = rs.evaluate(frame, **NAMED)
    assert_same(evaluated.to_arrow(), rows)
    assert evaluated.dead_letters.raw.tolist() == letters.column("raw").to_pylist()
    assert set(evaluated.dead_letters.reason) == set(letters.column("reason").to_pylist())


def test_every_value_of_a_column_of_objects_is_an_event_or_a_dead_letter():
    frame = pd.DataFrame(
        {
            "score": [0.1, "0.9", "n/a", None, 10**400, [1], b"0.5", float("nan")],
            "label": [1, "0", True, 0] * 2,
        }
    )
    evaluated = rs.evaluate(frame)
    assert evaluated.counters["events_applied"] == 3
    letters = evaluated.dead_letters
    assert dict(zip(letters.position, letters.reason, strict=True)) == {
        2: "score is not a number", 3: "score is missing", 4: "score is not finite",
        5: "score is not a number", 7: "score is not finite",
    }  # fmt: skip


def test_objects_in_a_frame_of_polars_are_what_they_say():
    scores = pl.Series("score", [0.25, "0.5", "x", None], dtype=pl.Object)
    evaluated = rs.evaluate(pl.DataFrame([scores, pl.Series("label", [0, 1, 1, 0])]))
    assert evaluated.counters["events_applied"] == 2
    assert evaluated.dead_letters["detail"].to_list() == ["score: 'x' is not a number", "score: missing"]


def test_a_summary_is_a_row_a_model():
    frame = some_frame(900, seed=6, sound=True)
    evaluated = rs.evaluate(frame, **NAMED, slices=["country"], every=10_000)
    summary = evaluated.summary()
    assert summary["model"].to_list() == ["a", "b", "\u00fc"]
    assert summary["seq"].to_list() == [frame.filter(model=name).height for name in summary["model"]]
    whole = evaluated.rows.filter(slice="")
    assert summary["auc"].to_list() == whole["auc"].to_list()
    assert repr(evaluated).startswith("900 events read = 900 applied + 0 dead letters; ")
    assert f"{summary['auc'][0]:.4f}" in repr(evaluated)
    assert "<table>" in evaluated._repr_html_()


def test_a_summary_says_which_model_got_worse_and_since_when():
    rng = np.random.default_rng(1)
    n = 9_000
    labels = rng.integers(0, 2, n)
    model = np.arange(n) % 3
    hour = np.arange(n).astype("datetime64[h]").astype("datetime64[us]")
    falls = (model == 1) & (np.arange(n) >= 6_000)
    rare = (model == 2) & (rng.random(n) < 0.97)
    frame = pl.DataFrame(
        {
            "model": [f"m{code}" for code in model],
            "score": rng.normal(labels * np.where(falls, 0.1, 1.5)),
            "label": np.where(rare, 0, labels),
            "t": hour,
        }
    )
    summary = rs.evaluate(frame, time="t", window="last:400", every=50).summary()
    assert summary["state"].to_list() == ["no change shown", "worse", "cannot tell"]
    assert summary["change_high"][1] < 0 < summary["change_high"][0]
    assert summary["change_p"][1] < 0.05 < summary["change_p"][0]
    assert summary["change"][2] is None
    assert abs(summary["since_event"][1] - 2_000) <= 100
    assert abs((summary["since"][1].replace(tzinfo=None) - hour[6_000].item()).days) <= 13
    assert summary["changed_slice"].to_list() == [None] * 3


def test_it_tells_of_ties_and_of_values_without_a_slice():
    frame = some_frame(600, seed=3, sound=True)
    shown = repr(rs.evaluate(frame, **NAMED, time="t", slices=["country"], slice_cap=1))
    assert " events share their time with others of their model, in an arbitrary order: id= " in shown
    assert " events of slices are in a slice of others: see slice_cap=" in shown
    assert "share their time" not in repr(rs.evaluate(frame, **NAMED))


def test_other_packages_are_given_the_same_rows():
    evaluated = rs.evaluate(some_frame(600, seed=7), **NAMED, time="t", every=100)
    arrow, polars, pandas = evaluated.to_arrow(), evaluated.to_polars(), evaluated.to_pandas()
    assert polars.equals(evaluated.rows)
    assert pandas["auc"].tolist() == pytest.approx(arrow.column("auc").to_pylist(), nan_ok=True)
    assert pandas["time"].tolist() == arrow.column("time").to_pylist()
    assert pandas["drift"].dtype == "boolean"


@pytest.mark.parametrize("make", [KINDS[kind][0] for kind in KINDS if kind != "batch"])
def test_a_frame_without_rows(make):
    evaluated = rs.evaluate(make(some_frame(30, seed=1).clear()), **NAMED, time="t", slices=["country"])
    assert len(evaluated.rows) == len(evaluated.dead_letters) == len(evaluated.summary()) == 0
    assert set(evaluated.counters.values()) == {0}
    assert repr(evaluated).startswith("0 events read = 0 applied + 0 dead letters; 0 rows\n")


def test_where_nothing_is_applied_it_says_why():
    frame = pl.DataFrame({"score": [0.5] * 3, "label": ["good", "bad", None]})
    evaluated = rs.evaluate(frame)
    assert evaluated.counters["events_applied"] == 0
    assert "  2 x label is unknown" in repr(evaluated)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"score": "scor"},
         "frame has no column 'scor' (did you mean 'score'?); it has score, label. Say which with score="),
        ({"slices": ["country"]}, "no column 'country'; it has score, label. Say which with slices="),
        ({"window": "lst:5"}, "window 'lst:5' is not known; use last:N"),
        ({"window": "last:7d"}, "window last:7d goes by event time; name the field of times with time="),
        ({"every": 0}, "every=0: give EveryEvents(n), n 1 or more, or EverySeconds('1h')"),
        ({"cost": "sever"}, "cost 'sever' is not known"),
        ({"order": "arrival"}, "order='arrival': the events of a frame have positions"),
        ({"order": "time"}, "order='time' needs times; name their column with time="),
        ({"max_ahead": "1d"}, "max_ahead='1d' needs times; name their column with time="),
        ({"deduplicate": "1d"}, "deduplicate='1d' needs times"),
        ({"measures": "aux"}, "measure 'aux' is not known"),
        ({"score": ["score", 1]}, "score=1: give the name of a column, as text"),
    ],
    ids=str,
)  # fmt: skip
def test_a_mistake_is_named_with_its_remedy(keywords, words):
    with pytest.raises((rs.ConfigError, rs.InputError)) as told:
        rs.evaluate(pl.DataFrame({"score": [0.5], "label": [1]}), **keywords)
    assert words in str(told.value)


def test_a_frame_without_columns_is_refused():
    with pytest.raises(rs.InputError, match=r"the frame has no column 'score'; it has none\."):
        rs.evaluate(pl.DataFrame())


def test_an_unknown_keyword_is_a_type_error_with_the_nearest_name():
    with pytest.raises(
        TypeError, match=r"evaluate\(\) got an unexpected keyword argument 'windw'; did you mean window=\?"
    ):
        rs.evaluate(pl.DataFrame({"score": [0.5], "label": [1]}), windw="all")


@pytest.mark.parametrize("given", ["events.parquet", {"score": [1]}, [1], pl.Series([1]), None], ids=str)
def test_what_is_no_frame_is_refused(given):
    with pytest.raises(rs.InputError, match="which is no frame; give a frame of polars, pandas or pyarrow"):
        rs.evaluate(given)


@pytest.mark.parametrize("package", ["pandas", "arrow"])
def test_columns_of_one_name_are_refused(package):
    values = [[0.5], [1], [0.7]]
    names = ["score", "label", "score"]
    frame = pd.DataFrame(np.array(values).T, columns=names)
    if package == "arrow":
        frame = pa.table(values, names=names)
    with pytest.raises(rs.InputError, match=r"columns of one name \('score' 2 times\); give each"):
        rs.evaluate(frame)


def test_names_of_columns_that_are_no_text_do_no_harm():
    frame = pd.DataFrame({0: [1, 2], "score": [0.5, 0.1], "label": [1, 0]})
    assert rs.evaluate(frame).counters["events_applied"] == 2


def test_there_is_a_keyword_for_every_setting():
    """All but shards: the frame is evaluated in one."""
    known = {*FrameChoices.__annotations__, *evaluate.__annotations__}
    wanted = {*EvaluatorChoices.__annotations__, *EventColumns.__annotations__, *TableChoices.__annotations__}
    assert wanted - known == {"shards"}
    assert not {*FrameChoices.__annotations__} & {*evaluate.__annotations__}


def test_beam_is_not_imported():
    program = """
import sys
import pyarrow as pa
import rocsteady as rs
evaluated = rs.evaluate(pa.table({"score": [0.1, 0.9, None], "label": [0, 1, 1], "t": [1, 2, 3]}), time="t")
evaluated.summary(), evaluated.rows, evaluated.dead_letters, repr(evaluated)
assert evaluated.counters["events_applied"] == 2
print(sorted({name.partition(".")[0] for name in sys.modules} & {"apache_beam", "grpc", "polars"}))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
