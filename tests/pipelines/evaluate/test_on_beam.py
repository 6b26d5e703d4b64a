"""The evaluate command as a whole: its rows against scikit-learn, and what every option does to them."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rocsteady.core.evaluator.evaluator import ModelEvaluator
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.core.settings.costs import BetaCost
from rocsteady.core.settings.windows import AllEvents
from rocsteady.pipelines.cli import main
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    brier_score_loss,
    cohen_kappa_score,
    log_loss,
    matthews_corrcoef,
    roc_auc_score,
)

from tests.support.processes.command import call, evaluated, names, run

N = 500


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def stream(n=N, seed=0):
    """Columns of n events: score, label, word, time (rising, mixed zones), id, country, device, model."""
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.4
    seconds = np.cumsum(rng.integers(1, 100, n))
    moments = np.datetime64("2024-01-01T00:00:00") + seconds
    return {
        "score": np.round(rng.random(n) * 0.6 + 0.4 * label, 2),
        "label": label.astype(int),
        "word": np.where(label, "bad", np.where(rng.random(n) < 0.5, "good", "fair")),
        "time": np.array([
            (f"{moment}Z", f"{moment + np.timedelta64(2, 'h')}+02:00", str(moment))[zone]
            for moment, zone in zip(moments, rng.integers(0, 3, n), strict=True)
        ]),
        "id": np.array([f"e{i:05}" for i in range(n)]),
        "country": rng.choice(["AR", "DE", ""], n),
        "device": rng.choice(["a=b", "c,d"], n),
        "model": rng.choice(["m1", "m2"], n),
    }  # fmt: skip


def write(path, columns, keep=None, order=None):
    table = pa.table(columns)
    if keep is not None:
        table = table.select(keep)
    if order is not None:
        table = table.take(pa.array(order))
    if path.endswith(".parquet"):
        pq.write_table(table, path)
    elif path.endswith(".jsonl"):
        Path(path).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        with (gzip.open if path.endswith(".gz") else open)(path, "wb") as file:
            pa.csv.write_csv(table, file)


def without(rows, *columns):
    return [{name: value for name, value in row.items() if name not in columns} for row in rows]


def last_rows(rows):
    return {(row["model"], row["slice"]): row for row in rows}


def test_every_row_agrees_with_scikit_learn_on_its_window(capsys):
    data = stream()
    write("s.csv", data, ["score", "label"])
    rows = evaluated(
        capsys, "s.csv", "--window", "last:120", "--every", "7", "--probabilities", "--measures", "all"
    )
    assert [row["seq"] for row in rows] == [*range(7, N, 7), N]
    for row in rows:
        window = slice(max(row["seq"] - 120, 0), row["seq"])
        label, score = data["label"][window], data["score"][window]
        said = score >= 0.5
        assert row["window_events"] == len(label)
        assert row["positives"] == label.sum()
        expected = {
            "auc": roc_auc_score(label, score),
            "average_precision": average_precision_score(label, score),
            "brier": brier_score_loss(label, score),
            "log_loss": log_loss(label, np.clip(score, 2.0**-52, 1 - 2.0**-52), labels=[0, 1]),
            "accuracy": accuracy_score(label, said),
            "kappa": cohen_kappa_score(label, said),
            "mcc": matthews_corrcoef(label, said),
        }
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=1e-12, abs=1e-12), name


def test_on_a_dataset_that_ships_with_scikit_learn(capsys):
    """The acceptance of the real files below, on data that everyone has."""
    cancer = load_breast_cancer()
    size, label = cancer.data[:, 0], cancer.target
    half = np.where(cancer.data[:, 1] > np.median(cancer.data[:, 1]), "rough", "smooth")
    write("cancer.csv.gz", {"size": -size, "benign": label, "texture": half})
    rows = last_rows(evaluated(
        capsys, "cancer.csv.gz", "--score", "size", "--label", "benign", "--slice", "texture",
        "--window", "all", "--every", "100", "--cost", "severity",
    ))  # fmt: skip
    assert rows["cancer", ""]["auc"] == pytest.approx(roc_auc_score(label, -size), abs=1e-12)
    for name in ("rough", "smooth"):
        held = half == name
        row = rows["cancer", f"texture={name}"]
        assert row["auc"] == pytest.approx(roc_auc_score(label[held], -size[held]), abs=1e-12)
        assert 0 < row["h"] < row["ks"] < 1


def test_slices_and_crosses_are_evaluated_beside_the_whole(capsys):
    data = stream()
    write("s.parquet", data)
    rows = last_rows(evaluated(
        capsys, "s.parquet", "--slice", "country", "--slice", "country,device", "--window", "all",
        "--model-name", "m",
    ))  # fmt: skip
    shown = {"a=b": "a\\=b", "c,d": "c\\,d"}
    expected = {"": np.full(N, True)}
    for country in ("AR", "DE", ""):
        expected[f"country={country}"] = data["country"] == country
        for device in shown:
            both = (data["country"] == country) & (data["device"] == device)
            expected[f"country={country},device={shown[device]}"] = both
    assert set(rows) == {("m", name) for name in expected}
    for name, held in expected.items():
        auc = roc_auc_score(data["label"][held], data["score"][held])
        assert rows["m", name]["auc"] == pytest.approx(auc, abs=1e-12)
        assert rows["m", name]["seq"] == held.sum()


def test_models_are_a_column_or_a_name_or_the_name_of_the_file(capsys):
    data = stream(60)
    write("with.csv", data)
    write("bare.one.csv.gz", data, ["score", "label", "word"])
    models = lambda rows: sorted({row["model"] for row in rows})  # noqa: E731
    assert models(evaluated(capsys, "with.csv")) == ["m1", "m2"]
    assert models(evaluated(capsys, "with.csv", "--model", "country", "--label", "label", dead=True)) == [
        "AR",
        "DE",
    ]
    assert models(evaluated(capsys, "with.csv", "--model-name", "mine")) == ["mine"]
    assert models(evaluated(capsys, "bare.one.csv.gz", "with.csv")) == ["bare.one", "m1", "m2"]


def test_positive_may_be_a_word_or_any_spelling_of_a_number(capsys):
    data = stream()
    write("s.csv", data, ["score", "label", "word"])
    rows = evaluated(capsys, "s.csv")
    for spelled in ("1", "1.0"):
        assert evaluated(capsys, "s.csv", "--positive", spelled) == rows
    assert evaluated(capsys, "s.csv", "--positive", "bad", "--label", "word") == rows
    mirrored = evaluated(capsys, "s.csv", "--positive", "0")
    assert mirrored[-1]["auc"] == pytest.approx(1 - rows[-1]["auc"], abs=1e-12)


def test_labels_of_three_values_are_dead_letters_that_name_the_remedy(capsys):
    write("s.csv", stream(30), ["score", "word"])
    ran = call(capsys, "evaluate", "s.csv", "--label", "word", "--output", "o.csv")
    assert ran.status == 3
    assert ran.counts == (30, 0, 30, 0)
    assert ran.lines[2] == "  30 x label is unknown (the first at position 0)"
    first, word = Path("s.csv").read_text().splitlines()[1].replace('"', "").split(",")
    assert ran.lines[3] == (
        "rocsteady: no event was applied: most often label is unknown (in the column 'word', such as "
        f"{word!r}); name the positive class with --positive, or check --label; one of them is "
        f'{{"score": "{first}", "word": "{word}"}} (s.csv, position 0)'
    )
    assert pyarrow.csv.read_csv("o.csv").num_rows == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            "score,label,time\nx,1,1\n",
            (),
            "score is not a number (in the column 'score', such as 'x'); check --score",
        ),
        (
            "p,label\n3,1\n",
            ("--probabilities", "--score", "p"),
            "leave out --probabilities, or check --score",
        ),
        (
            "score,label,t\n.3,1,soon\n",
            ("--time", "t"),
            "name the form of texts with --time-format; give the begin of a period",
        ),
        ("score,label\n.3,\n", (), "label is missing (in the column 'label'); check --label"),
        ("score,label,model\n.3,1,\n", (), "check --model, or give all records one name with --model-name"),
    ],
)
def test_a_job_that_applied_nothing_says_so_with_the_remedy(text, options, words, capsys):
    Path("s.csv").write_text(text)
    ran = call(capsys, "evaluate", "s.csv", *options, "--output", "o.csv")
    assert ran.status == 3
    assert ran.lines[-2].startswith("rocsteady: no event was applied: most often ")
    remedy, one = ran.lines[-2].split("; one of them is ")
    assert remedy.endswith(words), ran.lines
    assert one.endswith("(s.csv, position 0)")


def warnings(capsys, *arguments):
    ran = call(capsys, "evaluate", *arguments, "--output", "o.csv")
    assert ran.status == 0
    return [line.removeprefix("rocsteady: ") for line in ran.lines[1:]]


def test_a_positive_class_that_no_label_equals_is_told(capsys):
    data = stream(60)
    write("s.csv", data, ["score", "word", "device"])
    (line,) = warnings(capsys, "s.csv", "--label", "word", "--positive", "Bad", "--measures", "auc")
    assert line.startswith(
        "no event in the rows is positive: no label in 'word' equals --positive Bad; check "
    )
    predicted = ("--label", "word", "--predicted", "word")
    assert len(warnings(capsys, "s.csv", *predicted, "--positive", "Bad")) == 1
    for right in (("--label", "word", "--positive", "bad"), predicted):
        assert warnings(capsys, "s.csv", *right) == []


@pytest.mark.slow
def test_a_threshold_with_all_scores_on_one_side_is_told_when_that_holds_for_all_models(capsys):
    label = stream(120)["label"]
    high, low = (np.linspace(begin, begin + 0.4, 120) for begin in (0.5, 0.05))
    write("high.csv", {"score": high, "label": label})
    write("low.csv", {"score": low, "label": label})
    write("few.csv", {"score": high[:99], "label": label[:99]})
    remedy = "set --threshold if that is not meant"
    assert warnings(capsys, "high.csv") == [
        f"every event in the rows is predicted positive at threshold 0.5: {remedy}"
    ]
    assert warnings(capsys, "low.csv", "--threshold", "0.6", "--slice", "label") == [
        f"every event in the rows is predicted negative at threshold 0.6: {remedy}"
    ]
    for quiet in (
        ["high.csv", "low.csv"],
        ["high.csv", "--threshold", "0.55"],
        ["high.csv", "--measures", "auc"],
        ["few.csv"],
        ["high.csv", "--predicted", "label"],
    ):
        assert warnings(capsys, *quiet) == []


def test_predicted_classes_make_the_kappa_family_multi_class(capsys):
    data = stream()
    rng = np.random.default_rng(3)
    data["said"] = np.where(rng.random(N) < 0.6, data["word"], rng.choice(["good", "fair", "bad"], N))
    write("s.csv", data, ["score", "word", "said"])
    options = ("--label", "word", "--predicted", "said", "--window", "all")
    plain = evaluated(capsys, "s.csv", *options)[-1]
    for row in (plain, evaluated(capsys, "s.csv", *options, "--positive", "bad")[-1]):
        assert row["accuracy"] == pytest.approx(accuracy_score(data["word"], data["said"]), abs=1e-12)
        assert row["kappa"] == pytest.approx(cohen_kappa_score(data["word"], data["said"]), abs=1e-12)
    assert plain["auc"] is None
    assert plain["reason"].startswith("auc, ")
    assert row["auc"] == pytest.approx(roc_auc_score(data["word"] == "bad", data["score"]), abs=1e-12)


@pytest.mark.slow
def test_a_shuffled_file_in_order_of_time_equals_the_sorted_one_in_order_of_position(capsys):
    """Times of mixed zones, one without any, ties told apart by id."""
    data = stream()
    data["time"][100:120] = data["time"][100]
    write("sorted.csv", data)
    write("shuffled.csv", data, order=np.random.default_rng(5).permutation(N))
    options = ("--time", "time", "--id", "id", "--slice", "country", "--window", "last:100", "--every", "9")
    by_position = evaluated(capsys, "sorted.csv", *options, "--order", "position")
    by_time = evaluated(capsys, "shuffled.csv", *options)
    assert without(by_time, "config") == without(by_position, "config")
    assert by_time == evaluated(capsys, "sorted.csv", *options, "--order", "time")
    assert evaluated(capsys, "shuffled.csv", *options, "--order", "arrival") != by_time


@pytest.mark.parametrize("unit", ["ms", "ns"])
def test_numeric_times_count_the_unit_asked_for(unit, capsys):
    per_second = {"ms": 10**3, "ns": 10**9}[unit]
    write("s.csv", {"score": [0.1, 0.9], "label": [0, 1], "t": [1_700_000_000 * per_second] * 2})
    row = evaluated(capsys, "s.csv", "--time", "t", "--time-unit", unit)[-1]
    assert row["time"].isoformat() == "2023-11-14T22:13:20+00:00"


@pytest.mark.slow
def test_files_are_read_in_the_order_of_their_names_whichever_way_they_are_given(capsys):
    data = stream()
    keep = ["score", "label", "model", "country"]
    for part, (begin, end) in enumerate(((0, 150), (150, 320), (320, N))):
        ending = ("csv", "parquet", "jsonl")[part]
        write(f"day-{part}.{ending}", data, keep, order=np.arange(begin, end))
    write("whole.csv", data, keep)
    options = ("--window", "last:80", "--every", "11", "--slice", "country")
    whole = evaluated(capsys, "whole.csv", *options)
    for given in (["day-2.jsonl", "day-0.csv", "day-1.parquet"], ["day-1.parquet", "day-*"]):
        assert evaluated(capsys, *given, *options) == whole


CUT = ("--window", "last:80", "--every", "11", "--slice", "country")


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A file, and the bytes of its rows by the usual engine."""
    folder = tmp_path_factory.mktemp("one")
    source, output = folder / "s.csv", folder / "rows.parquet"
    write(str(source), stream(), ["score", "label", "model", "country"])
    assert main(["evaluate", str(source), *CUT, "--output", str(output)]) == 0
    return source, output.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        ["--runner", "DirectRunner"],
        ["--runner", "FnApiRunner", "--shards", "3", "--cache-bytes", "0"],
        ["--runner", "BundleBasedDirectRunner", "--shards", "1"],
        ["--direct_num_workers", "2", "--direct_running_mode", "multi_threading"],
    ],
    ids=" ".join,
)
def test_the_same_bytes_come_from_every_engine_and_number_of_shards(engine, one, capsys):
    evaluated(capsys, one[0], *CUT, *engine)
    assert Path("rows.parquet").read_bytes() == one[1]


