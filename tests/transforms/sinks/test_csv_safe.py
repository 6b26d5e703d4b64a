"""--csv-safe: text in CSV outputs that a spreadsheet would run as a formula begins with an apostrophe."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pytest
from rocsteady.transforms.sinks.kinds import TableKind
from rocsteady.transforms.sinks.open import open_table

from tests.support.processes.command import call

FORMULAS = ['=cmd|" /C calc"!A0', "+1", "-1", "@SUM(A1)", "\tx", "\rx"]
PLAIN = ["a=b", "m-1", "'=x"]

REFUSED = (
    "rocsteady: --csv-safe is for CSV, and no output is CSV; name one that ends in .csv or .csv.gz, or "
    "leave --csv-safe out"
)


@pytest.fixture(autouse=True)
def _events(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = []
    for number in range(24):
        for model in (*FORMULAS, *PLAIN):
            event = {"model": model, "score": (number * 7 % 11) - 5, "label": number % 2, "fold": number % 3}
            lines.append(json.dumps(event))
    lines += [json.dumps({"model": model, "score": "no", "label": 1, "fold": 0}) for model in FORMULAS]
    Path("events.jsonl").write_text("\n".join([*lines, "=1+1"]) + "\n")


def records(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(path, name):
    return {record[name] for record in records(path)}


def guarded(names):
    return {"'" + name for name in names}


def test_every_csv_output_of_a_job_and_of_what_reads_its_rows(capsys):
    outputs = {"--output": "rows.csv", "--dead-letters": "dead.csv", "--alerts": "alerts.csv"}
    options = ("--slice", "fold", "--alert", "auc < 1")
    for flags in (("--csv-safe",), ()):
        ran = call(
            capsys,
            "evaluate",
            "events.jsonl",
            *options,
            *flags,
            *(w for pair in outputs.items() for w in pair),
        )
        assert ran.status == 0, ran
        safe, plain = guarded(FORMULAS) if flags else {*FORMULAS}, {*PLAIN}
        assert column("rows.csv", "model") == safe | plain
        assert column("alerts.csv", "model") >= safe
        assert column("dead.csv", "model") == safe | {""}
        cells = [(name, cell) for record in records("rows.csv") for name, cell in record.items()]
        assert any(cell.startswith("-") for name, cell in cells if name != "model")  # numbers stay
    # what reads rows.csv now reads the names as they are
    ran = call(capsys, "rows", "rows.csv", "--output", "again.csv.gz", "--csv-safe")
    assert ran.status == 0, ran
    ran = call(capsys, "rows", "again.csv.gz", "--output", "again.csv")
    assert column("again.csv", "model") == guarded(FORMULAS) | {*PLAIN}  # reading does not undo it
    for flags, names in ((("--csv-safe",), guarded(FORMULAS)), ((), {*FORMULAS})):
        ran = call(capsys, "compare", "rows.csv", "--over", "fold", "--output", "compared.csv", *flags)
        assert ran.status == 0, ran
        found = column("compared.csv", "learner_a") | column("compared.csv", "learner_b")
        assert found >= names


def test_a_file_that_grows_is_guarded_too(tmp_path):
    schema = pa.schema({"model": pa.string(), "auc": pa.float64()})
    sink = open_table(str(tmp_path / "r.csv"), TableKind("n", schema, ("model",), ("model",)), csv_safe=True)
    sink.write(pa.record_batch({"model": ["=x", None], "auc": [-0.5, None]}, schema))
    sink.close()
    assert (tmp_path / "r.csv").read_text() == 'model,auc\n"\'=x",-0.5\n,\n'


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "events.jsonl", "--output", "rows.parquet", "--dead-letters", "dead.jsonl"),
        ("evaluate", "events.jsonl", "--output", "-"),
        ("rows", "rows/", "--output", "rows.jsonl"),
        ("compare", "rows/", "--output", "compared.parquet"),
    ],
)
def test_without_an_output_that_is_csv_it_is_refused(capsys, command):
    ran = call(capsys, *command, "--csv-safe")
    assert ran.status == 2
    assert ran.lines == [REFUSED]
