"""`rs.evaluate` gives the rows and the dead letters that the command writes, to the last bit."""

from __future__ import annotations

import random
from itertools import product

import polars as pl
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.transforms.evaluate import choices

from tests.support.streams.frame_runs import NAMED, assert_as_command, assert_same, of_command, some_frame
from tests.support.thorough import others_slow

COLUMNS = ("--score", "p", "--label", "clicked")


CHUNKS = [100_000, 97]


def named(value):
    """Return the id of a value of a parameter: the options of the command, or None for the usual id."""
    return " ".join(value[0]) if isinstance(value, tuple) else None


@pytest.fixture(params=CHUNKS, ids=["whole", "in chunks"])
def chunks(request, monkeypatch):
    """How many events are validated and applied at once."""
    monkeypatch.setattr(choices, "CHUNK_ROWS", request.param)
    monkeypatch.setattr(choices, "_ROWS_AT_ONCE", 0)


def as_parquet(frame, tmp_path):
    path = tmp_path / "events.parquet"
    frame.write_parquet(path)
    return path


BY_POSITION = [
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
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "chunks"), others_slow(product(BY_POSITION, CHUNKS)), indirect=["chunks"], ids=named
)
@pytest.mark.usefixtures("chunks")
def test_by_position(capsys, tmp_path, asked):
    options, keywords = asked
    frame = some_frame(1_500, seed=1)
    path = as_parquet(frame, tmp_path)
    assert_as_command(capsys, rs.evaluate(frame, **NAMED, **keywords), path, *COLUMNS, *options)


BY_TIME = [
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
    (("--evidence-below", "1970-01-01..1970-01-20 less 0.1", "--block-gap", "1h", "--every", "50"),
     {"evidence_below": "1970-01-01..1970-01-20 less 0.1", "block_gap": 3600, "every": 50}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "in_order", "chunks"),
    others_slow(product(BY_TIME, [False, True], CHUNKS)),
    indirect=["chunks"],
    ids=named,
)
@pytest.mark.usefixtures("chunks")
def test_by_time(capsys, tmp_path, asked, in_order):
    options, keywords = asked
    frame = some_frame(1_500, seed=2, in_order=in_order)
    path = as_parquet(frame, tmp_path)
    evaluated = rs.evaluate(frame, **NAMED, time="t", **keywords)
    assert_as_command(capsys, evaluated, path, *COLUMNS, "--time", "t", *options)


def test_times_that_are_texts(capsys, tmp_path):
    frame = some_frame(1_500, seed=3).with_columns(
        t=pl.from_epoch("t").dt.to_string("%d/%m/%Y %H:%M").fill_null("soon")
    )
    path = as_parquet(frame, tmp_path)
    form = "%d/%m/%Y %H:%M"
    evaluated = rs.evaluate(frame, **NAMED, time="t", time_format=form, every="1d")
    assert_as_command(
        capsys, evaluated, path, *COLUMNS, "--time", "t", "--time-format", form, "--every", "1d"
    )


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_with_a_type_of_their_own(capsys, tmp_path, unit, zone):
    frame = some_frame(1_500, seed=4).with_columns(t=pl.col("t") % 10**9)
    frame = frame.with_columns(
        t=pl.from_epoch("t")
        .dt.cast_time_unit(unit)
        .dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    )
    path = as_parquet(frame, tmp_path)
    evaluated = rs.evaluate(frame, **NAMED, time="t", window="last:7d", every="12h")
    assert_as_command(
        capsys, evaluated, path, *COLUMNS, "--time", "t", "--window", "last:7d", "--every", "12h"
    )