@pytest.mark.slow  # in a plain run test_write_parts.py has a job in worker processes
def test_worker_processes_find_the_package_and_give_the_same_bytes(one):
    """Their own lines on stderr are Beam's."""
    workers = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
    ran = run("evaluate", one[0], *CUT, "--output", "two.parquet", *workers)
    assert ran.status == 0, ran
    assert any(f"{N} events read = {N} applied + 0 dead letters" in line for line in ran.lines)
    assert Path("two.parquet").read_bytes() == one[1]


def test_the_same_rows_are_in_every_format(capsys):
    write("s.csv", stream(50), ["score", "label", "time"])
    rows = evaluated(capsys, "s.csv", "--time", "time", "--every", "10")
    call(capsys, "evaluate", "s.csv", "--time", "time", "--every", "10", "--output", "o.csv")
    stdout = call(capsys, "evaluate", "s.csv", "--time", "time", "--every", "10", "--output", "-")
    lines = stdout.out
    assert stdout.counts == (50, 50, 0, 5)
    texts = list(csv.DictReader(Path("o.csv").read_text().splitlines()))
    for row, from_json, from_csv in zip(rows, map(json.loads, lines.splitlines()), texts, strict=True):
        assert list(row) == list(from_json) == list(from_csv)
        for name, value in row.items():
            if name in ("time", "window_start", "window_end"):
                value = value.isoformat().replace("+00:00", "Z")
            assert from_json[name] == value, name
            assert (from_csv[name] or None) == (None if value in (None, "") else from_csv[name]), name
            if isinstance(value, float):
                assert float(from_csv[name]) == value


