"""Class scores whose labels come later: from files, folders, stdin and PCollections, the rows of one file."""

from __future__ import annotations

import json
import os
import shutil
from itertools import product
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from apache_beam.transforms.window import TimestampedValue
from rocsteady.core.rows.class_rows import ClassRow
from rocsteady.transforms.sources.streams import pipe_partition

from tests.support.processes.beam_runs import pipeline
from tests.support.processes.command import call
from tests.support.processes.killed_job import run_live
from tests.support.streams.class_events import NAMES, class_streams, in_order, lines_of, read

SCORES = ("--class-scores", "p_cat,p_dog,p_owl")
KINDS = {"one class": ("--label", "y"), "several": ("--multi-label", "y_cat,y_dog,y_owl")}
JOIN = ("--model", "model", "--time", "sent", "--id", "id", "--label-time", "known")
ROWS = ("--slice", "country", "--window", "last:60", "--every", "40", "--dead-letters", "dead.jsonl")

kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def wanted_of(capsys, kind, events):
    """The rows of one file of sorted events."""
    Path("events.jsonl").write_text(lines_of(events))
    how = (*JOIN[:-2], *ROWS[:-2], *SCORES, *KINDS[kind])
    assert call(capsys, "evaluate", "events.jsonl", *how, "--output", "wanted.parquet").status == 0
    return read("wanted.parquet")


def joined(capsys, *words, output="rows.parquet"):
    ran = call(capsys, "evaluate", *words, *JOIN, *ROWS, "--output", output)
    assert ran.status == 0, ran.lines
    return read(output), ran


def letters():
    found = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    return [(letter["kind"], letter["reason"], json.loads(letter["raw"])) for letter in found]


@kinds
def test_files_of_labels_give_the_rows_of_one_sorted_file(capsys, kind):
    predictions, labels, events = class_streams()
    wanted = wanted_of(capsys, kind, events)
    assert len(wanted) == 4 * sum(len({(row.row, row.slice)}) for row in wanted if row.class_ is None)
    rng = np.random.default_rng(1)
    for (name, records), part in product((("p", predictions), ("l", labels)), range(2)):
        table = pa.Table.from_pylist([*records[part::2]])
        table = table.take(pa.array(rng.permutation(table.num_rows)))
        table = table.drop_columns(["kind"])
        if part:
            pq.write_table(table, f"{name}-{part}.parquet")
        else:
            pa.csv.write_csv(table, f"{name}-{part}.csv")
    star = ("--class-scores", "p_*", *(word.replace("y_cat,y_dog,y_owl", "y_*") for word in KINDS[kind]))
    for how in ((*SCORES, *KINDS[kind]), star):
        rows, ran = joined(capsys, "p-*", "--labels", "l-*", *how)
        assert rows == wanted
        assert any("300 predictions read = 300 applied" in line for line in ran.lines)


@kinds
def test_records_of_a_join_that_count_nowhere_are_dead_letters_with_what_was_read(capsys, kind):
    predictions, labels, events = class_streams()
    wanted = wanted_of(capsys, kind, events[:-1])
    lone = events[-1]["id"]
    alone = [label for label in labels if label["id"] != lone]
    second = {**labels[0], "known": labels[0]["known"] + 1, "y": "owl", "y_cat": 1, "y_dog": 0, "y_owl": 1}
    alone += [second, {**labels[0]}, {**labels[5], "id": "nobody's"}]
    wrong = labels[7]["id"]
    alone += [{**labels[7], "y": "eel", "y_owl": "perhaps"}]
    Path("p.jsonl").write_text(lines_of([*predictions, predictions[3]]))
    Path("l.jsonl").write_text(lines_of(alone))
    more = ("--deduplicate", "1d", *SCORES, *KINDS[kind])
    rows, _ = joined(capsys, "p.jsonl", "--labels", "l.jsonl", *more)
    assert rows == wanted
    found = {}
    for kind_, reason, raw in letters():
        role = "prediction" if "model" in raw else "label"
        found[kind_, reason, role] = raw
    fields = ("y",) if kind == "one class" else tuple(f"y_{name}" for name in NAMES)
    scores = [f"p_{name}" for name in NAMES]
    assert {(*key, raw["id"]) for key, raw in found.items()} == {
        ("duplicate", "second label", "label", second["id"]),
        ("duplicate", "same label again", "label", second["id"]),
        ("duplicate", "second event of this model and id", "prediction", predictions[3]["id"]),
        ("unmatched", "no label within ttl before the input ended", "prediction", lone),
        ("unmatched", "no prediction within ttl before the input ended", "label", "nobody's"),
        ("invalid", "label has no score" if kind == "one class" else "label is unknown", "label", wrong),
    }
    for (kind_, _, role), raw in found.items():
        if role == "prediction":
            given = next(each for each in predictions if each["id"] == raw["id"])
            assert [raw[name] for name in scores] == [given[name] for name in scores]
            assert not raw.keys() & {*fields, "predicted"}
        elif kind_ != "invalid":
            assert raw.keys() == {"id", "known", *fields}


