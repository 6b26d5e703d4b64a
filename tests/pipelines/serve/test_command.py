"""`rocsteady serve` and `rocsteady evaluate --serve`, as commands."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest
from rocsteady.transforms.sinks.table import write_table

from tests.support.pages.report_tables import alert_events, evaluated_rows, filled
from tests.support.pages.served import PATIENCE, asked
from tests.support.processes.command import COMMAND, call
from tests.support.processes.live_job import job

TOKEN = "0123456789abcdef-secret"


@contextmanager
def serve(*words):
    """Run the command; yield its process and port."""
    running = subprocess.Popen(
        [*COMMAND, "serve", *map(str, words), "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    try:
        line = running.stderr.readline()
        found = re.search(r":(\d+)/ shows", line)
        assert found, line + running.stderr.read()
        yield running, int(found[1])
    finally:
        running.kill()
        running.wait()
        running.stderr.close()


def models(port, **headers):
    return {row["model"]: row["seq"] for row in json.loads(asked(port, "/api/models", **headers)[2])}


def until(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_folder_is_served_from_before_its_first_part_to_ctrl_c(tmp_path):
    place, alerts = tmp_path / "rows", tmp_path / "alerts"
    table = filled([("m", 60)])
    with serve(f"{place}/", "--alerts", f"{alerts}/", "--title", "Mine & yours") as (running, port):
        assert models(port) == {}
        place.mkdir()
        write_table(table.slice(0, 40), str(place / "part-1.parquet"))
        until(lambda: models(port) == {"m": 4_000.0})
        write_table(table.slice(40), str(place / "part-2.jsonl"))
        until(lambda: models(port) == {"m": 6_000.0})
        alerts.mkdir()
        write_table(alert_events({"model": "m", "row": 3}), str(alerts / "part-1.jsonl"))
        until(lambda: b"1 alert opened" in asked(port)[2])
        assert b"Mine &amp; yours" in asked(port)[2]
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 0
        assert running.stderr.read() == "rocsteady: Ctrl-C: the server ends\n"


def counts_on(page):
    return re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page.decode().partition("<nav")[0])


EVERYTHING = (
    "--time", "t", "--every", "1h", "--window", "last:400", "--slice", "c", "--roll-up", "models",
    "--champion", "a", "--id", "id", "--curves-every", "200", "--alert", "members > 1",
    "--alert", "auc < 2", "--alert", "anytime_high < 2",
)  # fmt: skip
TABLES = ("roll-ups", "pairs", "curves", "alerts")


def events_of_two_models(n):
    for number in range(n):
        label = number * 7 % 10 < 4
        for model in "ab":
            score = 0.3 * label + (number * (37 if model == "a" else 41) % 100) / 150
            yield {"model": model, "id": str(number), "score": score, "label": int(label),
                   "t": 1_772_323_200 + 60 * number, "c": "xy"[number % 2]}  # fmt: skip
    yield {"model": "a", "score": "?", "label": 1}


def has_everything(page):
    sections = (b'id="roll_ups"', b'id="pairs"', b'id="curves" aria', b'href="#curves"')
    return all(one in page for one in sections)


def test_a_job_serves_its_tables_and_counts_and_serve_shows_the_same_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outputs = [word for what in TABLES for word in (f"--{what}", f"{what}.jsonl")]
    with job("-", *EVERYTHING, *outputs, "--serve", "127.0.0.1:0", output="rows.jsonl") as running:
        for event in events_of_two_models(1_500):
            running.send(json.dumps(event).encode() + b"\n")
        said = b""
        while b"shows the rows" not in said:
            said += running.process.stderr.readline()
        port = int(re.search(rb":(\d+)/ shows", said)[1])
        until(lambda: ("Dead letters", "1") in counts_on(asked(port)[2]))
        until(lambda: has_everything(asked(port)[2]))
        # Counts and alerts come by ways of their own: each of them makes another page.
        until(lambda: ("Events read", "3,001") in counts_on(asked(port)[2]))
        for words in (b"1 &times;", b"members &gt; 1", b"anytime_high &lt; 2"):
            until(lambda words=words: words in asked(port)[2])
        assert running.end()[0] == 0
    with serve("rows.jsonl", *outputs) as (_, port):
        until(lambda: has_everything(asked(port)[2]) and b"members &gt; 1" in asked(port)[2])
        assert counts_on(asked(port)[2])[0][0] == "Applied"


OF_CLASSES = (
    "--class-scores", "10=a,9=b,x=c", "--label", "label", "--time", "t", "--every", "1h", "--window",
    "last:300", "--slice", "c1", "--roll-up", "models", "--curves-every", "200", "--alert", "members > 1",
    "--alert", "auc < 2",
)  # fmt: skip


def events_of_classes(n):
    for number in range(n):
        label = number * 7 % 3
        scores = [number * factor % 100 / 150 + 0.3 * (label == at) for at, factor in enumerate((37, 41, 43))]
        for model in "mn":
            yield {"model": model, "t": 1_772_323_200 + 60 * number, "c1": "xy"[number % 2],
                   "label": ("10", "9", "x")[label], **dict(zip("abc", scores, strict=True))}  # fmt: skip


def has_classes(port):
    """Whether the page has the curves of all classes, and the alerts; and its means of groups."""
    page = asked(port)[2]
    meta = json.loads(re.search(rb'id="meta">(.*?)</script>', page, re.DOTALL)[1])
    curves = {(meta["models"][curve[0]], meta["slices"][curve[1]]) for curve in meta["curves"]}
    parts = [part + name for part in ("", "c1=x,", "c1=y,") for name in ("class=10", "class=9", "class=x")]
    alerts = b"members &gt; 1" in page and b"auc &lt; 2" in page
    if curves != {(model, part) for model in "mn" for part in parts} or not alerts:
        return None
    chart = asked(port, f"/api/blocks/{meta['at']}/roll_ups_chart")
    (group,) = json.loads(gzip.decompress(chart[2]))["series"] if chart[0] == 200 else [None]
    return group and group["name"]


def test_the_page_of_a_job_with_class_scores_has_its_curves_roll_ups_and_alerts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables = ("roll-ups", "curves", "alerts")
    outputs = [word for what in tables for word in (f"--{what}", f"{what}.jsonl")]
    with job("-", *OF_CLASSES, *outputs, "--serve", "127.0.0.1:0", output="rows.jsonl") as running:
        for event in events_of_classes(800):
            running.send(json.dumps(event).encode() + b"\n")
        said = b""
        while b"shows the rows" not in said:
            said += running.process.stderr.readline()
        port = int(re.search(rb":(\d+)/ shows", said)[1])
        until(lambda: has_classes(port) == "models")
        assert running.end()[0] == 0
    with serve("rows.jsonl", *outputs) as (_, port):
        until(lambda: has_classes(port) == "models")
        lines = [json.loads(line) for line in (tmp_path / "roll-ups.jsonl").read_text().splitlines()]
        last = [line["auc_mean"] for line in lines if line["class"] is None][-1]
        until(lambda: f">{last:.3f}".encode() in asked(port)[2].partition(b'id="roll_ups"')[2])


def test_a_token_from_a_file_guards_the_page(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(TOKEN + "\n")
    write_table(filled([("m", 40)]), str(tmp_path / "rows.parquet"))
    with serve(tmp_path / "rows.parquet", "--token", f"@{secret}") as (_, port):
        assert asked(port)[0] == 401
        until(lambda: models(port, Authorization=f"Bearer {TOKEN}") == {"m": 4_000.0})


def test_a_damaged_part_is_told_and_the_others_are_served(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    write_table(evaluated_rows(("m",), 600), str(tmp_path / "b.parquet"))
    with serve(tmp_path) as (running, port):
        until(lambda: "m" in models(port))
        assert b"a.parquet cannot be read" in asked(port)[2]
        running.terminate()
        assert running.wait(PATIENCE) == 0
        assert "Left out: " in running.stderr.read()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rows/", "--host", "0.0.0.0"), "0.0.0.0 is seen by other machines; say who may look with --token"),
        (("rows/", "--host", "0.0.0.0", "--token", "short"), "a token has 16 or more"),
        (("rows/", "--port", "x"), "--port 'x': give a port"),
        (("rows/", "--port", "70000"), "--port '70000': give a port"),
        (("rows/", "--rows-held", "5"), "--rows-held '5': give a whole number, 1000 or more"),
        (("rows/", "--host", "nowhere.invalid", "--token", TOKEN), "nothing can listen there"),
        (("rows/", "--confidence", "2"), "--confidence '2': give a level"),
        (("kafka://", "--port", "0"), "kafka://"),
        (("rows.txt", "--port", "0"), "rows.txt has an ending that is not known"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_served(words, told, capsys):
    ran = call(capsys, "serve", *words)
    assert ran.status == 2
    assert told in ran.lines[0]


def test_a_job_serves_its_rows_and_alerts_while_it_runs():
    words = ("-", "--every", "50", "--window", "last:100", "--alert", "auc < 2", "--serve", "127.0.0.1:0")
    with job(*words) as running:
        said = b""
        for number in range(120):
            event = {"model": "m", "score": (number * 37 % 100) / 100, "label": number % 2}
            running.send(json.dumps(event).encode() + b"\n")
        while b"shows the rows" not in said:
            said += running.process.stderr.readline()
        port = int(re.search(rb":(\d+)/ shows", said)[1])
        until(lambda: models(port).get("m", 0) >= 100)
        until(lambda: b"1 still open" in asked(port)[2])
        status, rows, _ = running.end()
        assert status == 0
        assert rows


def lines_of(numbers):
    events = ({"model": "m", "score": (n * 37 % 100) / 100, "label": n % 2} for n in numbers)
    return "".join(json.dumps(event) + "\n" for event in events)


@contextmanager
def following(folder, *words, output):
    """Run a job that follows a folder, with checkpoints and a page; yield it, its port and what it said."""
    options = ("--every", "50", "--window", "last:100", "--checkpoint", "kept", "--checkpoint-every", "0s")
    with job(folder, "--follow", *options, *words, "--serve", "127.0.0.1:0", output=output) as running:
        said = ""
        while "shows the rows" not in said:
            said += (line := running.process.stderr.readline().decode())
            assert line, said
        yield running, int(re.search(r":(\d+)/ shows", said)[1])


@pytest.mark.slow
def test_the_page_of_a_job_that_goes_on_after_a_kill_has_the_rows_and_alerts_of_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arriving = tmp_path / "arriving"
    arriving.mkdir()
    (arriving / "1.jsonl").write_text(lines_of(range(200)))
    words = ("--alert", "auc < 2", "--alerts", "alerts.jsonl")
    with following(arriving, *words, output="rows.jsonl") as (running, port):
        until(lambda: models(port) == {"m": 200.0} and list(tmp_path.glob("kept/*.rscp")))
        running.process.kill()
        running.process.wait()
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"model": "m", "au')  # torn by the kill
    with following(arriving, *words, output="rows.jsonl") as (running, port):
        until(lambda: b"has all 4 rows" in asked(port)[2] and b"1 still open" in asked(port)[2])
        assert models(port) == {"m": 200.0}
        (arriving / "2.jsonl").write_text(lines_of(range(200, 300)))
        until(lambda: b"has all 6 rows" in asked(port)[2])
        assert models(port) == {"m": 300.0}
        (arriving / "_END").touch()
        status, _, said = running.end()
        assert status == 0, said
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 6


@pytest.mark.slow
def test_a_page_that_cannot_have_the_rows_of_before_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arriving = tmp_path / "arriving"
    arriving.mkdir()
    (arriving / "1.jsonl").write_text(lines_of(range(200)))
    with following(arriving, "--alert", "auc < 2", output="-") as (running, port):
        until(lambda: models(port) == {"m": 200.0} and list(tmp_path.glob("kept/*.rscp")))
        running.process.kill()
        running.process.wait()
    with following(arriving, "--alert", "auc < 2", output="-") as (running, port):
        (arriving / "2.jsonl").write_text(lines_of(range(200, 300)))
        until(lambda: b"has all 2 rows" in asked(port)[2])
        (arriving / "_END").touch()
        status, _, said = running.end()
        assert status == 0
    assert any(
        "begins without the earlier rows and alerts: they are in no file or topic" in line for line in said
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("events.jsonl", "--serve", ":8080"), "a page is served of a stream that this process reads"),
        (("in", "--follow", "--serve", "8080"), "--serve '8080': give :port or host:port"),
        (
            ("in", "--follow", "--reference", "100 rows", "--title", "T", "--serve", "8080"),
            "--serve '8080': give",
        ),
        (("in", "--follow", "--reference", "100 rows"), "give --report PATH or --serve :8080, or leave"),
        (("in", "--follow", "--serve", "0.0.0.0:0"), "say who may look with --serve-token"),
        (("in", "--follow", "--serve-token", TOKEN), "name its address with --serve"),
    ],
)
def test_a_job_refuses_a_page_that_it_cannot_serve(words, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "events.jsonl").write_text('{"model": "m", "score": 0.5, "label": 1}\n')
    ran = call(capsys, "evaluate", *words, "--output", "rows.jsonl")
    assert ran.status == 2
    assert told in ran.lines[0]