def test_measures_are_chosen_and_the_others_null(capsys):
    write("s.csv", stream(50), ["score", "label"])
    row = evaluated(capsys, "s.csv", "--measures", "auc,kappa_m,average_precision")[-1]
    given = {name for name in MEASURES if row[name] is not None}
    assert given == {"auc", "auc_low", "auc_high", "kappa_m", "average_precision"}
    row = evaluated(capsys, "s.csv")[-1]
    usual = {name for name in MEASURES if row[name] is not None}
    assert not usual & {"cost_curve_area", "average_precision", "calibration_error", "brier", "log_loss"}
    every = evaluated(capsys, "s.csv", "--measures", "all", "--probabilities", "--evidence-below", "0.8")[-1]
    assert [name for name in MEASURES if every[name] is None] == []


@pytest.mark.slow
def test_costs_and_priors_move_the_h_measure_alone(capsys):
    data = stream()
    write("s.csv", data, ["score", "label"])

    def h(*options):
        row = evaluated(capsys, "s.csv", "--window", "all", *options)[-1]
        assert row["auc"] == pytest.approx(roc_auc_score(data["label"], data["score"]), abs=1e-12)
        return row["h"]

    def expected(**choices):
        evaluator = ModelEvaluator(window=AllEvents(), **choices)
        evaluator.update(data["label"], data["score"])
        return evaluator.measures().h

    share = float(data["label"].mean())
    beta = {
        "beta:3,0.5": BetaCost(3, 0.5),
        "uniform": BetaCost(1, 1),
        "severity:0.1": BetaCost(2, 11),
        "severity": BetaCost(2, 1 + (1 - share) / share),
        "severity:balanced": BetaCost(1 + share, 2 - share),
    }
    found = {h("--cost", cost): expected(cost=same) for cost, same in beta.items()}
    found[h("--priors", "0.1")] = expected(priors=0.1)
    assert len(found) == 6
    for value, by_the_evaluator in found.items():
        assert value == pytest.approx(by_the_evaluator, rel=1e-12)


