"""`evaluate --labels`, `--order time:10m`: files shuffled and cut anyhow give the ordered stream's rows."""

from __future__ import annotations

import json
import time
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rocsteady.transforms.evaluate import choices
from rocsteady.transforms.sources.files import read as file_partition

from tests.support.processes.command import call
from tests.support.thorough import others_slow

N = 600
MINUTE = 60


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _small_chunks(monkeypatch):
    """Read Parquet a few rows at a time, so that files of hundreds of rows are merged as large ones are."""
    monkeypatch.setattr(choices, "CHUNK_ROWS", 40)
    monkeypatch.setattr(choices, "_ROWS_AT_ONCE", 1)
    chunks = file_partition.parquet_chunks
    monkeypatch.setattr(
        file_partition, "parquet_chunks", lambda source, columns, _=0: chunks(source, columns, 40)
    )


def write(path, table):
    if path.endswith(".parquet"):
        pq.write_table(table, path)
    elif path.endswith(".jsonl"):
        Path(path).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        pa.csv.write_csv(table, path)


def split(table, name, parts, rng, endings=(".parquet",)):
    """Deal a table's rows out to files, in its order; return their names."""
    hand = rng.integers(0, parts, table.num_rows)
    paths = [f"{name}-{part}{endings[part % len(endings)]}" for part in range(parts)]
    for part, path in enumerate(paths):
        write(path, table.filter(pa.array(hand == part)))
    return paths


def shuffled(table, rng):
    return table.take(pa.array(rng.permutation(table.num_rows)))


def flights(seed=1):
    """Predictions of two models for some ids, labels, and both joined by each id's first label."""
    rng = np.random.default_rng(seed)
    made = np.sort(rng.integers(0, 40 * 3_600, N))
    known = made + rng.integers(-600, 5 * 3_600, N)
    label = rng.integers(0, 2, N)
    ids = np.array([f"flight {number}" for number in range(N)])
    predictions = pa.table({
        "id": np.repeat(ids, 2), "made": np.repeat(made, 2), "model": np.tile(["m1", "m2"], N),
        "score": np.round(rng.normal(np.repeat(label, 2)), 2),
        "carrier": np.repeat(rng.choice(["UA", "DL"], N), 2),
    })  # fmt: skip
    has_one = rng.random(N) < 0.9
    labels = pa.table({"id": ids, "landed": known, "label": label}).filter(pa.array(has_one))
    strangers = pa.table({
        "id": ["nobody's"] * 7, "landed": rng.integers(0, 40 * 3_600, 7), "label": rng.integers(0, 2, 7)
    })  # fmt: skip
    twice = labels.take([3, 3, 40])
    near = np.flatnonzero(np.abs(known - made)[has_one] < 3 * 3_600)[[7, 90]]
    again = labels.take(near).set_column(1, "landed", pa.array(known[has_one][near] + 60))
    counts = np.repeat(has_one & (np.abs(known - made) <= 4 * 3_600), 2)
    joined = predictions.append_column("landed", pa.array(np.repeat(known, 2)))
    joined = joined.append_column("label", pa.array(np.repeat(label, 2))).filter(pa.array(counts))
    return predictions, pa.concat_tables([labels, strangers, twice, again]), joined


JOIN = ("--id", "id", "--time", "made", "--label-time", "landed", "--ttl", "4h")
KINDS = {
    "last:200": ("--window", "last:200", "--every", "50"),
    "grid": ("--window", "last:2h", "--every", "30m", "--slice", "carrier"),
}

DIVISIONS = {
    "one, shuffled": (1, [".parquet"], shuffled),
    "two": (2, [".parquet"], lambda table, _: table),
    "four kinds, shuffled": (4, [".parquet", ".csv", ".jsonl"], shuffled),
}
"""Into how many files predictions and labels are divided, of which formats, and in which order they are."""


def rows_of(capsys, *options):
    """Return the rows, and the lines of the summary: the sums first."""
    ran = call(capsys, "evaluate", *options, "--output", "rows.parquet")
    assert ran.status == 0, ran.lines
    assert not any("add up" in line for line in ran.lines), ran.lines
    start = next(number for number, line in enumerate(ran.lines) if " read = " in line)  # progress before it
    return pq.read_table("rows.parquet").to_pylist(), ran.lines[start:]


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize(("kind", "division"), others_slow(product(KINDS, DIVISIONS)))
def test_rows_are_those_of_the_file_that_is_joined_already(capsys, kind, division):
    rng = np.random.default_rng(3)
    predictions, labels, joined = flights()
    write("joined.parquet", joined)
    right, _ = rows_of(
        capsys, "joined.parquet", "--id", "id", "--time", "landed", "--order", "time", *KINDS[kind]
    )
    assert len(right) > 15
    parts, endings, mix = DIVISIONS[division]
    sources = split(mix(predictions, rng), f"p{parts}", parts, rng, endings)
    labelled = split(mix(labels, rng), f"l{parts}", parts, rng, endings)
    asked = [word for path in labelled for word in ("--labels", path)]
    rows, _ = rows_of(capsys, *sources, *asked, *JOIN, *KINDS[kind])
    assert rows == right


