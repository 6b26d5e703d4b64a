"""`rocsteady prequential`: a file of instances to rows, comparisons, means, dead letters and a page."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rocsteady.core.compare.significance import wilcoxon
from rocsteady.pipelines.evaluate.options import sources_of
from rocsteady.pipelines.prequential.columns import instance_columns
from rocsteady.pipelines.prequential.command import FILES
from rocsteady.transforms.events.fields import EventFields

from tests.support.processes.command import call

N = 900
WORDS = ("--label", "class", "--positive", "UP", "--folds", "6", "--window", "last:200", "--every", "300")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A stream of numbers and text whose concept changes in the middle."""
    random = np.random.default_rng(4)
    x, z = random.normal(size=N).round(4), random.normal(size=N).round(4)
    sign = np.where(np.arange(N) < N // 2, 1, -1)
    up = np.where(x * sign + 0.3 * random.normal(size=N) > 0, "UP", "DOWN")
    lines = ["date,x,z,odd,class"]
    lines += [
        f"{2 * i},{x[i]},{'' if i % 50 == 7 else z[i]},{'uvw'[i % 3]},{up[i]}" for i in range(N)
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("stream") / "stream.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return str(path)


def prequential(capsys, source, output, *words):
    said = [*WORDS] if "--every" not in words else [*WORDS[:-2]]
    return call(
        capsys, "prequential", source, "--learner", "majority", "--learner", "naive-bayes", *said, *words,
        "--output", str(output),
    )  # fmt: skip


def tables(folder):
    return {name: pq.read_table(folder / name) for name in FILES if name.endswith(".parquet")}


@pytest.fixture(scope="module")
def made(source, tmp_path_factory):
    import contextlib
    import io

    from rocsteady.pipelines.cli import main

    folder = tmp_path_factory.mktemp("made") / "out"
    said = io.StringIO()
    words = ["prequential", source, "--learner", "majority", "--learner", "naive-bayes", *WORDS]
    with contextlib.redirect_stderr(said):
        assert main([*words, "--output", str(folder)]) == 0
    return folder, said.getvalue()


def test_it_writes_tables_and_a_page(made):
    folder, said = made
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert "900 instances, 2 learners of 6 folds" in said
    found = tables(folder)
    rows = found["rows.parquet"].to_pylist()
    assert {row["slice"] for row in rows} == {f"fold={fold}" for fold in range(6)}
    assert len(rows) == 2 * 6 * 3
    assert {row["kappa_m"] for row in rows if row["model"] == "majority"} == {0.0}
    page = (folder / "report.html").read_text()
    assert "6 folds of every learner, by bootstrap" in page
    assert not found["dead_letters.parquet"].num_rows


def test_the_tests_are_those_of_the_rows(made):
    found = tables(made[0])
    rows = found["rows.parquet"].to_pylist()
    comparisons = found["comparisons.parquet"].to_pylist()
    for place in range(3):
        auc = {
            model: [row["auc"] for row in rows if (row["model"], row["row"]) == (model, place)]
            for model in ("majority", "naive-bayes")
        }
        expected = wilcoxon(auc["majority"], auc["naive-bayes"])
        given = [
            row for row in comparisons
            if (row["checkpoint"], row["measure"], row["test"]) == (place, "auc", "wilcoxon")
        ]  # fmt: skip
        assert [(row["statistic"], row["p_value"]) for row in given] == [
            (expected.statistic, expected.p_value)
        ]
        mean = [
            row for row in found["means.parquet"].to_pylist()
            if (row["checkpoint"], row["measure"], row["model"]) == (place, "auc", "naive-bayes")
        ]  # fmt: skip
        assert mean[0]["mean"] == pytest.approx(np.mean(auc["naive-bayes"]))
        assert mean[0]["standard_deviation"] == pytest.approx(np.std(auc["naive-bayes"], ddof=1))


RUNNERS = {
    "processes": ("--direct_num_workers=2", "--direct_running_mode=multi_processing"),
    "portable": ("--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"),
}


@pytest.mark.parametrize("runner", [pytest.param(name, marks=pytest.mark.slow) for name in RUNNERS])
def test_runners_give_equal_tables(capsys, source, made, tmp_path, runner):
    ran = prequential(capsys, source, tmp_path / "out", *RUNNERS[runner])
    assert ran.status == 0, ran.lines
    expected = tables(made[0])
    for name, table in tables(tmp_path / "out").items():
        assert table.equals(expected[name]), name


@pytest.mark.slow
def test_files_and_their_order_by_time(capsys, source, made, tmp_path):
    """Rows of the same stream in two shuffled files, by time and id, are the same in both cuts."""
    lines = gzip.decompress(Path(source).read_bytes()).decode().splitlines()
    head, records = f"id,{lines[0]}", [f"i{place},{line}" for place, line in enumerate(lines[1:])]
    found = []
    for number, parts in enumerate((1, 3)):
        folder = tmp_path / f"in{number}"
        folder.mkdir()
        shuffled = [records[place] for place in np.random.default_rng(number).permutation(N)]
        for part in range(parts):
            (folder / f"{part}.csv").write_text("\n".join([head, *shuffled[part::parts]]) + "\n")
        words = ("--time", "date", "--id", "id", "--method", "cv", "--every", "10m")
        ran = prequential(capsys, str(folder / "*.csv"), tmp_path / f"out{number}", *words)
        assert ran.status == 0, ran.lines
        found.append(tables(tmp_path / f"out{number}"))
    assert found[0]["rows.parquet"].num_rows == 2 * (
        5 + 3 * 6
    )  # one fold does not train on the only instance at 0
    for name in found[0]:
        assert found[0][name].equals(found[1][name]), name


def test_classes_learners_of_ones_own_and_noise(capsys, source, tmp_path):
    ran = call(
        capsys, "prequential", source, "--label", "odd", "--multiclass", "--feature", "x", "--feature",
        "class",
        "--learner", "sgd=sklearn.naive_bayes:BernoulliNB",
        "--learner", "moody=tests.support.streams.learner_factories:Moody",
        "--learner", "persistent", "--noise", "0.1", "--folds", "2", "--output", str(tmp_path / "o"),
    )  # fmt: skip
    assert ran.status == 2  # scikit-learn takes no text
    assert "sgd" in ran.lines[-1]
    assert "class" in ran.lines[-1]
    ran = call(
        capsys, "prequential", source, "--label", "odd", "--multiclass", "--feature", "x", "--no-prequential",
        "--learner", "sgd=sklearn.naive_bayes:BernoulliNB",
        "--learner", "moody=tests.support.streams.learner_factories:Moody",
        "--learner", "persistent", "--noise", "0.1", "--folds", "2", "--every", "300", "--batch", "10",
        "--output", str(tmp_path / "o"),
    )  # fmt: skip
    assert ran.status == 0, ran.lines
    found = tables(tmp_path / "o")
    letters = found["dead_letters.parquet"].to_pylist()
    assert {letter["model"] for letter in letters} == {"moody"}
    assert {letter["reason"] for letter in letters} == {"learner failed"}
    assert all(letter["detail"].startswith("fold ") for letter in letters)
    assert all("x" in json.loads(letter["raw"]) for letter in letters)
    assert any("invalid: learner failed; see" in line for line in ran.lines)
    rows = found["rows.parquet"].to_pylist()
    assert {row["model"] for row in rows} == {"sgd", "persistent"}  # True and False are none of the classes
    assert {row["test"] for row in found["comparisons.parquet"].to_pylist()} >= {
        "mcnemar",
        "wilcoxon",
        "friedman",
    }


def test_learners_with_a_score_of_each_class_are_measured_and_compared(capsys, source, tmp_path):
    words = (
        "--label", "odd", "--feature", "x", "--feature", "z", "--folds", "6", "--window", "last:200",
        "--every", "450", "--learner", "naive-bayes", "--learner", "majority",
    )  # fmt: skip
    ran = call(capsys, "prequential", source, "--class-scores", "*", *words, "--output", str(tmp_path / "o"))
    assert ran.status == 0, ran.lines
    found = tables(tmp_path / "o")
    rows = found["rows.parquet"].to_pylist()
    assert len(rows) == 2 * 6 * 2 * 4  # learners, folds, checkpoints; a row of all classes and of three
    assert {row["class"] for row in rows} == {None, "u", "v", "w"}
    of_model = [row for row in rows if row["class"] is None]
    assert all(row["classes"] == ["u", "v", "w"] for row in of_model)
    assert 0.4 < np.mean([row["auc_macro"] for row in of_model]) < 0.6  # nothing tells odd from the features
    tests = found["comparisons.parquet"].to_pylist()
    assert {(row["measure"], row["test"]) for row in tests} == {
        ("accuracy", "mcnemar"), *((name, test) for name in ("accuracy", "auc_macro")
                                   for test in ("sign", "wilcoxon", "friedman", "nemenyi")),
    }  # fmt: skip
    here = [row for row in tests if row["test"] == "wilcoxon" and row["measure"] == "auc_macro"]
    for row in here:
        by_learner = {
            name: [each["auc_macro"] for each in of_model
                   if each["model"] == name and each["row"] == row["checkpoint"]]
            for name in (row["learner_a"], row["learner_b"])
        }  # fmt: skip
        test = wilcoxon(by_learner[row["learner_a"]], by_learner[row["learner_b"]])
        assert row["p_value"] == test.p_value
    means = found["means.parquet"].to_pylist()
    mean = next(row for row in means if row["measure"] == "auc_m" and row["model"] == "majority")
    values = [row["auc_m"] for row in of_model if row["model"] == "majority" and row["row"] == 0]
    assert mean["mean"] == pytest.approx(np.mean(values))

    output = tmp_path / "compared.parquet"
    ran = call(capsys, "compare", str(tmp_path / "o/rows.parquet"), "--output", str(output))
    assert ran.status == 0, ran.lines
    again = [row for row in pq.read_table(output).to_pylist() if row["test"] == "wilcoxon"]
    assert [row["p_value"] for row in again] == [row["p_value"] for row in here]

    two = tmp_path / "two"
    ran = call(capsys, "prequential", source, "--class-scores", "w,u", *words, "--output", str(two))
    assert ran.status == 0, ran.lines
    letters = tables(two)["dead_letters.parquet"].to_pylist()
    assert {(row["reason"], row["value"]) for row in letters} == {("label has no score", "v")}
    assert len(letters) == N // 3
    assert any(f"{N // 3} invalid: label has no score; see" in line for line in ran.lines)


class Evil:
    """Would leave a trace if it were unpickled."""

    def __reduce__(self):
        return (open, ("unpickled", "w"))


MISTAKES = {
    "--learner majority --output o": "label",
    "--label class --learner majority --output o": "DOWN UP --positive --class-scores",
    "--label class --positive ON --learner majority --output o": "ON DOWN UP",
    "--label klass --positive UP --learner majority --output o": "'klass' --label",
    "--label class --positive UP --multiclass --learner majority --output o": "--positive --multiclass",
    "--label class --positive UP --class-scores * --learner majority --output o": "--positive UP --class",
    "--label class --multiclass --class-scores * --learner majority --output o": "--multiclass already",
    "--label class --class-scores UP,UP --learner majority --output o": "'UP' twice",
    "--label class --class-scores p_* --learner majority --output o": "p_* '*' cat,dog",
    "--label class --class-scores UP, --learner majority --output o": "empty",
    "--label class --positive UP --compare auc_m --learner majority --output o": "auc_m --class-scores",
    "--label class --class-scores * --learner polynomial-auc --output o": "polynomial-auc two classes",
    "--label class --positive UP --learner oracle --output o": "'oracle' majority hoeffding module:factory",
    "--label class --positive UP --learner m=none:make --output o": "'m' 'none' importable",
    "--label class --positive UP --learner m=json:dumps --output o": "'m' json:dumps",
    "--label class --positive UP --learner evil.pickle --output o": "evil.pickle --trust-learners code",
    "--label class --positive UP --learner majority --learner majority --output o": "majority NAME=",
    "--label class --positive UP --learner majority --folds 1 --output o": "--folds 2",
    "--label class --positive UP --learner majority --noise 2 --output o": "noise",
    "--label class --positive UP --learner majority --batch 0 --output o": "--batch",
    "--label class --positive UP --learner majority --threshold 1 --output o": "threshold",
    "--label class --positive UP --learner majority --feature y --output o": "'y' x",
    "--label class --positive UP --learner majority --feature class --output o": "class label",
    "--label class --positive UP --learner majority --category x --feature z --output o": "--category x",
    "--label class --positive UP --learner majority --compare seq --output o": "seq accuracy",
    "--label class --positive UP --learner majority --measures auc --compare h --output o": "--compare h",
    "--label class --positive UP --learner majority --every 1h --output o": "--time",
    "--label class --positive UP --learner majority --alpha 2 --output o": "--alpha",
    "--label class --positive UP --learner majority --output taken": "--output taken",
    "--label class --positive UP --learner majority": "--output",
    "--label class --positive UP --output o": "--learner",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_sentences(capsys, source, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.pickle").write_bytes(pickle.dumps(Evil()))
    (tmp_path / "taken").write_text("a file")
    ran = call(capsys, "prequential", source, *words.split())
    assert ran.status == 2, ran.lines
    assert all(word in ran.lines[-1] for word in MISTAKES[words].split()), ran.lines
    assert not (tmp_path / "unpickled").exists()
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
def test_a_model_that_was_trained_before_is_read_where_it_is_trusted(capsys, source, tmp_path):
    from river.naive_bayes import GaussianNB

    model = GaussianNB()
    for x in (-1.0, 1.0, -0.5, 0.7):
        model.learn_one({"x": x}, x > 0)
    (tmp_path / "before.pickle").write_bytes(pickle.dumps(model))
    ran = call(
        capsys, "prequential", source, *WORDS, "--feature", "x", "--learner", f"old={tmp_path}/before.pickle",
        "--learner", "new=river.naive_bayes:GaussianNB", "--trust-learners", "--output", str(tmp_path / "o"),
    )  # fmt: skip
    assert ran.status == 0, ran.lines
    rows = tables(tmp_path / "o")["rows.parquet"].to_pylist()
    first = {row["model"]: row["accuracy"] for row in rows if row["row"] == 0 and row["slice"] == "fold=0"}
    assert first["old"] > 0.8


def test_streams_that_are_made_up(capsys, tmp_path):
    url = "generate://sea?count=1200&seed=3&drift=600"
    words = ("--learner", "naive-bayes", "--learner", "persistent", "--folds", "2", "--window", "last:300")
    ran = call(capsys, "prequential", url, *words, "--every", "300", "--output", str(tmp_path / "o"))
    assert ran.status == 0, ran.lines
    rows = tables(tmp_path / "o")["rows.parquet"].to_pylist()
    assert len(rows) == 2 * 2 * 4
    again = call(
        capsys, "prequential", url, *words, "--every", "300", "--id", "id", "--time", "time",
        "--output", str(tmp_path / "again"),
    )  # fmt: skip
    assert again.status == 0, again.lines
    assert tables(tmp_path / "again")["rows.parquet"].to_pylist()[-1]["time"] is not None
    for wrong, word in (("generate://lake?count=9", "lake"), ("generate://sea", "count=")):
        ran = call(capsys, "prequential", wrong, *words, "--output", str(tmp_path / "wrong"))
        assert ran.status == 2
        assert word in ran.lines[-1]


@pytest.mark.parametrize("stream", ["-", "kafka://localhost:9092/instances"])
def test_streams_that_go_on_are_for_the_transform(capsys, tmp_path, stream):
    ran = prequential(capsys, stream, tmp_path / "o")
    assert ran.status == 2
    assert stream in ran.lines[-1]
    assert "rs.Prequential" in ran.lines[-1]


def test_missing_numbers_are_numbers(tmp_path):
    """NaN is how pandas writes a missing number: its column is no text."""
    x, label = np.where(np.arange(60) % 7 == 0, np.nan, np.arange(60) / 4), np.arange(60) % 2
    columns = {"x": x, "late": pa.nulls(60, pa.float64()), "z": ["NaN" if i % 9 == 0 else "u" for i in label]}
    path = str(tmp_path / "pandas.parquet")
    pq.write_table(pa.table(columns | {"label": label}), path)
    fields = EventFields(label="label", model_name="instances")
    found = instance_columns(sources_of([path])[0], fields, (), ()).fields
    assert (found.features, found.slices) == (("x", "late"), (("z",),))
    (tmp_path / "numpy.csv").write_text("x,z,label\n" + "nan,a,1\n 1.5,nan,0\n" * 5)
    found = instance_columns(sources_of([str(tmp_path / "numpy.csv")])[0], fields, (), ()).fields
    assert (found.features, found.slices) == (("x",), (("z",),))


def test_one_word_among_numbers_is_named(capsys, tmp_path):
    rows = [f"{'?' if i == 30 else i % 9},{'ab'[i % 2]}{i % 3},,{i % 2}\n" for i in range(60)]
    (tmp_path / "a.csv").write_text("x,c,empty,label\n" + "".join(rows))
    words = (str(tmp_path / "a.csv"), "--learner", "majority", "--folds", "2", "--every", "20", "--output")
    ran = call(capsys, "prequential", *words, str(tmp_path / "o"))
    assert ran.status == 0
    said = "x is text to the learners: 59 of its first 60 values are numbers, and record 31 has '?'; mend it"
    assert [line for line in ran.lines if "is text" in line] == [
        f"rocsteady: {said}, or say --category x if that is meant"
    ]
    again = call(capsys, "prequential", *words, str(tmp_path / "p"), "--category", "x")
    assert again.status == 0
    assert not [line for line in again.lines if "is text" in line]


def test_files_with_other_columns_and_columns_of_one_name(capsys, tmp_path):
    for name, text in (("a", "x,c,label\n1,u,0\n"), ("b", "x,label\n1,0\n"), ("twice", "x,x,label\n1,2,0\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    words = ("--learner", "majority", "--output", str(tmp_path / "o"))
    ran = call(capsys, "prequential", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), *words)
    assert ran.status == 2
    assert "b.csv has no column 'c'" in ran.lines[-1]
    assert ran.lines[-1].endswith("--feature COL")
    ran = call(capsys, "prequential", str(tmp_path / "twice.csv"), *words)
    assert ran.status == 2
    assert "2 columns named 'x'" in ran.lines[-1]


def test_an_input_that_is_an_output(capsys, source, tmp_path):
    folder = tmp_path / "o"
    folder.mkdir()
    pq.write_table(
        pq.read_table(source) if source.endswith("parquet") else _table(source), folder / "rows.parquet"
    )
    ran = prequential(capsys, str(folder / "rows.parquet"), folder)
    assert ran.status == 2
    assert "also an input" in ran.lines[-1]


def _table(source):
    from pyarrow import csv

    return csv.read_csv(source)
