"""Models with a score of each class: rows from files, streams, frames, PCollections; what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.rows.class_rows import ClassRow
from rocsteady.transforms.evaluate.class_limits import REFUSED
from rocsteady.transforms.yaml_transforms import EvaluateModelsYaml

from tests.support.processes.beam_runs import pipeline
from tests.support.processes.command import call

N = 900
NAMES = ("cat", "dog", "owl")
FIRST = 1_700_000_000


def columns():
    """Events of two models in a table; the order of the columns of scores is not that of the classes."""
    rng = np.random.default_rng(4)
    label = rng.integers(0, 3, N)
    scores = (rng.random((N, 3)) + 0.5 * np.eye(3)[label]).round(2)
    of = (np.eye(3)[label] + (rng.random((N, 3)) < 0.1) > 0).astype(np.int64)
    return pa.table(
        {
            "model": [f"m{number % 2}" for number in range(N)],
            "sent": FIRST + np.arange(N) * 60,
            "p_owl": scores[:, 2], "p_cat": scores[:, 0], "p_dog": scores[:, 1],
            "y": np.array(NAMES)[label],
            "y_dog": of[:, 1], "y_cat": of[:, 0], "y_owl": of[:, 2],
            "country": np.array(["AR", "DE"])[np.arange(N) // 2 % 2],
        }
    )  # fmt: skip


HOW = ("--class-scores", "p_*", "--label", "y", "--window", "last:200", "--every", "120")
SEVERAL = ("--class-scores", "p_*", "--multi-label", "y_*", "--window", "last:200", "--every", "120")
SLICED = ("--slice", "country")
CHOICES = {"window": rs.LastEvents(200), "every": rs.EveryEvents(120)}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(columns(), "s.csv")


def expected(*, multi_label=False, slices=("", "AR", "DE"), order="position"):
    """The rows of an evaluator for each model and slice."""
    table = columns()
    scores = np.stack([table[f"p_{name}"].to_numpy() for name in NAMES], axis=1)
    labels = np.array(table["y"].to_pylist())
    if multi_label:
        labels = np.stack([table[f"y_{name}"].to_numpy() for name in NAMES], axis=1)
    models, countries = np.array(table["model"].to_pylist()), np.array(table["country"].to_pylist())
    found = []
    for model in ("m0", "m1"):
        for country in slices:
            there = (models == model) & ((countries == country) | (country == ""))
            evaluator = rs.MulticlassEvaluator(
                NAMES, multi_label=multi_label, model=model, slice=country and f"country={country}",
                order=order, **CHOICES,
            )  # fmt: skip
            found += [*evaluator.update(labels[there], scores[there]), *evaluator.finish()]
    return in_order(found)


def in_order(rows):
    return sorted(rows, key=lambda row: (row.model, row.slice, row.row, row.class_ or ""))


def read(path="rows.parquet"):
    rows = list(rs.read_rows(path))
    assert all(type(row) is ClassRow for row in rows)
    return in_order(rows)


def evaluated(capsys, *arguments, output="rows.parquet"):
    ran = call(capsys, "evaluate", *arguments, "--output", output)
    assert ran.status == 0, ran
    return read(output)


# ---- files


@pytest.mark.parametrize(("how", "multi_label"), [(HOW, False), (SEVERAL, True)])
def test_a_file_gives_the_rows_of_evaluators_in_every_format(capsys, how, multi_label):
    wanted = expected(multi_label=multi_label)
    assert len(wanted) == 4 * (2 * 4 + 4 * 2)
    assert evaluated(capsys, "s.csv", *how, *SLICED) == wanted
    table = columns()
    pq.write_table(table, "s.parquet")
    Path("s.jsonl").write_text("".join(json.dumps(event) + "\n" for event in table.to_pylist()))
    for source, output in (("s.parquet", "rows.csv"), ("s.jsonl", "rows.jsonl"), ("s.csv", "parts/")):
        assert evaluated(capsys, source, *how, *SLICED, output=output) == wanted
    assert "class" in Path("rows.csv").read_text().split("\n", 1)[0].split(",")[:3]


def test_the_rows_are_those_of_every_cut_of_the_input(capsys):
    wanted = expected()
    table = columns()
    for part, (begin, end) in enumerate(((0, 1), (1, 400), (400, 401), (401, N))):
        piece = table.slice(begin, end - begin)
        if part % 2:
            pq.write_table(piece.select([*reversed(piece.column_names)]), f"part-{part}.parquet")
        else:
            pa.csv.write_csv(piece, f"part-{part}.csv")
    assert evaluated(capsys, "part-*", *HOW, *SLICED) == wanted
    by_list = ("--class-scores", "p_cat,p_dog,p_owl", *HOW[2:])
    assert evaluated(capsys, "part-*", *by_list, *SLICED) == wanted
    by_name = ("--class-scores", "cat=p_cat,dog=p_dog,owl=p_owl", *HOW[2:])
    assert evaluated(capsys, "part-*", *by_name, *SLICED, "--shards", "1") == wanted


ENGINES = {
    "no cache": ["--shards", "3", "--cache-bytes", "0"],
    "portable": ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"],
    "bundles": ["--runner", "BundleBasedDirectRunner", "--shards", "1"],
}


@pytest.mark.parametrize("engine", ["no cache", "portable", pytest.param("bundles", marks=pytest.mark.slow)])
def test_the_same_bytes_come_from_every_engine(capsys, engine):
    evaluated(capsys, "s.csv", *HOW, *SLICED)
    bytes_ = Path("rows.parquet").read_bytes()
    evaluated(capsys, "s.csv", *HOW, *SLICED, *ENGINES[engine], output="other.parquet")
    assert Path("other.parquet").read_bytes() == bytes_


def test_an_adaptive_window_of_classes_gives_the_same_bytes_of_every_cut(capsys):
    adapts = ("--window", "adaptive:0.2:error", "--every", "100")
    how = HOW[: HOW.index("--window")]
    rows = evaluated(capsys, "s.csv", *how, *SLICED, *adapts)
    assert {row.drift for row in rows} <= {True, False}
    bytes_ = Path("rows.parquet").read_bytes()
    evaluated(capsys, "s.csv", *how, *SLICED, *adapts, *ENGINES["no cache"], output="other.parquet")
    assert Path("other.parquet").read_bytes() == bytes_


def test_a_stream_gives_the_rows_as_they_fall_due_and_goes_on_from_checkpoints(capsys):
    lines = [json.dumps(event) + "\n" for event in columns().to_pylist()]
    folder = Path("arriving")
    folder.mkdir()
    (folder / "a.jsonl").write_text("".join(lines[:500]))
    (folder / "b.jsonl").write_text("".join(lines[500:]))
    (folder / "_END").write_text("")
    how = ("--class-scores", "p_cat,p_dog,p_owl", *HOW[2:])
    checkpoint = ("--checkpoint", "kept", "--checkpoint-every", "0s")
    found = evaluated(capsys, "arriving", "--follow", *how, *SLICED, *checkpoint, output="rows.jsonl")
    assert found == expected()


def test_records_that_cannot_be_used_are_dead_letters_with_their_reasons(capsys):
    events = [
        {"p_cat": 0.5, "p_dog": 0.2, "y": "cat"},
        {"p_cat": 0.5, "p_dog": 0.2, "y": "eel"},
        {"p_cat": 0.5, "y": "cat"},
        {"p_cat": float("nan"), "p_dog": 0.1, "y": "cat"},
        {"p_cat": "high", "p_dog": 0.1, "y": "dog"},
        {"p_cat": 0.5, "p_dog": 0.2},
        {"p_cat": 0.1, "p_dog": 0.2, "y": "dog"},
    ]
    Path("e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    how = ("--class-scores", "p_*", "--label", "y", "--dead-letters", "dead.jsonl")
    evaluated(capsys, "e.jsonl", *how)
    letters = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    told = [(letter["position"], letter["reason"], letter["field"]) for letter in letters]
    assert told == [
        (1, "label has no score", "y"),
        (2, "score is missing", "p_dog"),
        (3, "score is not finite", "p_cat"),
        (4, "score is not a number", "p_cat"),
        (5, "label is missing", "y"),
    ]
    assert letters[0]["detail"] == "label: 'eel' is none of the classes with a score ('cat', 'dog')"


def test_labels_of_classes_that_say_nothing_are_dead_letters(capsys):
    events = [
        {"p_a": 0.5, "p_b": 0.2, "y_a": True, "y_b": 0},
        {"p_a": 0.5, "p_b": 0.2, "y_a": 1, "y_b": "perhaps"},
        {"p_a": 0.5, "p_b": 0.2, "y_a": 1},
        {"p_a": 0.1, "p_b": 0.2, "y_a": 0, "y_b": 0},
    ]
    Path("e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    how = ("--class-scores", "p_*", "--multi-label", "y_*", "--dead-letters", "dead.jsonl")
    rows = evaluated(capsys, "e.jsonl", *how)
    letters = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    told = [(letter["reason"], letter["field"]) for letter in letters]
    assert told == [("label is unknown", "y_b"), ("label is missing", "y_b")]
    assert {row.window_events for row in rows} == {2}


def test_a_late_event_is_a_dead_letter_with_its_scores(capsys):
    events = columns().slice(0, 300).to_pylist()
    events[200]["sent"] = FIRST
    Path("e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    late = ("--time", "sent", "--order", "time:10m", "--dead-letters", "dead.jsonl")
    evaluated(capsys, "e.jsonl", *HOW, *late)
    [letter] = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    raw = letter["raw"] if isinstance(letter["raw"], dict) else json.loads(letter["raw"])
    assert letter["kind"] == "late"
    assert {name: raw[name] for name in ("p_cat", "p_owl", "y")} == {
        name: events[200][name] for name in ("p_cat", "p_owl", "y")
    }


def test_the_decision_is_the_predicted_class_where_it_is_named(capsys):
    table = columns()
    predicted = np.array(NAMES)[np.random.default_rng(1).integers(0, 3, N)]
    pa.csv.write_csv(table.append_column("said", pa.array(predicted)), "said.csv")
    rows = evaluated(capsys, "said.csv", *HOW[:4], "--predicted", "said", "--every", "10000")
    row = next(row for row in rows if row.model == "m0" and row.class_ is None)
    hits = (predicted == np.array(table["y"].to_pylist()))[::2]
    assert row.accuracy == hits.mean()
    pa.csv.write_csv(table.append_column("said", pa.array(["eel"] * N)), "eel.csv")
    ran = call(capsys, "evaluate", "eel.csv", *HOW, "--predicted", "said", "--output", "rows.csv")
    assert ran.status == 3
    assert (
        "predicted class has no score (in the column 'said', such as 'eel', and the classes are 'cat',"
        in "\n".join(ran.lines)
    )


# ---- readers of rows


def test_the_table_has_a_line_for_each_model(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    rows = [row for row in evaluated(capsys, "s.csv", *HOW) if row.class_ is None]
    ran = call(capsys, "show", "rows.parquet")
    assert ran.status == 0
    head, _, titles, *lines = ran.out.splitlines()
    assert head == (
        "None of 2 models ranks worse than it did; 2 show no change. "
        "3 classes; the AUC of a model is its macro AUC."
    )
    wanted = "model macro AUC [interval] weighted M worst class worst pair events change since"
    assert titles.split() == wanted.split()
    newest = sorted((max(r for r in rows if r.model == m) for m in ("m0", "m1")), key=lambda r: r.auc_macro)
    for line, row in zip(sorted(lines[:2]), sorted(newest), strict=True):
        assert line.startswith(f"{row.model} ")
        low, high = row.auc_macro_low, row.auc_macro_high
        assert f"{row.auc_macro:.3f} [{low:.3f}, {high:.3f}]" in line
        assert f"{row.worst_class} {row.worst_class_auc:.3f}" in line
        assert f"{row.worst_pair} {row.worst_pair_auc:.3f}" in line
    without = call(capsys, "evaluate", "s.csv", *HOW)
    assert without.out.splitlines()[:5] == ran.out.splitlines()[:5]
    assert call(capsys, "show", "rows.parquet", "--reference", "1 row").status == 0


def test_rows_of_a_folder_come_each_once_and_sorted(capsys):
    wanted = evaluated(capsys, "s.csv", *HOW, output="parts/")
    evaluated(capsys, "s.csv", *HOW, output="again.jsonl")
    ran = call(capsys, "rows", "parts/", "again.jsonl", "-o", "all.parquet")
    assert f"{len(wanted)} rows in all.parquet, {len(wanted)} repeats left out" in ran.lines[-1]
    assert read("all.parquet") == wanted
    table = pq.read_table("all.parquet")
    assert table["class"].to_pylist()[:5] == [None, *NAMES, None]


def test_rows_with_classes_and_without_are_not_put_into_one_file(capsys):
    evaluated(capsys, "s.csv", *HOW, *SLICED)
    pa.csv.write_csv(pa.table({"score": [0.1, 0.9], "label": [0, 1]}), "plain.csv")
    call(capsys, "evaluate", "plain.csv", "--output", "plain.parquet")
    ran = call(capsys, "rows", "rows.parquet", "plain.parquet", "-o", "all.csv")
    assert ran.status == 2
    assert "some of these rows are of models with a score of each class" in ran.lines[-1]


# ---- what is refused

VALUES = {
    "score": "p_cat", "positive": "cat", "pairs": "p.csv", "champion": "m0", "against": "p_cat",
    "flip_if_below_half": None,
}  # fmt: skip
"""A value of each option that is refused with class scores."""


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_does_not_go_with_class_scores_is_refused_in_a_sentence(capsys, name):
    option = f"--{name.replace('_', '-')}"
    said = [option] if VALUES[name] is None else [option, VALUES[name]]
    ran = call(capsys, "evaluate", "s.csv", *HOW, *said, "--output", "rows.csv")
    assert ran.status == 2, ran
    assert ran.lines == [
        f"rocsteady: {' '.join(said)} with --class-scores p_*: {REFUSED[name]}; leave it out"
    ]
    assert not Path("rows.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--multi-label", "y_*"), "--multi-label y_*: labels of classes go with --class-scores"),
        (("--class-scores", "q_*"), "--class-scores 'q_*': no column fits"),
        (("--class-scores", "*_*"), "give one name with one star"),
        (("--class-scores", "p_cat,p_elk"), "s.csv has no column 'p_elk'"),
        (("--class-scores", "p_cat,p_cat"), "are both of class 'cat'"),
        (("--class-scores", "cat=p_cat,dog=p_cat"), "the column 'p_cat' is named twice"),
        (("--class-scores", "cat=p_cat,p_dog"), "give CLASS=COLUMN for all, or for none"),
        (("--class-scores", r"a\,b=p_cat,c\=d=p,x"), r"a comma or = in a name is written \, or \="),
        (("--class-scores", "*", "--label", "y"), "the column 'y' has labels and scores of a class"),
        (("--class-scores", "p_*", "--time", "p_cat"), "the column 'p_cat' has times and scores of a class"),
        (
            ("--class-scores", "p_*", "--slice", "p_cat"),
            "the column 'p_cat' has slices and scores of a class",
        ),
        (("--class-scores", ","), "the names of columns such as p_cat,p_dog"),
        (("--class-scores", "p_*", "--multi-label", "y_cat,y_dog"), "class 'owl' has no column of its label"),
        (("--class-scores", "p_cat,p_dog", "--multi-label", "y_*"), "class 'owl' has no column of its score"),
        (
            ("--class-scores", "p_cat,p_dog", "--multi-label", "y_cat,country"),
            "the classes of scores are 'cat', 'dog', and those of labels 'y_cat', 'country'",
        ),
        (("--class-scores", "p_*", "--multi-label", "y_*", "--label", "y"), "--label y with several labels"),
        (
            ("--class-scores", "p_*", "--multi-label", "y_*", "--window", "adaptive"),
            "an adaptive window follows one signal",
        ),
        (
            ("--class-scores", "p_*", "--multi-label", "p_*"),
            "'p_cat' has labels of a class and scores",
        ),
        (("--class-scores", "p_*", "--evidence-below", "0.5", "--weight", "sent"), "--evidence-below"),
    ],
)
def test_columns_that_give_no_classes_are_named(capsys, words, said):
    ran = call(capsys, "evaluate", "s.csv", *words, "--output", "rows.csv")
    assert ran.status == 2, ran
    assert said in ran.lines[-1]


def test_names_with_commas_and_signs_are_named_in_a_list(capsys):
    odd = {"p_cat": "is a cat, maybe", "p_dog": "is a dog=hound", "p_owl": "is a owl"}
    table = columns().rename_columns([odd.get(name, name) for name in columns().column_names])
    names = {"cat": "cat, maybe", "dog": "dog=hound", "owl": "owl"}
    table = table.set_column(table.column_names.index("y"), "y", [[names[y] for y in table["y"].to_pylist()]])
    pa.csv.write_csv(table, "odd.csv")
    how = ("--label", "y", "--window", "last:200", "--every", "120")
    wanted = evaluated(capsys, "odd.csv", "--class-scores", "is a *", *how)
    assert {row.class_ for row in wanted} == {None, *names.values()}
    as_list = r"is a owl,is a dog\=hound,is a cat\, maybe"
    found = evaluated(capsys, "odd.csv", "--class-scores", as_list, *how)
    assert {(row.class_, row.seq, row.auc) for row in found} == {
        (row.class_, row.seq, row.auc) for row in wanted
    }
    named = r"dog\=hound=is a dog\=hound,cat\, maybe=is a cat\, maybe,owl=is a owl"
    found = evaluated(capsys, "odd.csv", "--class-scores", named, *how)
    assert {(row.class_, row.seq, row.auc) for row in found} == {
        (row.class_, row.seq, row.auc) for row in wanted
    }


def test_the_remedy_names_the_columns_and_the_classes(capsys):
    words = ("--label", "y", "--output", "rows.csv")
    ran = call(
        capsys, "evaluate", "s.csv", "--class-scores", "p_*", "--label", "country", "--output", "r.csv"
    )
    assert ran.status == 3
    assert (
        "most often label has no score (in the column 'country', such as 'AR', and the classes are 'cat', "
        "'dog', 'owl'); check --label, and the names in --class-scores"
    ) in ran.lines[-2]
    ran = call(capsys, "evaluate", "s.csv", "--class-scores", "p_cat,country", *words)
    assert ran.status == 3
    assert (
        "score is not a number (in the columns 'p_cat', 'country', such as 'AR'); check --class-scores"
    ) in ran.lines[-2]


def test_where_every_record_is_refused_the_columns_of_classes_are_named(capsys):
    Path("e.csv").write_text("p_a,p_b,y_a,y_b,y\nhigh,.2,yes,no,a\nlow,.8,no,no,b\n")
    lines = call(capsys, "evaluate", "e.csv", "--class-scores", "p_*", "--label", "y").lines
    said = "(in the columns 'p_a', 'p_b', such as 'high'); check --class-scores"
    assert any(said in line for line in lines)
    Path("e.csv").write_text("p_a,p_b,y_a,y_b\n.1,.2,yes,no\n")
    lines = call(capsys, "evaluate", "e.csv", "--class-scores", "p_*", "--multi-label", "y_*").lines
    said = "(in the columns 'y_a', 'y_b', such as 'yes'); write 1 or 0 for each class, or check --multi-label"
    assert any(said in line for line in lines)


def test_a_star_needs_files_and_the_same_classes_in_all_of_them(capsys):
    Path("arriving").mkdir()
    ran = call(capsys, "evaluate", "arriving", "--follow", *HOW, "--output", "rows.csv")
    assert "not known before events come; name them all, such as p_cat,p_dog" in ran.lines[-1]
    pa.csv.write_csv(columns().append_column("p_eel", pa.array([0.1] * N)), "t.csv")
    ran = call(capsys, "evaluate", "s.csv", "t.csv", *HOW, "--output", "rows.csv")
    assert ran.status == 2
    assert "t.csv has columns of other classes than s.csv" in ran.lines[-1]


# ---- frames and PCollections


def test_a_frame_gives_the_rows_of_the_command(capsys):
    how = {"label": "y", "window": "last:200", "every": 120, "slices": "country"}
    result = rs.evaluate(columns(), class_scores="p_*", **how)
    evaluated(capsys, "s.csv", *HOW, *SLICED)
    assert result.to_arrow().equals(pq.read_table("rows.parquet"))
    for scores in ({name: f"p_{name}" for name in NAMES}, [f"p_{name}" for name in NAMES]):
        assert rs.evaluate(columns(), class_scores=scores, **how).rows.equals(result.rows)
    summary = result.summary().to_pylist()
    newest = [row for row in expected(slices=("",)) if row.class_ is None and row.seq == N // 2]
    assert [(line["model"], line["auc_m"], line["worst_pair"]) for line in summary] == [
        (row.model, row.auc_m, row.worst_pair) for row in newest
    ]
    shown = repr(result)
    assert "900 events read = 900 applied" in shown
    assert all(f"{row.auc_macro:.4f} [" in shown for row in newest)


@pytest.mark.parametrize(
    ("scores", "said"), [({}, "give a pattern such as"), ({"p_cat", "p_dog"}, "a set has no order")]
)
def test_names_of_columns_that_say_no_order_are_refused(scores, said):
    with pytest.raises(rs.ConfigError, match=said):
        rs.evaluate(columns(), class_scores=scores, label="y")


def test_a_frame_gives_the_page_and_figures_of_models_and_classes():
    result = rs.evaluate(columns(), class_scores="p_*", label="y", window="last:200", every=120)
    assert result.report("r.html", reference="1 row") > 1_000_000
    rows = result.to_arrow().to_pylist()
    for words, column, name in (({}, "auc_macro", None), ({"slice": "class=cat"}, "auc", "cat"),
                                ({"measure": "auc_m"}, "auc_m", None)):  # fmt: skip
        figure = result.plot(**words)
        lines = {
            trace.name: [*trace.y]
            for trace in figure.data
            if trace.mode == "lines" and trace.showlegend is None
        }
        wanted = {(row["model"]): [] for row in rows}
        for row in rows:
            if row["class"] == name:
                wanted[row["model"]].append(row[column])
        assert lines == wanted
    assert "1 model left out" in result.plot(models=1).layout.title.subtitle.text
    with pytest.raises(rs.InputError, match=r"slice='class=cow' has no rows; there are class=cat, class=dog"):
        result.plot(slice="class=cow")
    with pytest.raises(rs.ConfigError, match="measure='worst' is not known"):
        result.plot("worst")


class Event(NamedTuple):
    model: str
    p_cat: float
    p_dog: float
    p_owl: float
    y: str


def found(elements, kind=None, **how):
    """The rows, the columns of batches and the dead letters of the transform."""
    with pipeline() as built:
        events = built | beam.Create(elements, reshuffle=False)
        if kind is not None:
            events = events | beam.Map(lambda event: event).with_output_types(kind)
        result = events | rs.EvaluateModels(model="model", **CHOICES, **how)
        for name, outputs in (("rows", result.rows), ("letters", result.dead_letters)):
            texts = outputs | f"{name} as text" >> beam.Map(lambda each: json.dumps(each._asdict()))
            _ = texts | f"Write {name}" >> beam.io.WriteToText(name, num_shards=1, shard_name_template="")
        names = result.batches | beam.Map(lambda batch: ",".join(batch.schema.names))
        _ = names | beam.Distinct() | beam.io.WriteToText("names", num_shards=1, shard_name_template="")
    rows = [json.loads(line) for line in Path("rows").read_text().splitlines()]
    tuples = [{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
    letters = [json.loads(line) for line in Path("letters").read_text().splitlines()]
    return in_order([ClassRow(**row) for row in tuples]), letters


def without_config(rows):
    return [row._replace(config="") for row in rows]


def test_a_collection_gives_the_rows_of_evaluators():
    wanted = without_config(expected(slices=("",)))
    records = columns().to_pylist()
    rows, letters = found(records, class_scores=["p_cat", "p_dog", "p_owl"], label="y")
    assert without_config(rows) == wanted
    assert letters == []
    assert Path("names").read_text().startswith("model,slice,class,row,")
    typed = [Event(*(record[name] for name in Event._fields)) for record in records]
    assert without_config(found(typed, Event, class_scores="p_*", label="y")[0]) == wanted
    rows, _ = found(records, class_scores="p_cat,p_dog,p_owl", multi_label="y_cat,y_dog,y_owl")
    assert without_config(rows) == without_config(expected(slices=("",), multi_label=True))


def test_packed_batches_must_have_the_classes_of_the_settings():
    table = columns()
    labels = TextColumn.of(table["y"].to_pylist())
    scores = np.stack([table[f"p_{name}"].to_numpy() for name in NAMES], axis=1)
    greatest = TextColumn.of([NAMES[place] for place in scores.argmax(axis=1)])
    models = TextColumn.of(table["model"].to_pylist())
    batch = EventBatch.of_classes(
        models=models, class_scores=scores, label_classes=labels, predicted=greatest
    )  # fmt: skip
    plain = EventBatch(models, scores[:, 0], np.zeros(N, np.int8))
    fewer = EventBatch.of_classes(
        models=models, class_scores=scores[:, :2], label_classes=labels, predicted=greatest
    )  # fmt: skip
    how = {"class_scores": "cat,dog,owl"}
    rows, letters = found([batch.pack(), plain.pack(), fewer.pack()], **how)
    assert without_config(rows) == without_config(expected(slices=("",)))
    told = sorted(letter["detail"].rpartition(": ")[2] for letter in letters)
    assert told == [
        "it has scores of 0 classes, and class_scores= names 3; give the same",
        "it has scores of 2 classes, and class_scores= names 3; give the same",
    ]
    assert len(found([batch.pack()], class_scores="cat,dog,eel")[1]) == 1


def test_a_star_needs_elements_with_a_schema_and_yaml_takes_the_same_words():
    built = beam.Pipeline()
    with pytest.raises(rs.ConfigError, match="not known before events come; name them all"):
        _ = built | beam.Create([{"p_a": 1.0}]) | rs.EvaluateModels(class_scores="p_*")
    for choices, said in (
        (
            {"class_scores": "p_a,p_b", "flip_if_below_half": True},
            "flip_if_below_half=True with class_scores=: a class whose AUC",
        ),
        ({"multi_label": "y_a,y_b"}, "name these with class_scores="),
        (
            {"class_scores": "p_a,p_b", "multi_label": "y_a,y_b", "window": rs.Adaptive()},
            "an adaptive window",
        ),
    ):
        with pytest.raises(rs.ConfigError, match=said):
            rs.EvaluateModels(**choices)
    EvaluateModelsYaml(class_scores="p_a,p_b", label="y")