@pytest.mark.slow
@pytest.mark.parametrize("second", ["first", "last", "dead-letter"])
def test_every_record_is_accounted_for_and_tells_its_place(capsys, second):
    predictions, labels, joined = flights()
    write("p.csv", predictions)
    write("l.csv", labels)
    options = ("--labels", "l.csv", *JOIN, "--second-label", second, "--dead-letters", "dead.parquet")
    _, lines = rows_of(capsys, "p.csv", *options)
    letters = pq.read_table("dead.parquet").to_pylist()
    alone = 2 * N - joined.num_rows
    read = f"{2 * N:,} predictions read = {joined.num_rows:,} applied"
    assert f"{read} + 0 dead letters + {alone} unmatched;" in lines[0]
    counted = lines[1].replace(",", "").partition("=")[2].split("+")
    assert sum(int(part.split()[0]) for part in counted) == labels.num_rows
    assert f"rocsteady: {labels.num_rows} labels read = " in lines[1]
    found = {}
    for letter in letters:
        found.setdefault((letter["kind"], letter["source"]), []).append(letter)
    assert len(found["unmatched", "p.csv"]) == alone
    assert len(found["unmatched", "l.csv"]) > 7
    assert len(found["duplicate", "l.csv"]) == (3 if second == "dead-letter" else 5)
    assert len(found.get(("invalid", "l.csv"), [])) == (2 if second == "dead-letter" else 0)
    for (_, source), some in found.items():
        table = predictions if source == "p.csv" else labels
        for letter in some:
            record = {name: table[name][letter["position"]].as_py() for name in table.column_names}
            raw = json.loads(letter["raw"])
            assert (raw["id"], letter["id"]) == (record["id"], record["id"])
            assert set(raw) <= set(table.column_names)
            assert letter["model"] == record.get("model")
    assert all(letter["reason"].startswith("no label ") for letter in found["unmatched", "p.csv"])


def events(seed=4):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, N)
    seconds = np.sort(rng.choice(30 * 3_600, N, replace=False))
    return pa.table({
        "id": np.arange(N), "t": seconds, "model": rng.choice(["a", "b"], N), "label": label,
        "score": np.round(rng.normal(label), 2),
    })  # fmt: skip


def displaced(table, rng, most):
    """Shuffle so that no record is more than `most` seconds behind the greatest time before it."""
    return table.take(
        pa.array(np.argsort(table["t"].to_numpy() + rng.integers(0, most + 1, table.num_rows), kind="stable"))
    )


@pytest.mark.slow
@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_shuffled_within_its_lateness_gives_the_rows_of_the_ordered_one(capsys, kind):
    rng = np.random.default_rng(5)
    table = events()
    options = ("--id", "id", "--time", "t", "--order", "time:10m", *KINDS[kind][:4])
    write("sorted.csv", table)
    right, _ = rows_of(capsys, "sorted.csv", *options)
    for parts in (1, 2, 4):
        paths = split(displaced(table, rng, 10 * MINUTE), f"s{parts}", parts, rng)
        rows, lines = rows_of(capsys, *paths, *options)
        assert rows == right
        assert f"{N} events read = {N} applied + 0 dead letters;" in lines[0]


@pytest.mark.slow
@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("parts", [1, 3])
def test_what_is_later_is_told_and_leaves_the_rows_of_the_others(capsys, parts):
    rng = np.random.default_rng(6)
    table = displaced(events(), rng, 40 * MINUTE)
    paths = split(table, "s", parts, rng)
    options = ("--id", "id", "--time", "t", "--order", "time:10m")
    rows, lines = rows_of(capsys, *paths, *options, "--dead-letters", "dead.csv")
    late, kept = {}, []
    for path in paths:
        part = pq.read_table(path)
        times = part["t"].to_numpy()
        before = np.maximum.accumulate(np.concatenate(([times[0]], times)))[:-1]
        is_late = before - times > 10 * MINUTE
        late |= {
            (path, place): (part["id"][place].as_py(), before[place] - times[place])
            for place in np.flatnonzero(is_late).tolist()
        }
        kept.append(part.filter(pa.array(~is_late)))
    letters = pa.csv.read_csv("dead.csv").to_pylist()
    assert len(late) > 60
    assert {(letter["source"], letter["position"]): letter["id"] for letter in letters} == {
        place: id_ for place, (id_, _) in late.items()
    }
    for letter in letters:
        _, seconds = late[letter["source"], letter["position"]]
        assert letter["kind"] == "late"
        minutes = f"{seconds // 60}m" + (f" {seconds % 60}s" if seconds % 60 else "")
        assert (letter["reason"], letter["gap_seconds"]) == ("later than allowed", seconds)
        assert letter["detail"] == f"{minutes} behind the greatest time before it; 10m is allowed"
        assert json.loads(letter["raw"])["id"] == letter["id"]
    assert f"{N} events read = {N - len(late)} applied + 0 dead letters + {len(late)} late;" in lines[0]
    assert any(f"{len(late)} x late: " in line for line in lines), lines
    write("kept.csv", pa.concat_tables(kept).sort_by("t"))
    assert rows == rows_of(capsys, "kept.csv", *options)[0]


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.slow
@pytest.mark.parametrize("order", ["time", "time:10m"])
def test_an_event_of_2099_is_a_dead_letter_and_moves_no_clock(capsys, order):
    """Neither makes it others late, nor rows on a grid up to its time, wherever it stands in its file."""
    table = events()
    far = table.slice(0, 60).set_column(1, "t", pa.array(np.full(60, 4_070_908_800)))
    options = ("--id", "id", "--time", "t", "--order", order, "--max-ahead", "1d", *KINDS["grid"][:4])
    write("sorted.csv", table)
    right, _ = rows_of(capsys, "sorted.csv", *options)
    for place in (0, 100, N):
        write("far.parquet", pa.concat_tables([table.slice(0, place), far, table.slice(place)]))
        rows, lines = rows_of(capsys, "far.parquet", *options, "--dead-letters", "dead.csv")
        assert rows == right
        assert f"{N + 60} events read = {N} applied + 60 dead letters;" in lines[0]
        letters = pa.csv.read_csv("dead.csv").to_pylist()
        assert [letter["position"] for letter in letters] == list(range(place, place + 60))
        assert {letter["reason"] for letter in letters} == {"time is too far ahead"}
    _, lines = rows_of(capsys, "far.parquet", *options[:6], "--max-ahead", f"{200 * 366}d")
    assert f"{N + 60} applied" in lines[0]
    assert time.time() < 4_070_908_800 - 86_400