def test_what_cannot_count_is_a_dead_letter_at_its_position_in_every_format(capsys):
    lines = [
        "0.1,0,2024-01-01",
        "nan,1,2024-01-02",
        "0.9,1,soon",
        "inf,0,2024-01-03",
        ",1,2024-01-04",
        "0.3,,2024",
    ]
    lines += [
        "0.7,1,2024-01-05T00:00:00+02:00",
        "0.2,0,1704412800",
        "too,many,fields,here",
        "-inf,2,2024-01-01",
    ]
    Path("s.csv").write_text("score,label,time\n" + "\n".join(lines) + "\n")
    found = {}
    for path in ("d.parquet", "d.csv", "d.jsonl"):
        evaluated(capsys, "s.csv", "--time", "time", "--dead-letters", path, dead=True)
    found["parquet"] = pq.read_table("d.parquet").to_pylist()
    found["jsonl"] = [json.loads(line) for line in Path("d.jsonl").read_text().splitlines()]
    with Path("d.csv").open(newline="") as file:
        found["csv"] = [{**row, "position": int(row["position"])} for row in csv.DictReader(file)]
    assert [row["position"] for row in found["parquet"]] == [1, 2, 3, 4, 5, 8, 9]
    for rows in found.values():
        for row, expected in zip(rows, found["parquet"], strict=True):
            for name in ("kind", "reason", "source", "position", "raw", "field", "value", "detail"):
                assert (row[name] or None) == expected[name]
    assert {row["kind"] for row in found["parquet"]} == {"invalid"}
    assert [row["reason"] for row in found["parquet"]] == [
        "score is not finite", "time cannot be read", "score is not finite", "score is missing",
        "label is missing", "wrong number of fields", "score is not finite",
    ]  # fmt: skip
    assert [row["value"] for row in found["parquet"]] == ["nan", "soon", "inf", None, None, None, "-inf"]
    assert "score: " in found["parquet"][-1]["detail"]
    assert "label: " in found["parquet"][-1]["detail"]
    assert json.loads(found["parquet"][0]["raw"])["time"] == "2024-01-02"


