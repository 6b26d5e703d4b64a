"""Pipelines in Beam YAML: those of examples/, with the rows of the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rocsteady.core.errors import ConfigError
from rocsteady.pipelines.cli import main
from rocsteady.transforms.yaml_transforms import AlertYaml, EvaluateModelsYaml, JoinLabelsYaml

from tests.support.streams.class_events import class_streams

EXAMPLES = Path(__file__).parents[2] / "examples"
LOCAL = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def run(name, **variables):
    """Run an example as a user does, in this process."""
    yaml = pytest.importorskip("apache_beam.yaml.main", reason="needs pip install 'apache-beam[yaml]'")
    yaml.run([f"--yaml_pipeline_file={EXAMPLES / name}", f"--jinja_variables={json.dumps(variables)}", LOCAL])


def rows_of(folder, stem="rows"):
    rows = [
        json.loads(line)
        for path in sorted(folder.glob(f"{stem}.jsonl*"))
        for line in path.read_text().splitlines()
    ]
    return sorted(
        ({key: row[key] for key in ("model", "slice", "row", "seq", "auc")} for row in rows),
        key=lambda row: (row["model"], row["slice"], row["row"]),
    )


def same(ours, theirs):
    """Compare rows; Beam's JSON writer keeps ten digits."""
    assert [{**row, "auc": None} for row in ours] == [{**row, "auc": None} for row in theirs]
    assert [row["auc"] for row in ours] == pytest.approx([row["auc"] for row in theirs], abs=1e-9)


@pytest.fixture
def events():
    rng = np.random.default_rng(8)
    n = 1500
    label = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "model": rng.choice(["a", "b"], n),
            "country": rng.choice(["NZ", "DE"], n),
            "time": rng.permutation(n) * 60 + 60,
            "score": rng.normal(label * 0.6, 1).round(3),
            "label": label,
        }
    )


@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_in_yaml_gives_the_rows_of_the_command(tmp_path, events):
    events.to_csv(tmp_path / "events.csv", index=False)
    run("evaluate.yaml", events=str(tmp_path / "events.csv"), out=str(tmp_path / "out"))
    words = "--window last:1000 --every 100 --slice country --measures auc,h,ks,kappa_m --time time"
    output = str(tmp_path / "rows.jsonl")
    assert main(["evaluate", str(tmp_path / "events.csv"), *words.split(), "--output", output]) == 0
    ours = rows_of(tmp_path / "out")
    assert len(ours) > 30
    same(ours, rows_of(tmp_path))
    lines = [
        line for path in (tmp_path / "out").glob("alerts.jsonl*") for line in path.read_text().splitlines()
    ]
    assert {json.loads(line)["slice"] for line in lines} == {""}


@pytest.mark.filterwarnings("ignore")
def test_labels_are_joined_in_yaml(tmp_path, events):
    events["id"] = [f"i{number}" for number in range(len(events))]
    events["known"] = events["time"] + 3600
    kept = events[::2]
    events[["id", "model", "time", "score"]].to_csv(tmp_path / "predictions.csv", index=False)
    kept[["id", "known", "label"]].to_csv(tmp_path / "labels.csv", index=False)
    run("join_labels.yaml", folder=str(tmp_path))
    out = tmp_path / "command"
    out.mkdir()
    words = "--id id --time time --label-time known --ttl 1d --label-lead 0s --window last:500 --every 50"
    labels = ["--labels", str(tmp_path / "labels.csv"), "--output", str(out / "rows.jsonl")]
    assert main(["evaluate", str(tmp_path / "predictions.csv"), *words.split(), *labels]) == 0
    same(rows_of(tmp_path), rows_of(out))
    unmatched = [
        json.loads(line)["id"]
        for path in tmp_path.glob("unmatched.jsonl*")
        for line in path.read_text().splitlines()
    ]
    assert sorted(unmatched) == sorted(events["id"][1::2])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"windw": "last:5"}, "EvaluateModels: got an unexpected keyword argument 'windw'"),
        ({"window": "last:none"}, "window='last:none': "),
        ({"every": 0}, "every=0: give EveryEvents"),
        ({"measures": ["auc", "acu"]}, "acu"),
        ({"curves": "end"}, "Beam YAML has no output for curves"),
        ({"order": "time"}, "clock"),
    ],
)
def test_a_setting_that_cannot_be_is_named(settings, words):
    with pytest.raises(ConfigError, match=words):
        EvaluateModelsYaml(**settings)