def cut_into_files(folder, records, seed):
    """Write records into files of a folder that is complete, in their order."""
    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir()
    rng, number = np.random.default_rng(seed), 0
    while records:
        size = int(rng.integers(1, 90))
        part, records = records[:size], records[size:]
        if number % 2:
            pq.write_table(pa.Table.from_pylist(part), f"{folder}/{number:03}.parquet")
        else:
            Path(f"{folder}/{number:03}.jsonl").write_text(lines_of(part))
        number += 1
    Path(folder, "_END").touch()


def streamed(source, predictions, labels, seed, monkeypatch, closing):
    """The options of a job that reads both kinds as streams."""
    if source == "folders":
        cut_into_files("made", predictions, seed)
        cut_into_files("known", labels, seed)
        return ("made", "--follow", "--labels", "known")
    rng, both = np.random.default_rng(seed), [[*predictions], [*labels]]
    mixed = []
    while any(both):
        kind = both[int(rng.integers(2))] or both[0] or both[1]
        size = int(rng.integers(1, 40))
        mixed += kind[:size]
        del kind[:size]
    Path("sent").write_text(lines_of(mixed))
    monkeypatch.setattr(pipe_partition, "_BLOCK_BYTES", 5_000)
    closing.append(Path("sent").open())  # noqa: SIM115  closed by the test
    monkeypatch.setattr("sys.stdin", closing[-1])
    return ("-", "--label-records", "kind=label")


@pytest.mark.skipif(os.name != "posix", reason="pipes that can be asked")
@kinds
@pytest.mark.parametrize("source", ["stdin", "folders"])
def test_live_jobs_give_the_rows_of_one_sorted_file_also_when_they_are_killed(
    capsys, monkeypatch, kind, source
):
    predictions, labels, events = class_streams()
    wanted = wanted_of(capsys, kind, events)
    how, closing = (*SCORES, *KINDS[kind]), []
    for seed in range(2):
        words = streamed(source, predictions, labels, seed, monkeypatch, closing)
        assert joined(capsys, *words, *how, output="rows.jsonl")[0] == wanted
    kept = ("--checkpoint", "kept", "--checkpoint-every", "0s", "--output", "rows.jsonl")
    Path("rows.jsonl").unlink()
    for kill_at in (2, 2, 2, None):
        words = streamed(source, predictions, labels, 0, monkeypatch, closing)
        status, _ = run_live((*words, *how, *JOIN, *ROWS, *kept), 40, kill_at)
        assert status == (None if kill_at else 0)
    assert in_order({*rs.read_rows("rows.jsonl")}) == wanted
    for file in closing:
        file.close()


# ---- PCollections


def of_beam(kind, inputs):
    """The rows of JoinLabels and EvaluateModels; `inputs` makes PCollections from a pipeline."""
    names = {"label": "y"} if kind == "one class" else {"multi_label": [f"y_{name}" for name in NAMES]}
    classes = {"class_scores": [f"p_{name}" for name in NAMES], **names}
    join = rs.JoinLabels(
        id="id", time="sent", label_time="known", ttl="7d", model="model", slices="country", **classes
    )
    with pipeline() as built:
        events = (inputs(built) | join).events
        result = events | rs.EvaluateModels(
            model="model", time="sent", id="id", order=join.order, clock="runner", slices="country",
            window=rs.LastEvents(60), every=rs.EveryEvents(40), **classes,
        )  # fmt: skip
        texts = result.rows | beam.Map(lambda row: json.dumps(row._asdict()))
        _ = texts | beam.io.WriteToText("rows", num_shards=1, shard_name_template="")
    rows = [json.loads(line) for line in Path("rows").read_text().splitlines()]
    tuples = [{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
    return in_order([ClassRow(**row) for row in tuples])


def stamped(built, name, records):
    with_times = [TimestampedValue(record, record.get("sent") or record["known"]) for record in records]
    return built | name >> beam.Create(with_times, reshuffle=False) | f"{name} come" >> beam.Map(dict)


@kinds
def test_collections_of_predictions_and_labels_give_the_rows_of_one_sorted_file(capsys, kind):
    predictions, labels, events = class_streams()
    wanted = wanted_of(capsys, kind, events)

    def pair(built):
        return stamped(built, "P", predictions), stamped(built, "L", labels)

    def both(built):
        return stamped(built, "All", [*predictions, *labels])

    assert of_beam(kind, pair) == wanted
    assert of_beam(kind, both) == wanted


def test_a_join_refuses_settings_that_do_not_go_with_class_scores():
    how = {"id": "id", "time": "sent", "ttl": "1d"}
    with pytest.raises(rs.ConfigError, match="score='p' with class_scores=: the columns of class scores are"):
        rs.JoinLabels(**how, class_scores="p_a,p_b", score="p")
    with pytest.raises(rs.ConfigError, match="not known before events come; name them all"):
        rs.JoinLabels(**how, class_scores="p_*")
    with pytest.raises(rs.ConfigError, match="class 'b' has no column of its label"):
        rs.JoinLabels(**how, class_scores="p_a,p_b", multi_label="y_a,y_c")
