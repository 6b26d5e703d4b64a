"""The tables of windows and emissions are true: each line runs by command, in Python and in Beam."""

from __future__ import annotations

import json
import re
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.core.rows.columns import TIME_COLUMNS
from rocsteady.core.rows.measure_table import EVIDENCE_MEASURES, MEASURES
from rocsteady.core.settings.windows import parse_every, parse_window
from rocsteady.pipelines.cli import main

from tests.support.streams.times import moment

DOCS = Path(__file__).parents[2] / "docs"
WINDOWS = (DOCS / "how-to/windows.md").read_text("utf-8")
TABLE_LINE = re.compile(r"^\| `([^`]+)` \| `(rs\.[^`]+)` \|", re.MULTILINE)
WINDOW_LINES, EVERY_LINES = (
    TABLE_LINE.findall(WINDOWS.partition(f"| `{option}` | in Python |")[2].partition("\n\n")[0])
    for option in ("--window", "--every")
)


def flights(events: int = 1_500) -> dict[str, list]:
    """Events of two models with times, ids, weights and probabilities."""
    rng = np.random.default_rng(4)
    labels = (rng.random(events) < 0.4).astype(int)
    scores = 1 / (1 + np.exp(-(rng.normal(size=events) + 1.5 * labels - 0.7)))
    return {
        "model": [("a", "b")[i % 3 == 0] for i in range(events)],
        "score": scores.round(3).tolist(),
        "label": labels.tolist(),
        "time": (1_700_000_000 + np.cumsum(rng.integers(0, 900, events))).tolist(),
        "id": list(range(events)),
        "weight": rng.lognormal(size=events).round(3).tolist(),
    }


def by_model(rows) -> list:
    """Rows as a file has them: by model and number, numbers to 12 digits (sums of weights round)."""
    read = [
        tuple(f"{value:.10g}" if isinstance(value, float) else value for value in row)
        for row in sorted(rows, key=lambda row: (row.model, row.row))
    ]
    return [row[:-1] for row in read]  # the hash of the settings tells order by time from order of arrival


@pytest.mark.slow
@pytest.mark.parametrize("weights", [pytest.param(False, id="counts"), pytest.param(True, id="weights")])
@pytest.mark.parametrize(
    ("window", "window_code", "every", "every_code"),
    [(*line, *EVERY_LINES[0]) for line in WINDOW_LINES] + [(*WINDOW_LINES[1], *EVERY_LINES[1])],
)
def test_every_line_of_the_tables_of_windows_runs(
    window, window_code, every, every_code, weights, tmp_path, capsys
):
    namespace = {"rs": rs}
    settings = {
        "window": eval(window_code, namespace), "every": eval(every_code, namespace), "probabilities": True,
    }  # fmt: skip
    assert parse_window(window) == settings["window"]
    assert parse_every(every) == settings["every"]
    events = flights(1_500)
    pa.csv.write_csv(pa.table(events), tmp_path / "events.csv")
    words = f"--window {window} --every {every} --time time --id id --probabilities".split()
    words += ["--weight", "weight"] if weights else []
    output = tmp_path / "rows.parquet"
    assert main(["evaluate", str(tmp_path / "events.csv"), *words, "--output", str(output)]) == 0
    said = [
        rs.MeasureRow(**{**row, **{name: _micros(row[name]) for name in TIME_COLUMNS}})
        for row in pq.read_table(output).to_pylist()
    ]

    alone = []
    for model in ("a", "b"):
        mine = np.array(events["model"]) == model
        ev = rs.ModelEvaluator(model=model, **settings)
        labels, scores, seconds, masses = (
            np.array(events[n])[mine] for n in ("label", "score", "time", "weight")
        )
        times = seconds.astype("datetime64[s]")
        alone += ev.update(labels, scores, times=times, weights=masses if weights else None)
        alone += ev.advance(moment(int(events["time"][-1]) * 1_000_000 + 1))
        alone += ev.finish()
    assert by_model(alone) == by_model(said)
    assert len(said) > 8
    assert all(row.auc is not None and row.h is not None and row.kappa_m is not None for row in said[-2:])

    found = []
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        records = [dict(zip(events, values, strict=True)) for values in zip(*events.values(), strict=True)]
        result = (
            pipeline
            | beam.Create(records, reshuffle=False)
            | rs.EvaluateModels(time="time", weight="weight" if weights else None, model="model", **settings)
        )
        result.rows | beam.Map(lambda row: json.dumps(row)) | beam.io.WriteToText(str(tmp_path / "beam"))
    for path in tmp_path.glob("beam*"):
        found += [rs.MeasureRow(*json.loads(line)) for line in path.read_text().splitlines()]
    # A PCollection has no clock but that of each model's own events: rows of the grid after a model's last
    # event do not come.
    want = by_model(said)
    assert [row for row in by_model(found) if row not in want] == []
    assert len(want) - 2 <= len(found) <= len(want)


def _micros(moment):
    return None if moment is None else int(moment.timestamp() * 1_000_000)


def test_every_measure_of_the_table_is_made_when_asked_for():
    events = flights()
    ev = rs.ModelEvaluator(measures="all", probabilities=True)
    ev.update(events["label"], events["score"], weights=events["weight"])
    said = ev.measures()
    assert [name for name in MEASURES if getattr(said, name) is None] == [*EVIDENCE_MEASURES]