def test_dead_letters_without_any_are_an_empty_table(capsys):
    write("s.csv", stream(20), ["score", "label"])
    evaluated(capsys, "s.csv", "--dead-letters", "d.parquet")
    assert pq.read_table("d.parquet").num_rows == 0


def test_the_summary_names_the_kinds_of_dead_letters_most_frequent_first(capsys):
    Path("s.csv").write_text("score,label\n0.1,0\nfoo,1\nbar,1\nnan,1\n0.5,yes\nx,1\n")
    ran = call(capsys, "evaluate", "s.csv", "--output", "o.csv")
    assert ran.counts == (6, 1, 5, 1)
    assert ran.lines[1] == "rocsteady: dead letters, kept with --dead-letters PATH:"
    assert ran.lines[2] == "  3 x score is not a number (the first at position 1)"
    assert sorted(line.rpartition("position ")[2] for line in ran.lines[3:]) == ["3)", "4)"]
    ran = call(capsys, "evaluate", "s.csv", "--output", "o.csv", "--dead-letters", "d.csv")
    assert ran.lines[1] == "rocsteady: dead letters, in d.csv:"


@pytest.mark.slow
def test_text_in_the_score_column_deep_in_a_file_costs_one_event(capsys):
    lines = ["score,label", *(f"0.{i % 9},{i % 2}" for i in range(250_000))]
    lines[240_001] = "oops,1"
    Path("deep.csv").write_text("\n".join(lines))
    ran = call(capsys, "evaluate", "deep.csv", "--every", "100000", "--output", "o.csv")
    assert ran.status == 0
    assert ran.counts == (250_000, 249_999, 1, 3)
    assert "1 x score is not a number (the first at position 240,000)" in ran.lines[2]


