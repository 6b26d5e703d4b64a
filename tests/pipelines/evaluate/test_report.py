"""`evaluate --report`: one page of the job's own rows, curves and counters, and nothing else left behind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.support.processes.command import call, names

N = 900


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, N)
    events = {
        "score": [*np.round(rng.normal(label), 1)[:-2].astype(str), "", "nan"], "label": label,
        "model": rng.choice(["m1", "m2"], N), "country": rng.choice(["AR", "DE"], N),
        "guess": rng.choice(["up", "down"], N), "time": np.arange(N),
    }  # fmt: skip
    pa.csv.write_csv(pa.table(events), "s.csv")


def meta(path="r.html"):
    found = re.search(r'id="meta">(.*?)</script>', Path(path).read_text(), re.DOTALL)
    assert found
    return json.loads(found.group(1))


def counters(path="r.html"):
    """What the head of the page counts, by its name."""
    text = Path(path).read_text().partition("</header>")[0]
    return dict(re.findall(r"<dt>([^<]+)</dt>\s*<dd>([^<]+)</dd>", text))


def test_the_page_holds_the_rows_the_curves_and_what_became_of_every_event(capsys):
    ran = call(
        capsys, "evaluate", "s.csv", "--window", "last:100", "--every", "50", "--slice", "country",
        "--output", "rows.parquet", "--report", "r.html", "--curves-every", "200",
    )  # fmt: skip
    assert ran.status == 0
    assert ", all of it in r.html (" in ran.lines[0]
    assert names(".") == ["r.html", "rows.parquet", "s.csv"]
    rows = pq.read_table("rows.parquet")
    page = meta()
    assert page["kept"] == len(rows)
    assert page["models"] == ["m1", "m2"]
    assert len(page["curves"]) == sum(
        int(row["seq"]) // 200 + (row["seq"] % 200 > 0)
        for row in rows.to_pylist()
        if row["row"] == max(r["row"] for r in rows.to_pylist() if r["slice"] == row["slice"]
                             and r["model"] == row["model"])
    )  # fmt: skip
    said = counters()
    assert (said["Events read"], said["Applied"], said["Dead letters"]) == ("900", "898", "2")
    assert "score is missing" in Path("r.html").read_text()


def test_a_report_beside_curves_and_dead_letters_shows_the_same(capsys):
    ran = call(
        capsys, "evaluate", "s.csv", "--window", "last:100", "--output", "rows.csv", "--report", "r.html",
        "--curves", "curves.csv", "--dead-letters", "dead.jsonl",
    )  # fmt: skip
    assert ran.status == 0
    again = call(
        capsys, "report", "rows.csv", "--curves", "curves.csv", "--dead-letters", "dead.jsonl", "-o", "a.html"
    )
    assert again.status == 0
    assert meta() == meta("a.html")
    assert counters()["Dead letters"] == counters("a.html")["Dead letters"] == "2"


@pytest.mark.slow
@pytest.mark.parametrize("output", ["-", "rows.jsonl", "rows.csv.gz"])
def test_rows_of_any_form_make_the_page(capsys, output):
    ran = call(capsys, "evaluate", "s.csv", "--window", "last:100", "--output", output, "--report", "r.html")
    assert ran.status == 0
    assert meta()["kept"] == (ran.out.count("\n") if output == "-" else 10)
    assert meta()["curves"]


@pytest.mark.parametrize("output", ["rows.jsonl", "rows.parquet"])
def test_no_events_make_a_page_that_says_so(capsys, output):
    Path("none.csv").write_text("score,label,model\n")
    ran = call(
        capsys, "evaluate", "none.csv", "--output", output, "--report", "r.html", "--curves", "c.jsonl"
    )
    assert ran.status == 0
    assert meta()["kept"] == 0


def test_classes_without_a_positive_one_have_a_report_without_curves(capsys):
    options = ("--label", "guess", "--predicted", "guess", "--output", "rows.csv")
    ran = call(capsys, "evaluate", "s.csv", *options, "--report", "r.html")
    assert ran.status == 0
    assert meta()["curves"] == []
    refused = call(capsys, "evaluate", "s.csv", *options, "--report", "r.html", "--curves", "c.csv")
    assert refused.status == 2


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("r.pdf", "a report is HTML; give it a name that ends in .html"),
        ("-", "stdout is for rows; name a file"),
        ("no/r.html", "/no does not exist; create it"),
        ("", "give it a name that ends in .html"),
        ("kafka://a/b.html", "is a topic, where no file can be; name a file"),
    ],
)
def test_a_place_where_no_page_can_be_is_refused_before_the_job(capsys, report, said):
    ran = call(capsys, "evaluate", "s.csv", "--output", "rows.csv", "--report", report)
    assert ran.status == 2
    assert said in ran.lines[-1]
    assert names(".") == ["s.csv"]


def test_a_runner_that_writes_elsewhere_has_no_report(capsys):
    ran = call(
        capsys, "evaluate", "s.csv", "--output", "rows.csv", "--report", "r.html", "--runner", "flink",
        "--flink_master", "localhost:1",
    )  # fmt: skip
    assert ran.status == 2
    assert "make the page from the rows, with rocsteady report" in ran.lines[-1]


def test_a_parquet_file_says_of_which_level_its_intervals_are(capsys):
    options = ("evaluate", "s.csv", "--window", "last:100", "--every", "50", "--confidence", "0.9")
    assert call(capsys, *options, "--output", "rows.parquet", "--report", "r.html").status == 0
    assert call(capsys, *options, "--output", "rows.csv").status == 0
    assert call(capsys, "report", "rows.parquet", "-o", "a.html").status == 0
    assert meta("a.html")["confidence"] == meta()["confidence"] == "90%"
    assert "AUC [90% interval]" in Path("a.html").read_text()
    assert call(capsys, "report", "rows.csv", "-o", "b.html").status == 0
    assert "they are taken to be of 95%" in Path("b.html").read_text()
    assert call(capsys, "report", "rows.csv", "--confidence", "0.9", "-o", "c.html").status == 0
    assert meta("c.html")["confidence"] == "90%"
    assert "they are taken to be" not in Path("c.html").read_text()
    refused = call(capsys, "report", "rows.parquet", "--confidence", "0.95", "-o", "d.html")
    assert refused.status == 2
    assert "different levels, 0.9 and 0.95" in refused.lines[-1]
    assert call(capsys, *options[:-1], "0.8", "--output", "other.parquet").status == 0
    refused = call(capsys, "report", "rows.parquet", "other.parquet", "-o", "d.html")
    assert refused.status == 2
    assert "different levels, 0.8 and 0.9" in refused.lines[-1]


def test_a_title_stands_above_the_report_and_nowhere_else(capsys):
    options = ("evaluate", "s.csv", "--output", "rows.csv", "--title", "Churn <2013>")
    assert call(capsys, *options, "--report", "r.html").status == 0
    assert "<h1>Churn &lt;2013&gt;</h1>" in Path("r.html").read_text()
    refused = call(capsys, *options)
    assert refused.status == 2
    assert "stands above a report" in refused.lines[-1]


def test_what_looks_like_a_mistake_is_said_on_the_page_too(capsys):
    years = {"score": [i % 7 / 7 for i in range(400)], "label": [i % 2 for i in range(400)]}
    pa.csv.write_csv(pa.table({**years, "year": [2013 + i // 100 for i in range(400)]}), "y.csv")
    ran = call(
        capsys, "evaluate", "y.csv", "--time", "year", "--threshold", "-1", "--output", "rows.csv",
        "--report", "r.html",
    )  # fmt: skip
    assert ran.status == 0
    said = "\n".join(ran.lines)
    page = Path("r.html").read_text()
    for words in (
        "400 events share their time with others of their model",
        "very time lies on 1 January 1970",
        "very event in the rows is predicted positive at threshold -1",
    ):
        assert words in said
        assert words in page
    pa.csv.write_csv(pa.table({**years, "id": range(400), "year": ["2013-01-05"] * 400}), "d.csv")
    ran = call(capsys, "evaluate", "d.csv", "--time", "year", "--id", "id", "--output", "rows.csv")
    assert "share their time" not in "\n".join(ran.lines)
    assert "1970" not in "\n".join(ran.lines)


RULE = ("--alert", "auc < 0.8", "--window", "last:100", "--every", "50")


@pytest.mark.parametrize("kept", [(), ("--alerts", "alerts.parquet"), ("--alerts", "alerts/")])
def test_the_page_has_the_alerts_of_the_job(capsys, kept):
    ran = call(capsys, "evaluate", "s.csv", *RULE, *kept, "--output", "rows.parquet", "--report", "r.html")
    assert ran.status == 0, ran
    said = next(line for line in ran.lines if "opened" in line)
    opened = int(re.search(r"(\d+) alerts? opened", said).group(1))
    still = re.search(r"(\d+) still open", said)
    assert opened > 1
    head = Path("r.html").read_text().partition("</header>")[0]
    assert f"{opened} alerts opened, {still.group(1) if still else 0} still open" in head
    if kept[-1:] == ("alerts.parquet",):
        again = call(capsys, "report", "rows.parquet", *kept, "-o", "a.html")
        assert again.status == 0
        assert f"{opened} alerts opened" in Path("a.html").read_text()
