"""A time far from all others is told with its record: of files, of frames and of replays."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import rocsteady as rs
from rocsteady.transforms.events import doubts
from rocsteady.transforms.files.formats import SourceFile
from rocsteady.transforms.sources.files.timed_lines import survey

from tests.support.processes.command import call

DAY = 86_400
SAID = "is dated 2106-02-07T06:28:15Z: 2"


def frame(n=500, at=250, time=4_294_967_295):
    rng = np.random.default_rng(1)
    times = 1_704_067_200 + np.arange(n) * 3_600
    times[at] = time
    return pl.DataFrame({"score": rng.random(n), "label": rng.integers(0, 2, n), "t": times, "id": range(n)})


def told(caplog):
    found = [each.getMessage() for each in caplog.records if each.name == "rocsteady.times"]
    caplog.clear()
    return found


def of_times(ran):
    head = "rocsteady: "
    return [line.removeprefix(head) for line in ran.lines if line.startswith(f"{head}times in")]


@pytest.mark.parametrize("order", ["time", "position", "time:1h"])
def test_a_file_with_one_event_in_2106_is_told_of(order, tmp_path, capsys):
    path, rows = tmp_path / "e.csv", tmp_path / "rows.csv"
    frame().write_csv(path)
    ran = call(
        capsys, "evaluate", path, "--time", "t", "--order", order, "--window", "last:7d", "--every", "1d",
        "--output", rows,
    )  # fmt: skip
    (said,) = of_times(ran)
    assert ran.status == 0
    assert f"the record at position 250 of {path} {SAID}" in said
    assert "the middle 98% of the times span 20d" in said
    assert "--max-ahead 1d" in said
    assert said in doubts.told()


def test_files_are_told_of_together_and_labels_apart(tmp_path, capsys):
    events, labels = frame(), frame(time=0).select("id", "label", known=pl.col("t") + 60)
    for name, part in ("a", events[:300]), ("b", events[300:]):
        part.drop("label").write_csv(tmp_path / f"{name}.csv")
    labels.write_csv(tmp_path / "labels.csv")
    ran = call(
        capsys, "evaluate", tmp_path / "a.csv", tmp_path / "b.csv", "--time", "t", "--id", "id", "--labels",
        tmp_path / "labels.csv", "--label-time", "known", "--ttl", "1d", "--model-name", "m", "--output",
        tmp_path / "rows.csv",
    )  # fmt: skip
    of_events, of_labels = sorted(of_times(ran), key=lambda said: "labels.csv" in said)
    assert f"position 250 of {tmp_path / 'a.csv'} {SAID}" in of_events
    assert f"times in 'known': the record at position 250 of {tmp_path / 'labels.csv'} is dated" in of_labels
    assert "1970-01-01T00:01:00Z" in of_labels
    assert "--max-ahead" not in of_labels


def test_a_frame_is_told_of_and_its_report_says_so(caplog):
    evaluated = rs.evaluate(frame(), time="t")
    (said,) = told(caplog)
    assert f"the record at position 250 of frame {SAID}" in said
    assert said in evaluated._notes


def test_a_replay_is_told_of(tmp_path, caplog):
    doubts.reset()
    path = tmp_path / "e.csv"
    frame().write_csv(path)
    survey(SourceFile(str(path), "csv", gzipped=False, size=path.stat().st_size), "t", "s")
    assert SAID in told(caplog)[0]
    doubts.reset()


def test_times_without_an_outlier_are_not_told_of(caplog):
    rs.evaluate(frame(time=1_704_067_200 + 250 * 3_600), time="t")
    rs.evaluate(frame(), time=None)
    assert told(caplog) == []


def test_many_outliers_are_counted_and_the_first_are_named(caplog):
    events = frame(1_000).with_columns(
        t=pl.when(pl.col("id") >= 995).then(4_000_000_000 + pl.col("id") * 10).otherwise(pl.col("t"))
    )
    rs.evaluate(events, time="t", order="position")
    (said,) = told(caplog)
    assert said.count("the record at position") == 3
    assert "and 3 more times" in said


def test_of_files_in_order_of_position_each_is_told_of(tmp_path, capsys):
    for name in ("a", "b"):
        frame(300, 7).write_parquet(tmp_path / f"{name}.parquet")
    paths = [tmp_path / f"{name}.parquet" for name in ("a", "b")]
    ran = call(
        capsys, "evaluate", *paths, "--time", "t", "--order", "position", "--output", tmp_path / "rows.csv"
    )
    assert sorted(said.partition(" is dated")[0] for said in of_times(ran)) == [
        f"times in 't': the record at position 7 of {path}" for path in paths
    ]