def test_repeated_ids_all_count(capsys):
    write("s.csv", {"score": [0.1, 0.9, 0.5], "label": [0, 1, 1], "id": ["a", "a", "a"]})
    assert evaluated(capsys, "s.csv", "--id", "id")[-1]["seq"] == 3


@pytest.mark.parametrize("name", ["s.csv.gz", "s.parquet", "s.jsonl"])
def test_a_file_without_events_gives_an_empty_table(name, capsys):
    empty = {"score": pa.array([], pa.float64()), "label": pa.array([], pa.int64())}
    write(name, empty)
    if name == "s.jsonl":
        Path(name).write_text("\n")
    assert evaluated(capsys, name) == []


def test_no_rows_are_a_header_in_csv_and_nothing_in_json(capsys):
    Path("s.csv").write_text("score,label\n")
    assert call(capsys, "evaluate", "s.csv", "--output", "-").out == ""
    call(capsys, "evaluate", "s.csv", "--output", "o.csv")
    assert Path("o.csv").read_text().startswith("model,slice,row,")
    assert Path("o.csv").read_text().count("\n") == 1


@pytest.mark.slow
def test_ten_thousand_models_with_one_event_each(capsys):
    n = 10_000
    write("s.parquet", {
        "model": [f"m{i:05}" for i in range(n)], "score": np.arange(n) / n, "label": np.arange(n) % 2,
    })  # fmt: skip
    rows = evaluated(capsys, "s.parquet")
    assert [row["model"] for row in rows] == [f"m{i:05}" for i in range(n)]
    assert {row["seq"] for row in rows} == {1}
    assert {row["auc"] for row in rows} == {None}
    assert all(row["reason"].startswith("auc, ") for row in rows)


def test_stdout_may_be_one_without_bytes(monkeypatch, capsys):
    import io

    write("s.csv", stream(20), ["score", "label"])
    text = io.StringIO()
    monkeypatch.setattr("sys.stdout", text)
    call(capsys, "evaluate", "s.csv", "--output", "-")
    assert json.loads(text.getvalue())["seq"] == 20


needs_data = pytest.mark.skipif(
    "ROCSTEADY_DATA" not in os.environ,
    reason="ROCSTEADY_DATA is not set: export it to the folder of the data sets",
)