def test_what_is_missing_or_one_too_many_is_named():
    with pytest.raises(ConfigError, match="JoinLabels: missing 2 required keyword-only arguments"):
        JoinLabelsYaml(id="id")
    join = JoinLabelsYaml(id="id", time="t", ttl="1d")
    with pytest.raises(ConfigError, match="its inputs are a, b; name them predictions and labels"):
        join.expand({"a": None, "b": None})
    with pytest.raises(ConfigError, match="it has 2 inputs, a, b; give one"):
        EvaluateModelsYaml().expand({"a": None, "b": None})
    with pytest.raises(ConfigError, match="auc <"):
        AlertYaml("auc <")


OF_CLASSES = """
pipeline:
  transforms:
    - type: ReadFromCsv
      name: Events
      config: {path: "{{ folder }}/events.csv"}
    - type: EvaluateModels
      name: Evaluate
      input: Events
      config:
        {model: model, time: sent, order: time, clock: runner, window: "last:60", every: 40,
         slices: [country], class_scores: [p_cat, p_dog, p_owl], {{ label }}}
    - type: WriteToJson
      name: Rows
      input: Evaluate.rows
      config: {path: "{{ folder }}/out/rows.jsonl"}
    - type: Alert
      name: Watch
      input: Evaluate.rows
      config: {rules: ["auc_macro < 0.9", "auc_low < 0.75 where class = 'dog'"]}
    - type: WriteToJson
      name: Alerts
      input: Watch
      config: {path: "{{ folder }}/out/alerts.jsonl"}
providers:
  - type: python
    config: {}
    transforms:
      EvaluateModels: rocsteady.transforms.yaml_transforms.EvaluateModelsYaml
      Alert: rocsteady.transforms.yaml_transforms.AlertYaml
"""


def of_classes(folder, stem):
    """Records of a folder in order; a field is `class_` where Beam has written the record."""
    lines = [line for path in folder.glob(f"{stem}.jsonl*") for line in path.read_text().splitlines()]
    records = [json.loads(line) for line in lines]
    for record in records:
        record["class"] = record.pop("class_", record.get("class"))
    key = ("model", "slice", "row", "class", "rule", "state")
    return sorted(records, key=lambda record: [str(record.get(name)) for name in key])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("label", ["label: y", "multi_label: [y_cat, y_dog, y_owl]"])
def test_class_scores_in_a_list_give_the_rows_and_alerts_of_the_command(tmp_path, label):
    yaml = pytest.importorskip("apache_beam.yaml.main", reason="needs pip install 'apache-beam[yaml]'")
    pd.DataFrame(class_streams(600)[2]).to_csv(tmp_path / "events.csv", index=False)
    text = OF_CLASSES.replace("{{ folder }}", str(tmp_path)).replace("{{ label }}", label)
    yaml.run([f"--yaml_pipeline={text}", LOCAL])
    name, columns = label.split(": ")
    words = (
        "--class-scores", "p_cat,p_dog,p_owl",
        f"--{name.replace('_', '-')}", columns.strip("[]").replace(" ", ""),
        "--time", "sent", "--window", "last:60", "--every", "40", "--slice", "country",
        "--alert", "auc_macro < 0.9", "--alert", "auc_low < 0.75 where class = 'dog'",
    )  # fmt: skip
    files = ("--output", str(tmp_path / "rows.jsonl"), "--alerts", str(tmp_path / "alerts.jsonl"))
    assert main(["evaluate", str(tmp_path / "events.csv"), *words, *files]) == 0
    for stem, names in (
        ("rows", ("model", "slice", "class", "row", "seq", "classes", "worst_class", "worst_pair")),
        ("alerts", ("model", "slice", "class", "row", "rule", "state", "message")),
    ):
        ours, theirs = of_classes(tmp_path / "out", stem), of_classes(tmp_path, stem)
        assert [[row[name] for name in names] for row in ours] == [
            [row[name] for name in names] for row in theirs
        ]
        assert {row["class"] for row in ours} == (
            {None, "cat", "dog", "owl"} if stem == "rows" else {None, "dog"}
        )
    for one, other in zip(*(of_classes(each, "rows") for each in (tmp_path / "out", tmp_path)), strict=True):
        for name in ("auc", "auc_macro", "auc_m_low", "pair_aucs"):
            assert one[name] == (other[name] if other[name] is None else pytest.approx(other[name], abs=1e-9))