def test_columns_of_other_types(capsys, tmp_path):
    """Categories, booleans, small numbers, decimals: whatever a column of a frame can be."""
    frame = some_frame(1_500, seed=5, sound=True).with_columns(
        model=pl.col("model").cast(pl.Categorical), p=pl.col("p").cast(pl.Float32),
        clicked=pl.col("clicked").cast(pl.Boolean), w=pl.col("w").cast(pl.Decimal(10, 3)),
        key=pl.int_range(pl.len()), country=pl.col("country").cast(pl.Enum(["NZ", "AU", "x,y=z", ""])),
    )  # fmt: skip
    path = as_parquet(frame, tmp_path)
    evaluated = rs.evaluate(frame, **NAMED, weight="w", id="key", slices=["country"])
    options = ("--weight", "w", "--id", "key", "--slice", "country")
    assert_as_command(capsys, evaluated, path, *COLUMNS, *options)


def test_rows_are_those_of_a_csv_file(capsys, tmp_path):
    """A file of CSV has text alone, and its dead letters have whole records."""
    frame = some_frame(1_500, seed=6)
    path = tmp_path / "events.csv"
    frame.write_csv(path)
    options = ("--time", "t", "--weight", "w", "--slice", "country")
    rows, letters, _ = of_command(capsys, path, *COLUMNS, *options)
    evaluated = rs.evaluate(frame, **NAMED, time="t", weight="w", slices=["country"])
    assert_same(evaluated.to_arrow(), rows)
    for name in ("kind", "reason", "position", "time", "model", "field"):
        assert evaluated.dead_letters[name].to_list() == letters.column(name).to_pylist(), name


def test_curves_are_those_of_the_command(capsys, tmp_path):
    frame = some_frame(1_500, seed=7)
    path, curves = as_parquet(frame, tmp_path), tmp_path / "curves.parquet"
    for points in ("thinned", "all"):
        options = ("--curves", curves, "--curves-every", "500", "--curves-points", points)
        of_command(capsys, path, *COLUMNS, *options)
        evaluated = rs.evaluate(frame, **NAMED, curves=500, curves_points=points)
        assert pl.DataFrame(pq.read_table(curves)).equals(evaluated.curves)
    assert evaluated.counters["curves_written"] == evaluated.curves.filter(point=0).height


CHOICES = {
    "--window": ["last:70", "last:9d", "fading:40", "fading:5d", "adaptive:0.2", "all"],
    "--every": ["1", "33", "7h", "2d"],
    "--order": [None, "time:0s", "time:9d", "position"],
    "--weight": [None, "w"],
    "--id": [None, "key"],
    "--slice": [None, "country", "device,country"],
    "--slice-cap": [None, "1", "3"],
    "--deduplicate": [None, "1s", "12d"],
    "--idle-ttl": [None, "3h", "8d"],
    "--positive": [None, "0", "2"],
    "--measures": [None, "auc,h", "all"],
    "--cost": [None, "severity:0.3", "uniform"],
    "--time-unit": [None, "ms"],
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_any_options(capsys, tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    monkeypatch.setattr(choices, "CHUNK_ROWS", rng.choice([1, 10, 400, 100_000]))
    monkeypatch.setattr(choices, "_ROWS_AT_ONCE", 0)
    said = {option: rng.choice(values) for option, values in CHOICES.items()}
    said = {option: value for option, value in said.items() if value is not None}
    if "--deduplicate" in said:
        said["--id"] = "key"
    frame = some_frame(rng.choice([30, 400]), seed, sound=rng.random() < 0.2, in_order=rng.random() < 0.5)
    path = as_parquet(frame, tmp_path)
    keywords = {option[2:].replace("-", "_"): value for option, value in said.items()}
    if "slice" in keywords:
        keywords["slices"] = [tuple(keywords.pop("slice").split(","))]
    if "slice_cap" in keywords:
        keywords["slice_cap"] = int(keywords["slice_cap"])
    evaluated = rs.evaluate(frame, **NAMED, time="t", **keywords)
    options = [word for option in said.items() for word in option]
    assert_as_command(capsys, evaluated, path, *COLUMNS, "--time", "t", *options)