@pytest.mark.slow
@needs_data
def test_auc_per_year_of_a_census_model_equals_scikit_learn(capsys):
    path = Path(os.environ["ROCSTEADY_DATA"]) / "scores_acs_employment_MA.csv.gz"
    ran = call(
        capsys, "evaluate", path, "--score", "predicted_probability", "--label", "employed",
        "--slice", "year", "--window", "all", "--every", "50000", "--output", "rows.csv",
    )  # fmt: skip
    assert ran.status == 0, ran
    assert ran.counts[0] == ran.counts[1]
    table = pyarrow.csv.read_csv(path)
    year, label, score = (table[name].to_numpy() for name in ("year", "employed", "predicted_probability"))
    with Path("rows.csv").open(newline="") as file:
        rows = last_rows(csv.DictReader(file))
    model = "scores_acs_employment_MA"
    expected = {f"year={y}": year == y for y in np.unique(year)} | {"": year > 0}
    assert set(rows) == {(model, name) for name in expected}
    for name, held in expected.items():
        assert abs(float(rows[model, name]["auc"]) - roc_auc_score(label[held], score[held])) < 1e-12


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize(
    ("column", "h", "h_balanced", "ks", "auc"),
    [
        ("LDA", 0.4802968, 0.4401067, 0.6335723, 0.865232579518294),
        ("kNN9", 0.3707186, 0.3463211, 0.4920941, 0.828599007170436),
    ],
)
def test_the_published_values_of_the_pima_vignette(column, h, h_balanced, ks, auc, capsys):
    path = Path(os.environ["ROCSTEADY_DATA"]) / "ref_hmeasure_vignette_pima_scores.csv"
    row = evaluated(capsys, path, "--score", column, "--window", "all", "--cost", "severity")[-1]
    assert row["h"] == pytest.approx(h, abs=1e-7)
    assert row["ks"] == pytest.approx(ks, abs=1e-7)
    assert row["auc"] == pytest.approx(auc, abs=1e-12)
    row = evaluated(capsys, path, "--score", column, "--window", "all", "--cost", "severity:1")[-1]
    assert row["h"] == pytest.approx(h_balanced, abs=1e-7)


def test_nothing_but_the_outputs_is_left(capsys):
    write("s.csv", stream(20), ["score", "label"])
    evaluated(capsys, "s.csv", "--dead-letters", "d.csv")
    assert names() == ["d.csv", "rows.parquet", "s.csv"]


def test_a_format_of_times_is_for_labels_and_replays_too(capsys):
    score, label = [i % 7 / 7 for i in range(40)], [i % 2 for i in range(40)]
    day = [f"{1 + i // 2:02}/03/2026" for i in range(40)]
    write("p.csv", {"score": score, "id": range(40), "made": day})
    write("l.csv", {"label": label, "id": range(40), "known": day})
    write("e.csv", {"score": score, "id": range(40), "label": label, "made": day})
    how = ("--time", "made", "--time-format", "%d/%m/%Y", "--id", "id", "--window", "last:7d")
    joined = evaluated(capsys, "p.csv", "--labels", "l.csv", "--label-time", "known", *how)
    rows = evaluated(capsys, "e.csv", *how)
    assert without(joined, "model") == without(rows, "model")
    assert rows[-1]["window_events"] == 14
    assert call(capsys, "replay", "e.csv", *how[:4], "--speed", "max", "--output", "played").status == 0
    played = sorted(Path("played").glob("*.jsonl"))
    assert '"made":"2026-03-20T00:00:00Z"' in played[-1].read_text().replace('": "', '":"')


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--time", "t", "--time-format", "%Q"), "--time-format"),
        (("--time-format", "%Y"), "needs times; name their column with --time COL"),
        (("--time", "t", "--time-format", "%Y", "--time-unit", "ms"), "leave one of them out"),
    ],
)
def test_a_format_that_cannot_be_is_refused_before_the_job_starts(options, words, capsys):
    write("s.csv", {"score": [0.1, 0.9], "label": [0, 1], "t": [2024, 2025]})
    ran = call(capsys, "evaluate", "s.csv", *options, "--output", "rows.csv")
    assert ran.status == 2
    assert words in ran.lines[-1]


def test_numbers_in_another_unit_are_said_once_and_stand_in_the_report(capsys):
    for name in ("a.csv", "b.csv"):
        write(name, {"score": [0.1, 0.9], "label": [0, 1], "t": [20240102, 20240103]})
    ran = call(
        capsys, "evaluate", "a.csv", "b.csv", "--time", "t", "--output", "rows.csv", "--report", "r.html"
    )
    said = [line for line in ran.lines if "--time-format %Y%m%d" in line]
    assert (ran.status, len(said)) == (0, 1)
    assert "20240102 are read in s, as 1970-08-23T06:15:02Z" in said[0]
    assert "give --time-format %Y%m%d" in Path("r.html").read_text()
