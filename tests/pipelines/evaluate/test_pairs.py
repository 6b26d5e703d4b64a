"""`evaluate --pairs`: rows of pairs from records, from ids and behind the label join, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.core.rows.pairs import PairRow
from rocsteady.transforms.sinks.kinds import PAIR_SCHEMA

from tests.support.processes.command import call

N = 1_500
NEW_LACKS, OLD_LACKS = 10, 7
"""The new model does not score each 10th instance, the old one does not score each 7th."""


def instances():
    rng = np.random.default_rng(4)
    label = rng.integers(0, 2, N)
    return label, label + rng.normal(size=N), label * 0.5 + rng.normal(size=N)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """The same scores in wide records, as events of two models, and as predictions with later labels."""
    monkeypatch.chdir(tmp_path)
    label, new, old = instances()
    place = np.arange(N)
    new_there, old_there = place % NEW_LACKS != 0, place % OLD_LACKS != 0
    common = {"id": place, "sent": 1_600_000_000 + place * 60, "country": np.array(["AR", "DE"])[place % 2]}
    wide = pa.table(common | {"label": label, "new": pa.array(new, mask=~new_there),
                              "old": pa.array(old, mask=~old_there)})  # fmt: skip
    pa.csv.write_csv(wide, "wide.csv")
    parts = [
        pa.table(common | {"label": label, "model": [name] * N, "score": score}).filter(pa.array(there))
        for name, score, there in (("new", new, new_there), ("old", old, old_there))
    ]
    long = pa.concat_tables(parts)
    order = np.random.default_rng(0).permutation(long.num_rows)
    pa.csv.write_csv(long.take(order), "long.csv")
    pa.csv.write_csv(long.take(order).drop(["label"]), "predictions.csv")
    pa.csv.write_csv(pa.table({"id": place, "sent": common["sent"] + 3_600, "label": label}), "labels.csv")


COMMON = ("--label", "label", "--every", "300", "--window", "last:500", "--output", "rows.csv")
WIDE = ("wide.csv", "--score", "new", "--against", "old", *COMMON)
BY_ID = ("--id", "id", "--time", "sent", "--champion", "old", *COMMON)


def pairs(capsys, *arguments, shards=None):
    """Run the command; return its rows of pairs, and what it said."""
    more = () if shards is None else ("--shards", str(shards))
    ran = call(capsys, "evaluate", *arguments, "--pairs", "pairs.parquet", *more)
    assert ran.status == 0, ran.lines
    table = pq.read_table("pairs.parquet")
    assert table.schema.equals(PAIR_SCHEMA)
    return table.to_pylist(), "\n".join(ran.lines)


def expected(label, new, old, which=slice(None), **names):
    place = np.arange(N)
    new, old = np.where(place % NEW_LACKS, new, math.nan), np.where(place % OLD_LACKS, old, math.nan)
    there = ~(np.isnan(new) & np.isnan(old))
    there = np.flatnonzero(there)[which] if isinstance(which, slice) else np.flatnonzero(there & which)
    pair = rs.PairEvaluator(window=rs.LastEvents(500), every=rs.EveryEvents(300), **names)
    rows = [*pair.update(label[there], new[there], old[there]), *pair.finish()]
    return [row._asdict() for row in rows]


def without_times(rows):
    return [{k: v for k, v in row.items() if k not in ("time", "window_start", "window_end")} for row in rows]


def test_records_with_both_scores_give_the_rows_of_the_evaluator(capsys):
    rows, said = pairs(capsys, *WIDE, "--slice", "country")
    place, columns = np.arange(N), instances()
    names = {"model": "new", "against": "old"}
    wanted = expected(*columns, **names)
    for remainder, country in ((0, "AR"), (1, "DE")):
        wanted += expected(*columns, place % 2 == remainder, slice=f"country={country}", **names)
    assert rows == wanted
    both = sum(k % NEW_LACKS and k % OLD_LACKS and 1 for k in range(N))
    assert rows[4]["seq"] == both or any(row["seq"] == both for row in rows)
    assert f"pairs: {both:,} instances scored by a model and its champion" in said


@pytest.mark.parametrize("shards", [1, 5])
def test_events_of_one_id_give_the_same_rows(capsys, shards):
    rows, _ = pairs(capsys, "long.csv", *BY_ID, "--pair-within", "0s", shards=shards)
    assert without_times(rows) == without_times(expected(*instances(), model="new", against="old"))


def test_predictions_with_later_labels_give_the_same_rows(capsys):
    rows, _ = pairs(capsys, "predictions.csv", *BY_ID, "--labels", "labels.csv")
    assert without_times(rows) == without_times(expected(*instances(), model="new", against="old"))


def test_a_stream_gives_the_same_rows_as_they_fall_due(capsys):
    rows, _ = pairs(capsys, "long.csv", *BY_ID)
    folder = Path("arriving")
    folder.mkdir()
    events = sorted(pa.csv.read_csv("long.csv").to_pylist(), key=lambda event: event["sent"])
    lines = [json.dumps(event) + "\n" for event in events]
    (folder / "a.jsonl").write_text("".join(lines[:1_000]))
    (folder / "b.jsonl").write_text("".join(lines[1_000:]))
    (folder / "_END").write_text("")
    found, said = pairs(capsys, "arriving", "--follow", *BY_ID)
    assert found == rows
    assert "instances scored by a model and its champion" in said


def test_without_times_an_event_waits_to_the_end_of_the_input(capsys):
    rows, _ = pairs(capsys, "long.csv", "--id", "id", "--champion", "old", *COMMON)
    assert rows[-1]["only_model"] + rows[-1]["seq"] == N - N // NEW_LACKS
    assert rows[-1]["only_against"] + rows[-1]["seq"] == N - math.ceil(N / OLD_LACKS)


def test_pairs_stand_without_an_output_and_beside_rows_that_stay_the_same(capsys):
    call(capsys, "evaluate", "long.csv", "--id", "id", "--time", "sent", *COMMON)
    alone = Path("rows.csv").read_bytes()
    pairs(capsys, "long.csv", *BY_ID)
    assert Path("rows.csv").read_bytes() == alone
    words = [word for word in BY_ID if word not in ("--output", "rows.csv")]
    ran = call(capsys, "evaluate", "long.csv", *words, "--pairs", "only.csv")
    assert ran.status == 0
    assert Path("only.csv").read_text().splitlines()[0].split(",")[:3] == ["model", "against", "slice"]
    assert "new" in ran.out


def test_a_champion_that_is_not_in_the_data_is_said(capsys):
    rows, said = pairs(capsys, "long.csv", *(word if word != "old" else "older" for word in BY_ID))
    assert [(row["model"], row["seq"], row["verdict"]) for row in rows] == [
        ("new", 0, "undecided"), ("old", 0, "undecided"),
    ]  # fmt: skip
    assert "nothing was compared: no instance has scores of the model 'older'" in said


def test_second_events_and_two_labels_of_an_id_are_counted_and_said(capsys):
    text = "id,sent,label,model,score\n"
    text += "".join(f"{k},{k},{k % 2},{m},0.{k}\n" for k in range(1, 5) for m in ("old", "new"))
    Path("odd.csv").write_text(text + "1,2,1,new,0.5\n7,7,1,new,0.3\n7,7,0,old,0.3\n")
    rows, said = pairs(capsys, "odd.csv", *BY_ID)
    assert [(row["seq"], row["only_model"], row["only_against"]) for row in rows] == [(4, 1, 1)]
    assert "1 event of pairs repeat an id" in said
    assert "1 instance of pairs have two labels" in said


ALONE = "the state of pairs is not exported in this version; give --pairs to a job of its own"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("long.csv", "--champion", "old"), "say where they go with --pairs PATH"),
        (("wide.csv", "--anytime-at", "500"), "say where they go with --pairs PATH"),
        (("long.csv", "--pairs", "p.csv"), "name it with --champion MODEL"),
        (("wide.csv", "--pairs", "p.csv", "--score", "new", "--against", "old", "--champion", "old"),
         "one of both"),
        (("wide.csv", "--pairs", "p.csv", "--score", "old", "--against", "old"), "the one column of scores"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old"), "name their column with --id"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--weight", "sent"),
         "leave --weight out"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--pair-within", "1h"),
         "needs --time and --id"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--window", "adaptive"),
         "adaptive window follows the signal of one model"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--export-state", "s"), ALONE),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--import-state", "s"), ALONE),
        ((".", "--follow", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--time", "sent",
          "--control", "c"), ALONE),
        (("long.csv", "--alert", "p < 0.01"), "'p < 0.01' watches pairs of models; say where their rows go"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--alert", "p < 0.01 for 2h"),
         "'for 2h' goes by event time"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--window", "all",
          "--alert", "difference drops by 0.1 against 9 rows"), "two windows of all events share events"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id",
          "--alert", "p < 0.01 where slice = 'country=NZ'"), "without --slice the one slice is ''"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--anytime-at", "5"), "100"),
        (("long.csv", "--pairs", "long.csv", "--champion", "old", "--id", "id"), "long.csv"),
        (("long.csv", "--pairs", "p.csv", "--champion", "old", "--id", "id", "--predicted", "score"),
         "--positive VALUE"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_before_the_job(capsys, arguments, said):
    ran = call(capsys, "evaluate", *arguments)
    assert ran.status == 2
    assert said in "\n".join(ran.lines)


def compared(records, **how):
    """The rows that the transform gives."""
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        result = pipeline | beam.Create(records, reshuffle=False) | rs.ComparePairs(
            every=rs.EveryEvents(300), window=rs.LastEvents(500), **how
        )  # fmt: skip
        _ = (
            result.rows
            | beam.combiners.ToList()
            | beam.Map(lambda rows: Path("found").write_text(repr(rows)))
        )
    found = eval(Path("found").read_text(), {"PairRow": PairRow, "nan": math.nan})
    return sorted(found, key=lambda row: row.row)


def test_the_transform_gives_the_same_rows(capsys):
    records = pa.csv.read_csv("wide.csv").to_pylist()
    rows = [row._asdict() for row in compared(records, score="new", against="old", label="label")]
    assert rows == expected(*instances(), model="new", against="old")
    long = pa.csv.read_csv("long.csv").to_pylist()
    how = {"champion": "old", "id": "id", "time": "sent", "order": "time", "clock": "runner", "within": 0}
    found = [row._asdict() for row in compared(long, **how)]
    assert without_times(found) == without_times(rows)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "give one, the name of a model or the column"),
        ({"champion": "a", "against": "b"}, "give one"),
        ({"champion": "a"}, "name their column with id="),
        ({"champion": "a", "id": "id"}, "name the field of times with time="),
        ({"champion": "a", "id": "id", "time": "t", "weight": "w"}, "leave weight= out"),
        ({"against": "b", "score": "b"}, "the one column of scores"),
        ({"against": "b", "score": "a", "order": "time", "time": "t", "clock": "runner"}, "with id="),
        ({"against": "b", "score": "a", "window": rs.LastDuration("1h")}, "name the field of times"),
        ({"against": "b", "score": "a", "shards": 0}, "1 or more"),
        ({"against": "b", "score": "a", "predicted": "c"}, "name it with positive="),
    ],
)
def test_the_transform_refuses_in_a_sentence(how, said):
    with pytest.raises(rs.ConfigError, match=said):
        rs.ComparePairs(**how)
