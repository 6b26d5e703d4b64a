"""Frames of scored events, and the command's tables for the same events in a file."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import rocsteady as rs

from tests.support.processes.command import call

SPAN = 40 * 86_400
"""Seconds between the first and the last event."""

NAMED = {"score": "p", "label": "clicked"}

KEEPING = (
    pl.col("p").cast(pl.Float64), pl.col("clicked").cast(pl.Int64), pl.col("w").cast(pl.Float64),
    pl.col("t").cast(pl.Int64),
)  # fmt: skip


def some_frame(n: int, seed: int, *, sound: bool = False, in_order: bool = False) -> pl.DataFrame:
    """Return scored events of three models. Many times are equal; unless `sound`, some values are bad."""
    rng = random.Random(seed)
    times = [rng.randrange(n // 3) * (SPAN // (n // 3)) for _ in range(n)]
    records = [
        {
            "unused": rng.random(),
            "model": rng.choice("aab\u00fc"),
            "p": rng.randrange(20) / 20,
            "clicked": rng.randrange(2),
            "t": time,
            "key": f"k{rng.randrange(n // 2)}",
            "w": rng.randrange(1, 9) / 4,
            "country": rng.choice(["NZ", "AU", "x,y=z", "", None]),
            "device": rng.choice(["phone", "desk"]),
        }
        for time in (sorted(times) if in_order else times)
    ]
    bad = {
        "model": [None, ""], "p": [None, float("nan"), float("inf")], "clicked": [None, 2],
        "t": [None, 10**15], "w": [0.0, -1.0, None, float("nan")], "key": [None],
    }  # fmt: skip
    if not sound:
        for record in rng.sample(records, n // 20):
            for name in rng.sample(sorted(bad), rng.randrange(1, 3)):
                record[name] = rng.choice(bad[name])
    return pl.DataFrame(records, infer_schema_length=None).with_columns(*KEEPING)


def of_command(capsys, path: Path, *options: object) -> tuple[pa.Table, pa.Table, list[str]]:
    """Run the command on a file; return its rows, its dead letters, and what it says."""
    rows, letters = path.with_name("rows.parquet"), path.with_name("letters.parquet")
    ran = call(capsys, "evaluate", path, *options, "--output", rows, "--dead-letters", letters)
    assert ran.status == 0, ran
    return pq.read_table(rows), pq.read_table(letters), ran.lines


def assert_same(ours: pa.Table, theirs: pa.Table) -> None:
    """See that two tables are equal to the last bit."""
    assert ours.schema.equals(theirs.schema)
    for name in ours.column_names:
        one, other = (table.column(name).combine_chunks() for table in (ours, theirs))
        assert one.equals(other), name
        if pa.types.is_floating(one.type):  # 0.0 equals -0.0, but not in bits
            assert np.array_equal(*(np.signbit(column.to_numpy(False)) for column in (one, other))), name


def assert_as_command(capsys, evaluated: rs.Evaluated, path: Path, *options: object) -> None:
    """See that rows, dead letters and counters are those of the command for a Parquet file."""
    rows, letters, lines = of_command(capsys, path, *options)
    assert rows.num_rows
    assert_same(evaluated.to_arrow(), rows)
    at = letters.schema.get_field_index("source")
    named = pa.array(["frame"] * letters.num_rows, pa.string())
    assert_same(evaluated._tables["dead letters"], letters.set_column(at, letters.schema.field(at), named))
    counters = f"rocsteady: {repr(evaluated).partition(';')[0]};"
    assert any(
        line.startswith(counters) for line in lines
    )  # warnings, and the progress of a slow run, come first
