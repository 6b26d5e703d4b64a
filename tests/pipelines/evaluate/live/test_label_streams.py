"""Labels of their own in live jobs: on stdin among the predictions, and in a second followed folder."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
from collections import Counter
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rocsteady.core.errors import RocsteadyError
from rocsteady.transforms.sources.streams import pipe_kinds, pipe_partition

from tests.support.processes.command import call
from tests.support.processes.killed_job import run_live
from tests.support.processes.live_job import job, wait_for
from tests.support.thorough import THOROUGH, examples, others_slow

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes that can be asked")

RECORDS = ("--label-records", "kind=label")
JOIN = ("--id", "id", "--time", "made", "--label-time", "known", "--order", "time:10m", "--ttl", "2h")
ROWS = ("--window", "last:60", "--every", "10", "--output", "rows.jsonl", "--dead-letters", "dead.jsonl")
MORE = {
    "plain": (),
    "deduplicated, the last label": ("--deduplicate", "1h", "--second-label", "last", "--label-lead", "0s"),
    "pairs, slices and alerts": (
        "--champion", "a", "--pairs", "pairs.jsonl", "--slice", "country",
        "--alert", "auc < 0.9 for 2 rows", "--alerts", "alerts.jsonl",
    ),
}  # fmt: skip
OUTPUTS = ("rows.jsonl", "dead.jsonl", "pairs.jsonl", "alerts.jsonl")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stdin(monkeypatch, tmp_path):
    """A function that gives stdin bytes, of which a read takes some."""
    with ExitStack() as closing:

        def send(data, block=2_000):
            monkeypatch.setattr(pipe_partition, "_BLOCK_BYTES", block)
            path = tmp_path / "sent"
            path.write_bytes(data)
            monkeypatch.setattr("sys.stdin", closing.enter_context(path.open()))
            return ("-", *RECORDS)

        yield send


def streams(seed, n=150):
    """Predictions of two models and labels of most ids, each up to 10 minutes behind its time, none later."""
    rng = random.Random(seed)
    predictions, labels, made = [], [], 1_700_000_000
    for number in range(n):
        made += rng.choice([0, 1, 60, 300])
        label = int(rng.random() < 0.4)
        for model in "ab":
            prediction = {
                "kind": "prediction", "id": f"e{number}", "made": made, "model": model,
                "score": round(rng.random() * 0.6 + 0.4 * label, 3), "country": rng.choice(["AR", "DE"]),
            }  # fmt: skip
            predictions += [prediction] * (2 if rng.random() < 0.1 else 1)
        known = made + rng.randrange(3 * 3_600)
        if rng.random() < 0.9:
            labels.append({"kind": "label", "id": f"e{number}", "known": known, "label": label})
        if rng.random() < 0.1:
            labels.append({"kind": "label", "id": f"e{number}", "known": known + 60, "label": 1 - label})
    predictions.sort(key=lambda record: record["made"] + rng.randrange(600))
    labels.sort(key=lambda record: record["known"] + rng.randrange(600))
    return predictions, labels


def mixed(predictions, labels, how):
    """Records of both kinds, each kind in its order. how: a seed, or which kind comes first."""
    if how in ("predictions", "labels"):
        return [*predictions, *labels] if how == "predictions" else [*labels, *predictions]
    rng, left = random.Random(how), [[*predictions], [*labels]]
    found = []
    while any(left):
        kind = rng.choice([each for each in left if each])
        run = rng.choice([1, 3, 50])
        found += kind[:run]
        del kind[:run]
    return found


def lines_of(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def outputs():
    """How often each line of each output came; dead letters without their places and their sources."""
    found = {}
    for name in OUTPUTS:
        if Path(name).exists():
            records = [json.loads(line) for line in Path(name).read_bytes().splitlines()]
            for record in records:
                if name == "dead.jsonl":
                    del record["source"], record["position"]
            found[name] = Counter(json.dumps(record, sort_keys=True) for record in records)
    return found


def of_files(capsys, seed, more):
    predictions, labels = streams(seed)
    for name, records in (("p.jsonl", predictions), ("l.jsonl", labels)):
        Path(name).write_bytes(lines_of(records))
    ran = call(capsys, "evaluate", "p.jsonl", "--labels", "l.jsonl", *JOIN, *ROWS, *more)
    assert ran.status == 0, ran.lines
    found = outputs()
    assert all(found.values()), found
    assert all(json.loads(letter)["kind"] != "late" for letter in found["dead.jsonl"])
    for name in OUTPUTS:
        Path(name).unlink(missing_ok=True)
    return found, [line.partition(";")[0] for line in ran.lines if " read = " in line]


def sums_of(ran):
    return [line.partition(";")[0] for line in ran.lines if " read = " in line]


@pytest.mark.parametrize("kind", MORE)
def test_stdin_gives_the_rows_of_the_files_however_both_kinds_are_mixed_and_cut(capsys, stdin, kind):
    wanted, sums = of_files(capsys, 1, MORE[kind])
    for how in ("predictions", "labels", *range(examples(8) // 4)):
        block = random.Random(how).choice([300, 2_000, 1 << 20])
        data = lines_of(mixed(*streams(1), how))
        ran = call(capsys, "evaluate", *stdin(data, block), *JOIN, *ROWS, *MORE[kind])
        assert (ran.status, sums_of(ran)) == (0, sums), ran.lines
        assert outputs() == wanted, how


def put(folder, records, rng):
    """Cut records into files of three formats, in their order."""
    Path(folder).mkdir()
    number = 0
    while records:
        part, records = records[: (size := rng.randrange(1, 120))], records[size:]
        ending = rng.choice(["jsonl", "csv", "parquet"])
        path = f"{folder}/{number:03}.{ending}"
        number += 1
        if ending == "jsonl":
            Path(path).write_bytes(lines_of(part))
            continue
        table = pa.Table.from_pylist(part)
        (pa.csv.write_csv if ending == "csv" else pq.write_table)(table, path)
    Path(folder, "_END").touch()


def folders(seed, cut):
    for name in ("made", "known"):
        shutil.rmtree(name, ignore_errors=True)
    rng = random.Random(cut)
    for name, records in zip(("made", "known"), streams(seed), strict=True):
        put(name, records, rng)
    return ("made", "--follow", "--labels", "known")


@pytest.mark.parametrize("kind", MORE)
def test_two_folders_give_the_rows_of_the_files_however_they_are_cut(capsys, kind):
    wanted, sums = of_files(capsys, 2, MORE[kind])
    for cut in range(examples(8) // 4):
        ran = call(capsys, "evaluate", *folders(2, cut), *JOIN, *ROWS, *MORE[kind])
        assert (ran.status, sums_of(ran)) == (0, sums), ran.lines
        assert outputs() == wanted, cut
    letters = [json.loads(line) for line in Path("dead.jsonl").read_bytes().splitlines()]
    assert {Path(letter["source"]).parent.name for letter in letters} == {"made", "known"}


# ---- checkpoints


@pytest.mark.parametrize(("source", "kind"), others_slow(product(["stdin", "folders"], MORE)))
def test_a_job_that_is_killed_at_any_read_goes_on_with_both_kinds(stdin, source, kind):
    def run(every, kill_at=None):
        of = folders(3, 3) if source == "folders" else stdin(lines_of(mixed(*streams(3), 3)), 5_000)
        words = (*of, *JOIN, *ROWS, *MORE[kind], "--checkpoint", "kept", "--checkpoint-every", every)
        return run_live(words, 40, kill_at)

    status, reads = run("1h")
    assert status == 0
    wanted = outputs()
    assert all(wanted.values())
    kills = range(1, reads)
    for first in kills if THOROUGH else sorted(random.Random(kind).sample(kills, 2)):
        shutil.rmtree("kept")
        for name in OUTPUTS:
            Path(name).unlink(missing_ok=True)
        assert run("0s", first)[0] is None
        assert run("0s")[0] == 0
        for name, lines in outputs().items():
            assert set(lines) == set(wanted[name]), (name, first)
    assert run("0s")[0] == 0  # nothing is left to do


def test_stdin_skips_by_the_count_of_each_kind_not_by_their_mixture(stdin):
    """A producer sends each kind in its order; how it mixes them may change from one start to the next."""
    words = (*JOIN, *ROWS, "--checkpoint", "kept", "--checkpoint-every", "0s")
    predictions, labels = streams(4)
    assert run_live((*stdin(lines_of(mixed(predictions, labels, 1))), *words), 40)[0] == 0
    wanted = {name: set(lines) for name, lines in outputs().items()}
    shutil.rmtree("kept")
    for name in OUTPUTS:
        Path(name).unlink(missing_ok=True)
    assert run_live((*stdin(lines_of(mixed(predictions, labels, 1))), *words), 40, 8)[0] is None
    assert run_live((*stdin(lines_of(mixed(predictions, labels, 2))), *words), 40)[0] == 0
    assert {name: set(lines) for name, lines in outputs().items()} == wanted


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda predictions, labels: (predictions[1:], labels),
            "stdin does not begin with the [0-9]+ records that the job had read",
        ),
        (
            lambda predictions, labels: (predictions, labels[1:]),
            "labels of stdin does not begin with the [0-9]+ records that the job had read",
        ),
        (
            lambda predictions, _: (predictions, []),
            "labels of stdin ends after 0 records, and the job had read [0-9]+",
        ),
    ],
)
def test_records_of_either_kind_that_are_not_sent_again_are_an_error(stdin, change, told):
    words = (*JOIN, *ROWS, "--checkpoint", "kept", "--checkpoint-every", "0s")
    sent = streams(4)
    assert run_live((*stdin(lines_of(mixed(*sent, 1))), *words), 40, 8)[0] is None
    with pytest.raises(RocsteadyError, match=told):
        run_live((*stdin(lines_of(mixed(*change(*sent), 1))), *words), 40)


def test_a_checkpoint_of_other_label_records_is_refused(capsys, stdin):
    words = (*JOIN, *ROWS, "--checkpoint", "kept")
    data = lines_of(mixed(*streams(4), 1))
    assert call(capsys, "evaluate", *stdin(data), *words).status == 0
    ran = call(capsys, "evaluate", *stdin(data)[:1], "--label-records", "kind=truth", *words)
    assert ran.status == 2
    assert "'label_records': 'kind=label'" in ran.lines[0]
    for more in (("labels of stdin", data + lines_of(streams(4)[1][:1])), ("stdin", data + b"{}\n")):
        ran = call(capsys, "evaluate", *stdin(more[1]), *words)
        assert ran.status == 1
        assert f"but {more[0]} has more records now" in ran.lines[0]


# ---- the state of a live job


def test_a_state_goes_from_one_live_job_to_the_next(capsys):
    predictions, labels = streams(5)
    options = (*JOIN[:6], "--order", "time:0s", "--ttl", "2h", *ROWS)
    for records, time in ((predictions, "made"), (labels, "known")):
        records.sort(key=lambda record: record[time])
    middle = predictions[len(predictions) // 2]["made"]
    for part, is_in in (("1", lambda time: time < middle), ("2", lambda time: time >= middle)):
        for name, records in (("made", predictions), ("known", labels)):
            Path(name + part).mkdir()
            chosen = [record for record in records if is_in(record[name])]
            Path(name + part, "a.jsonl").write_bytes(lines_of(chosen))
            Path(name + part, "_END").touch()
    Path("p.jsonl").write_bytes(lines_of(predictions))
    Path("l.jsonl").write_bytes(lines_of(labels))
    assert call(capsys, "evaluate", "p.jsonl", "--labels", "l.jsonl", *options).status == 0
    wanted = outputs()
    found = []
    for part, more in (("1", ("--export-state", "state")), ("2", ("--import-state", "state"))):
        source = (f"made{part}", "--follow", "--labels", f"known{part}")
        if part == "2":  # the folders of the export go on
            for name in ("made", "known"):
                shutil.copy(f"{name}2/a.jsonl", f"{name}1/b.jsonl")
            source = ("made1", "--follow", "--labels", "known1")
        ran = call(capsys, "evaluate", *source, *options, *more)
        assert ran.status == 0, ran.lines
        found.append(outputs())
    for name in ("rows.jsonl", "dead.jsonl"):
        assert found[0][name] + found[1][name] == wanted[name]


# ---- records and options that are wrong


def test_records_that_lack_something_are_dead_letters_at_their_places(capsys, stdin):
    predictions, labels = streams(6)
    wrong = [
        (b'{"id": "e1", "made": 1700000000, "score": 0.5}', "kind of record is missing"),
        (b'{"kind": null, "id": "e1"}', "kind of record is missing"),
        (b'{"kind": "", "id": "e1"}', "kind of record is missing"),
        (b"[1]", "not a JSON object"),
        (b'{"kind": "label", "known": 1700000000, "label": 1}', "id is missing"),
        (b'{"kind": "label", "id": "e1", "made": 1700000000, "label": 1}', "time is missing"),
        (b'{"kind": "label", "id": "e1", "known": 1700000000}', "label is missing"),
        (b'{"kind": "other", "id": "e1", "made": 1700000000, "model": "a"}', "score is missing"),
    ]
    sound = lines_of(mixed(predictions, labels, 1)).splitlines()
    for number, (line, _) in enumerate(wrong):
        sound.insert(7 * number, line)
    ran = call(capsys, "evaluate", *stdin(b"\n\n".join(sound), 999), *JOIN, *ROWS)
    assert ran.status == 0
    dead = [json.loads(line) for line in Path("dead.jsonl").read_bytes().splitlines()]
    invalid = {letter["position"]: letter for letter in dead if letter["kind"] == "invalid"}
    assert {place: letter["reason"] for place, letter in invalid.items()} == {
        7 * number: reason for number, (_, reason) in enumerate(wrong)
    }
    assert {letter["source"] for letter in dead} == {"stdin"}
    assert json.loads(invalid[0]["raw"]) == json.loads(wrong[0][0])
    assert (invalid[0]["field"], invalid[28]["field"]) == ("kind", "id")
    while_it_ran, of_predictions, of_labels, *_ = ran.lines
    assert " are dead letters: most often no label within ttl; " in while_it_ran
    assert f"{len(predictions) + 5} predictions read" in of_predictions
    assert f"{len(labels) + 3} labels read" in of_labels
    places = {letter["position"] for letter in dead if letter["kind"] == "unmatched"}
    assert all(json.loads(sound[place])["kind"] in ("prediction", "label") for place in places)
    assert {json.loads(line)["model"] for line in Path("rows.jsonl").read_bytes().splitlines()} == {"a", "b"}


@pytest.mark.parametrize("value", [True, 1, 1.0, "1", "TRUE"])
def test_a_kind_may_be_a_number_or_a_word_of_truth(capsys, stdin, value):
    wanted, _ = of_files(capsys, 7, ())
    predictions, labels = streams(7)
    for record in (*predictions, *labels):
        record["kind"] = value if record["kind"] == "label" else 0
    asked = "kind=true" if str(value).lower() == "true" else "kind=1"
    options = ("-", "--label-records", asked, *JOIN, *ROWS)
    stdin(lines_of(mixed(predictions, labels, 1)))
    assert call(capsys, "evaluate", *options).status == 0
    assert outputs()["rows.jsonl"] == wanted["rows.jsonl"]


def test_a_value_that_never_appears_is_told_with_those_that_do(capsys, stdin, monkeypatch):
    data = lines_of(mixed(*streams(6), 1))
    stdin(data)
    records = data.count(b"\n")
    ran = call(capsys, "evaluate", "-", "--label-records", "kind=labl", *JOIN, *ROWS)
    assert ran.status == 3
    told = "is a label: --label-records kind=labl, and the column 'kind' has 'label', 'prediction'"
    assert f"none of the first {records} records of stdin {told}" in "\n".join(ran.lines)
    monkeypatch.setattr(pipe_kinds, "_TELLING", 20)  # a stream without an end is told early
    stdin(data, 100)
    ran = call(capsys, "evaluate", "-", "--label-records", "sort=label", *JOIN, *ROWS)
    told = [line for line in ran.lines if "is a label" in line]
    assert len(told) == 1
    assert "the first 20 records" in told[0]
    assert "the column 'sort' has nothing" in told[0]


NAMED = ("--id", "id", "--time", "made")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-", *RECORDS, "--time", "made"), "--label-records kind=label: labels are joined by id, in event"),
        (("-", *RECORDS, "--id", "id"), "name the time of a prediction with --time COL"),
        (("-", "--label-records", "kind", *NAMED), "--label-records kind: give a column and the value that"),
        (("-", "--label-records", "=label", *NAMED), "--label-records =label: give a column and the value"),
        (("-", "--label-records", "kind=", *NAMED), "--label-records kind=: give a column and the value"),
        (
            ("-", *RECORDS, "--labels", "l.jsonl", *NAMED),
            "--label-records kind=label with --labels l.jsonl: labels come on stdin among the predictions",
        ),
        (
            ("-", "--labels", "l.jsonl", *NAMED),
            "--labels l.jsonl with SOURCE -: on stdin, labels come in the",
        ),
        (("a", "--labels", "-", *NAMED), "--labels -: stdin is read once, as SOURCE -; send predictions and"),
        (("p.jsonl", *RECORDS, *NAMED), "kind=label tells the records of stdin apart, and SOURCE is p.js"),
        (("a", "--follow", *RECORDS, *NAMED), "--label-records kind=label tells the records of stdin apart"),
        (("kafka://h:1/t", *RECORDS, *NAMED), "--label-records kind=label tells the records of stdin apart"),
        (("-", "--ttl", "1h"), "--ttl 1h is for labels of their own; name them with --labels, or of stdin"),
        (
            ("a", "--follow", "--labels", "a", *NAMED),
            "--labels a is also the folder of --follow; predictions",
        ),
        (("a", "--follow", "--labels", "./a/", *NAMED), "--labels ./a/ is also the folder of --follow"),
        (
            ("a", "--follow", "--labels", "b", "--labels", "b", *NAMED),
            "--labels b is also the folder of --labels",
        ),
        (
            ("a", "--follow", "--labels", "l.jsonl", *NAMED),
            "--labels: l.jsonl is not a folder; with -",
        ),
        (("a", "--follow", "--labels", "c", *NAMED), "--labels: c does not exist; create it; with --follow"),
        (
            ("a", "--follow", "--labels", "b", *NAMED, "--output", "b/r.jsonl"),
            "--output b/r.jsonl is in the folder that is followed; write elsewhere",
        ),
        (
            ("a", "--follow", "--labels", "b", *NAMED, "--output", "r.jsonl", "--checkpoint", "b"),
            "--checkpoint b is also the folder of --labels; name another",
        ),
        (
            ("-", *RECORDS, *NAMED, "--order", "arrival"),
            "--order arrival with --label-records kind=label: joined events apply in the order",
        ),
    ],
)
def test_labels_that_cannot_be_read_so_are_refused_with_the_remedy(capsys, stdin, words, told):
    for name in ("a", "b"):
        Path(name).mkdir()
    Path("l.jsonl").touch()
    Path("p.jsonl").touch()
    stdin(b"")
    ran = call(capsys, "evaluate", *words)
    assert ran.status == 2
    assert told in ran.lines[0]


def test_a_label_file_without_a_column_is_refused_by_its_name(capsys):
    for name, record in (("made", streams(6)[0][0]), ("known", {"id": "e1", "label": 1})):
        Path(name).mkdir()
        Path(name, "a.jsonl").write_bytes(lines_of([record]))
    ran = call(capsys, "evaluate", "made", "--follow", "--labels", "known", *JOIN, *ROWS)
    assert ran.status == 2
    assert "a.jsonl has no column 'known'" in ran.lines[0]
    assert "--label-time COL" in ran.lines[0]


# ---- streams that go on


def test_labels_that_lag_hold_the_clock_and_no_label_is_too_late_for_the_predictions():
    """The predictions are days ahead when the first labels come, which count all the same."""
    start, day = 1_700_000_000, 86_400
    predictions = [
        {"kind": "prediction", "id": number, "made": start + number * day, "model": "a", "score": number}
        for number in range(10)
    ]
    labels = [
        {"kind": "label", "id": number, "known": start + number * day + 5, "label": number % 2}
        for number in range(10)
    ]
    options = ("--id", "id", "--time", "made", "--label-time", "known", "--ttl", "1h", "--label-lead", "0s")
    with job("-", *RECORDS, *options, "--every", "3", "--window", "all") as running:
        running.send(lines_of(predictions))
        for number in range(9):
            running.send(lines_of(labels[number : number + 1]))
            if number in (3, 6):  # the clock is that of the labels: the one before is complete
                assert running.row()["seq"] == number
        running.process.stdin.close()
        running.process.stdin = None
        status, rows, lines = running.end()
    assert status == 0
    assert json.loads(rows[-1])["seq"] == 9
    assert lines[0].startswith("rocsteady: 10 predictions read = 9 applied + 0 dead letters + 1 unmatched; ")
    assert lines[1] == "rocsteady: 9 labels read = 9 used"


def test_labels_without_an_end_are_told_when_the_predictions_have_ended(tmp_path):
    source = folders(8, 8)
    (tmp_path / "known" / "_END").unlink()
    with job(*source, *JOIN, "--every", "10", "--dead-letters", "dead.csv") as running:
        line = running.process.stderr.readline().decode()
        while "complete" not in line:
            assert line
            line = running.process.stderr.readline().decode()
        made, known = tmp_path / "made", tmp_path / "known"
        assert line.strip() == (
            f"rocsteady: {made} is complete, and {known} is not: the job goes on until a file _END is there, "
            "too"
        )
        (known / "_END").touch()
        status, rows, _ = running.end()
    assert status == 0
    assert rows
    with Path("dead.csv").open(newline="") as file:
        assert {letter["kind"] for letter in csv.DictReader(file)} <= {"unmatched", "duplicate"}


def test_files_of_labels_that_come_while_the_job_runs_are_read():
    source = folders(8, 8)
    later = Path("known/999.jsonl")
    for name in ("made", "known"):
        Path(name, "_END").unlink()
    with job(
        *source, *JOIN, "--label-lead", "0s", "--every", "10", "--dead-letters", "dead.jsonl"
    ) as running:
        assert running.row() is not None
        later.write_bytes(lines_of([{"id": "stranger", "known": 1_900_000_000, "label": 1}]))
        wait_for(lambda: b"unmatched" in Path("dead.jsonl").read_bytes())
        for name in ("made", "known"):
            Path(name, "_END").touch()
        status, _, lines = running.end()
    assert status == 0
    assert f"{len(streams(8)[1]) + 1} labels read" in "\n".join(lines)
