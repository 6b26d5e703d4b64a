"""`rs.evaluate` gives the rows and the dead letters that the command writes, to the last bit."""

from __future__ import annotations

import pytest
import rocsteady as rs
from frame_runs import NAMED, assert_as_command, some_frame

COLUMNS = ("--score", "p", "--label", "clicked")


def as_parquet(frame, tmp_path):
    path = tmp_path / "events.parquet"
    frame.write_parquet(path)
    return path


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (("--window", "last:200", "--every", "50"), {"window": "last:200", "every": 50}),
        (("--window", "all", "--every", "100"), {"window": rs.AllEvents(), "every": rs.EveryEvents(100)}),
        (("--window", "adaptive", "--every", "10"), {"window": "adaptive", "every": 10}),
        (("--window", "fading:100", "--every", "70"), {"window": rs.Fading(100), "every": "70"}),
        (("--weight", "w", "--every", "150"), {"weight": "w", "every": 150}),
        (("--measures", "all", "--every", "400"), {"measures": "all", "every": 400}),
        (("--slice", "country", "--slice", "country,device", "--slice-cap", "2"),
         {"slices": ["country", ("country", "device")], "slice_cap": 2}),
        (("--cost", "severity", "--priors", "0.3", "--probabilities"),
         {"cost": "severity", "priors": 0.3, "probabilities": True}),
        (("--model-name", "one", "--positive", "2"), {"model_name": "one", "positive": 2}),
        (("--predicted", "device", "--threshold", "0.4"), {"predicted": "device", "threshold": 0.4}),
        (("--id", "key"), {"id": "key"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_by_position(capsys, tmp_path, options, keywords):
    frame = some_frame(1_500, seed=1)
    path = as_parquet(frame, tmp_path)
    assert_as_command(capsys, rs.evaluate(frame, **NAMED, **keywords), path, *COLUMNS, *options)


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (("--window", "last:7d", "--every", "1d"), {"window": "last:7d", "every": "1d"}),
        (("--window", "last:200", "--every", "50"), {"window": rs.LastEvents(200), "every": 50}),
        (("--window", "fading:7d", "--every", "12h"), {"window": "fading:7d", "every": "12h"}),
        (("--id", "key"), {"id": "key"}),
        (("--id", "key", "--deduplicate", "10d"), {"id": "key", "deduplicate": "10d"}),
        (("--order", "time:5d"), {"order": "time:5d"}),
        (("--order", "position"), {"order": "position"}),
        (("--idle-ttl", "2h", "--slice", "country"), {"idle_ttl": "2h", "slices": "country"}),
        (("--time-unit", "ms", "--every", "10s"), {"time_unit": "ms", "every": "10s"}),
        (("--weight", "w", "--window", "last:7d", "--every", "100"),
         {"weight": "w", "window": "last:7d", "every": 100}),
        (("--max-ahead", "1d"), {"max_ahead": "1d"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
@pytest.mark.parametrize("in_order", [False, True], ids=["mixed", "in order"])
def test_by_time(capsys, tmp_path, options, keywords, in_order):
    frame = some_frame(1_500, seed=2, in_order=in_order)
    path = as_parquet(frame, tmp_path)
    evaluated = rs.evaluate(frame, **NAMED, time="t", **keywords)
    assert_as_command(capsys, evaluated, path, *COLUMNS, "--time", "t", *options)
