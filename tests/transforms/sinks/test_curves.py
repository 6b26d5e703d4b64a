"""Curves as columns say what the curves said, and are one sorted file, the same bytes each time."""

from __future__ import annotations

import gzip
import json
import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from apache_beam.testing.util import assert_that, equal_to
from rocsteady.transforms.beam.metrics import METRICS_NAMESPACE
from rocsteady.transforms.evaluate.shards import RowsCoder
from rocsteady.transforms.sinks.kinds import CURVE_SCHEMA, CURVES, curve_batches, curves_to_arrow
from rocsteady.transforms.sinks.open import SinkOptions, write_batches

from tests.support.streams.times import moments


@cache
def some_rows() -> rs.Rows:
    """Rows of several models, one of them in a pane and with times, with their curves."""
    rng = np.random.default_rng(4)
    parts = []
    for model, label, pane in (
        ("b", "", None),
        ("a", "c=1", (-60_000_000, 0)),
        ("a", "", None),
        ("ü", "", None),
    ):
        ev = rs.ModelEvaluator(
            model=model, slice=label, pane=pane, every=rs.EveryEvents(70), curves=rs.EveryEvents(30)
        )
        labels = rng.integers(0, 2, 100) if model != "b" else np.ones(100, int)
        times = np.arange(100) * 1_000_000 if pane else None
        parts += [ev.update(labels, rng.integers(0, 40, 100) / 8, times=moments(times)), ev.finish()]
    return rs.Rows.concat(parts)


def points(curves: Any) -> list[dict[str, Any]]:
    """The table, a point at a time."""

    def number(value: float) -> float | None:
        return None if math.isnan(value) or value == math.inf else value

    return [
        {
            "model": curve.model,
            "slice": curve.slice,
            "class": curve.class_,
            "pane_start": curve.pane and curve.pane[0],
            "pane_end": curve.pane and curve.pane[1],
            "seq": curve.seq,
            "time": curve.time,
            "window_events": curve.curve.events,
            "positives": curve.curve.positives,
            "negatives": curve.curve.negatives,
            "point": point,
            "threshold": number(curve.curve.threshold[point]),
            "tp": curve.curve.tp[point],
            "fp": curve.curve.fp[point],
            "on_hull": bool(curve.curve.on_hull[point]),
            "block_score": number(curve.curve.block_score[point]),
            "config": curve.config,
        }
        for curve in curves
        for point in range(len(curve.curve))
    ]


def records(batch: Any) -> list[dict[str, Any]]:
    """What a table says, times as microseconds."""
    columns = {name: batch[name] for name in batch.schema.names}
    for name in ("pane_start", "pane_end", "time"):
        columns[name] = columns[name].cast(pa.int64())
    return pa.table(columns).to_pylist()


def test_the_columns_are_a_contract() -> None:
    assert [(field.name, str(field.type), field.nullable) for field in CURVE_SCHEMA] == [
        ("model", "string", False), ("slice", "string", False), ("class", "string", True),
        ("pane_start", "timestamp[us, tz=UTC]", True), ("pane_end", "timestamp[us, tz=UTC]", True),
        ("seq", "int64", False), ("time", "timestamp[us, tz=UTC]", True), ("window_events", "int64", False),
        ("positives", "double", False), ("negatives", "double", False), ("point", "int64", False),
        ("threshold", "double", True), ("tp", "double", False), ("fp", "double", False),
        ("on_hull", "bool", False), ("block_score", "double", True), ("config", "string", False),
    ]  # fmt: skip


def test_columns_say_what_the_curves_say() -> None:
    batch = curves_to_arrow(some_rows().curves)
    batch.validate(full=True)
    assert batch.schema.equals(CURVE_SCHEMA)
    assert records(batch) == points(some_rows().curves)
    assert batch["seq"].unique().to_pylist() == [30, 60, 90, 100]
    first, last = batch["point"].to_pylist().index(0), len(some_rows().curves[0].curve) - 1
    assert batch["threshold"][first].as_py() is None
    assert (batch["tp"][last].as_py(), batch["fp"][last].as_py()) == (30.0, 0.0)  # model b has one class
    assert list(curve_batches(some_rows())) == [batch]


def test_no_curves_are_no_rows() -> None:
    assert curves_to_arrow(()).num_rows == 0
    assert curves_to_arrow(()).schema.equals(CURVE_SCHEMA)
    assert list(curve_batches(some_rows().with_curves(()))) == []


def test_curves_between_stages_are_what_they_were() -> None:
    coder = RowsCoder()
    only = rs.Rows.empty("abc").with_curves(some_rows().curves)
    for rows in (some_rows(), only, some_rows().with_curves(())):
        again = coder.decode(coder.encode(rows))
        assert again.curves == rows.curves
        assert list(again) == list(rows)
        assert coder.encode(again) == coder.encode(rows)
    with pytest.raises(rs.CorruptBytesError, match="one version"):
        coder.decode(coder.encode(some_rows()) + b"\0")


def pieces(batch: Any, cuts: list[int]) -> list[Any]:
    return [batch.slice(a, b - a) for a, b in pairwise([0, *sorted(cuts), batch.num_rows])]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "csv.gz", "jsonl.gz"])
def test_curves_are_sorted_and_the_same_however_they_were_cut(tmp_path: Path, ending: str) -> None:
    batch = curves_to_arrow(some_rows().curves)
    for name, parts in (("a", pieces(batch, [7, 20])), ("b", pieces(batch, [1, 1, 49])[::-1])):
        path = str(tmp_path / f"{name}.{ending}")
        pipeline = beam.Pipeline("FnApiRunner")
        assert_that(
            pipeline | beam.Create(parts) | write_batches(str(path), CURVES, SinkOptions()), equal_to([path])
        )
        result = pipeline.run()
        result.wait_until_finish()
        counters = {
            counter.key.metric.name: counter.committed
            for counter in result.metrics().query()["counters"]
            if counter.key.metric.namespace == METRICS_NAMESPACE
        }
        assert counters == {"curves_written": len(some_rows().curves)}
    data = (tmp_path / f"a.{ending}").read_bytes()
    assert data == (tmp_path / f"b.{ending}").read_bytes()
    expected = sorted(
        points(some_rows().curves), key=lambda row: (row["model"], row["slice"], row["seq"], row["point"])
    )
    if ending == "parquet":
        table = pq.read_table(tmp_path / "a.parquet")
        assert table.schema.equals(CURVE_SCHEMA)
        assert records(table) == expected
        return
    text = (gzip.decompress(data) if ending.endswith("gz") else data).decode()
    if ending.startswith("jsonl"):
        said = [json.loads(line) for line in text.splitlines()]
        assert [row["tp"] for row in said] == [row["tp"] for row in expected]
        assert [row["threshold"] for row in said] == [row["threshold"] for row in expected]
    else:
        assert text.startswith(",".join(CURVE_SCHEMA.names) + "\n")
        assert text.count("\n") == len(expected) + 1
        assert "nan" not in text


def test_a_job_without_curves_writes_an_empty_table(tmp_path: Path) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        nothing = pipeline | beam.Create([], reshuffle=False)
        nothing | "csv" >> write_batches(str(tmp_path / "c.csv"), CURVES, SinkOptions())  # type: ignore[expression-value]
        nothing | "parquet" >> write_batches(str(tmp_path / "c.parquet"), CURVES, SinkOptions())
    assert (tmp_path / "c.csv").read_text() == ",".join(CURVE_SCHEMA.names) + "\n"
    assert pq.read_table(tmp_path / "c.parquet").schema.equals(CURVE_SCHEMA)