MISTAKES = {
    "--labels l.csv": "--labels l.csv are joined by id, in event time; name the id with --id",
    "--labels l.csv --id id": "name the time of a prediction with --time",
    "--labels l.csv --id id --time made --order position": "--order position with --labels l.csv",
    "--labels l.csv --id id --time made --order arrival": "--order arrival with --labels l.csv",
    "--labels l.csv --id id --time made --label-time when": "l.csv 'when'",
    "--labels l.csv --id number --time made --label-time landed": "p.csv 'number'",
    "--labels l.csv --id id --time made --label y --label-time landed": "l.csv 'y'",
    "--labels p.csv --id id --time made": "p.csv",
    "--labels none.csv --id id --time made": "none.csv",
    "--labels l.csv --id id --time made --label-time landed --ttl soon": "--ttl soon",
    "--labels l.csv --id id --time made --label-time landed --ttl 0d": "--ttl 0d",
    "--labels l.csv --id id --time made --label-time landed --ttl -1d": "--ttl",
    "--labels l.csv --id id --time made --label-time landed --label-lead x": "--label-lead x",
    "--labels l.csv --id id --time made --label-time landed --ttl 1h --label-lead 2h": "label_lead='2h' ttl",
    "--labels l.csv --id id --time made --label-time landed --second-label both": "--second-label both",
    "--labels": "--labels",
    "--ttl 1d": "--ttl 1d --labels",
    "--label-lead 1d": "--label-lead 1d --labels",
    "--label-time landed": "--label-time landed --labels",
    "--second-label last": "--second-label last --labels",
    "--max-ahead 1d": "--max-ahead 1d --time",
    "--time made --max-ahead soon": "--max-ahead soon",
    "--time made --order time:-1m": "--order time:-1m",
    "--order time:10m": "--order time:10m --time",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_sentence_before_anything_is_read(capsys, words):
    predictions, labels, joined = flights()
    write("p.csv", predictions.slice(0, 5))
    write("l.csv", labels.slice(0, 5))
    write("joined.csv", joined.slice(0, 5))
    source = "p.csv" if "--labels" in words else "joined.csv"
    ran = call(capsys, "evaluate", source, "--output", "rows.parquet", *words.split())
    assert (ran.status, ran.out, len(ran.lines)) == (2, "", 1), ran
    for needle in MISTAKES[words].split():
        assert needle in ran.lines[0], ran.lines


def test_a_join_that_applied_nothing_says_why_of_predictions_and_not_of_repeated_labels(capsys):
    predictions = [("a", 100_000_000), ("c", 90_000_000), ("d", 90_000_000)]
    write("p.jsonl", pa.table({
        "id": [name for name, _ in predictions], "made": [moment for _, moment in predictions],
        "score": [0.5] * 3,
    }))  # fmt: skip
    write("l.jsonl", pa.table({"id": ["b"] * 4, "landed": [100_000_000] * 4, "label": [1] * 4}))
    ran = call(
        capsys, "evaluate", "p.jsonl", "--labels", "l.jsonl", *JOIN, "--order", "time:1m", "--output", "r.csv"
    )
    assert ran.status == 3
    assert ran.lines[-2] == (
        "rocsteady: no event was applied: most were late: --order time:1m allows too little, if not meant; "
        'one of them is {"id": "c", "made": 90000000, "score": 0.5} (p.jsonl, position 1)'
    )
