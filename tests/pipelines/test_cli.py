"""The command line: exit statuses, one sentence for every mistake, nothing left behind, stdout for data."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rocsteady.core.errors import ConfigError
from rocsteady.core.kernels.announcement import ANNOUNCEMENT
from rocsteady.pipelines.commands import COMMANDS, command_parser
from rocsteady.pipelines.evaluate.summary import ProgressLine
from rocsteady.transforms.beam import progress

from tests.support.processes.command import COMMAND, call, names, run, said, start

OK = "score,label\n0.1,0\n0.9,1\n0.4,0\n0.8,1\n"
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals and limits")


def scores_csv(n, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.4
    scores = rng.random(n) * 0.6 + 0.4 * labels
    return "score,label\n" + "".join(f"{s:.6f},{y:d}\n" for s, y in zip(scores, labels, strict=True))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in, with one good file and many bad ones."""
    monkeypatch.chdir(tmp_path)
    files = {
        "ok.csv": OK,
        "near.csv": OK.replace("score", "scores"),
        "semicolons.csv": OK.replace(",", ";"),
        "double.csv": "score,label,score\n0.1,0,0.2\n",
        "empty.csv": "",
        "ids.csv": OK.replace("score", "order_id,score"),
        "models.csv": OK.replace("score", "model,score"),
        "fake.parquet": "no parquet at all",
        "plain.csv.gz": OK,
        "events.txt": OK,
        "--dashes.csv": OK,
        "old.jsonl": '{"score": 0.5, "label": 1}\n',
    }
    for name, text in files.items():
        Path(name).write_text(text)
    Path("folder.csv").mkdir()
    return tmp_path


MISTAKES = {
    # nothing to do, or nothing known
    "evalute ok.csv": "'evalute' did you mean evaluate?",
    "jump": "'jump' demo evaluate inspect",
    "prequential ok.csv": "--output --learner prequential --help",
    "--frobnicate": "COMMAND",
    "evaluate": "SOURCE evaluate --help",
    "evaluate ok.csv --dead-letters -": "--dead-letters -: stdout is for rows",
    "evaluate ok.csv --reference 30d": "--reference '30d' --time COL",
    "evaluate ok.csv --reference 30d --output o.csv": "--reference '30d' --report PATH",
    "show": "ROWS show --help",
    "show none.parquet": "none.parquet does not exist",
    "show ok.csv": "ok.csv rocsteady evaluate --output",
    "show ok.csv --reference soon": "reference 'soon' earlier 30d 2026-01-01..2026-02-01",
    "inspect": "STATE inspect --help",
    "inspect a b": "'b' inspect --help",
    "demo there": "'there' demo --help",
    # input
    "evaluate none.csv --output o.csv": "none.csv does not exist",
    "evaluate duoble.csv --output o.csv": "duoble.csv does not exist double.csv",
    "evaluate day-*.csv --output o.csv": "day-*.csv matches no file",
    "evaluate folder.csv --output o.csv": "folder.csv is a folder",
    "evaluate empty.csv --output o.csv": "empty.csv is empty",
    "evaluate fake.parquet --output o.csv": "fake.parquet is not a Parquet file",
    "evaluate plain.csv.gz --output o.csv": "plain.csv.gz not compressed",
    "evaluate events.txt --output o.csv": "events.txt ending .csv .parquet .jsonl",
    "evaluate kafka://host/topic --output o.csv": "kafka://host/topic 'host' host:port",
    "evaluate near.csv --output o.csv": "near.csv 'score' did you mean 'scores'? --score COL",
    "evaluate semicolons.csv --output o.csv": "semicolons.csv 'score' 'score;label' commas .csv tabs .tsv",
    "evaluate ok.csv --label lable --output o.csv": "'lable' 'label' --label COL",
    "evaluate ok.csv --time when --output o.csv": "'when' score, label --time COL",
    "evaluate ok.csv --id key --output o.csv": "'key' --id COL",
    "evaluate ids.csv --id order --output o.csv": "'order' did you mean 'order_id'? --id COL",
    "evaluate ok.csv --model who --output o.csv": "'who' --model COL",
    "evaluate ok.csv --predicted class --output o.csv": "'class' --predicted COL",
    "evaluate ok.csv --slice country --output o.csv": "'country' --slice COL",
    "evaluate ok.csv near.csv --output o.csv": "near.csv 'score'",
    "evaluate -dash.csv --output o.csv": "-dash.csv ./-dash.csv",
    "evaluate --dashes.csv --output o.csv": "--dashes.csv ./--dashes.csv",
    "evaluate ok.csv --output -rows.parquet": "-rows.parquet ./-rows.parquet",
    "inspect -model.state": "-model.state ./-model.state",
    "evaluate double.csv --output o.csv": "double.csv 2 columns 'score'",
    # output
    "evaluate ok.csv --output none/o.csv": "none/o.csv folder none does not exist",
    "evaluate ok.csv --output near.csv/o.csv": "near.csv is not a folder",
    "evaluate ok.csv --output folder.csv": "folder.csv is a folder",
    "evaluate ok.csv --output o.xlsx": "o.xlsx .parquet .csv .jsonl",
    "evaluate ok.csv --output ok.csv": "ok.csv is also an input",
    "evaluate *.jsonl --output ./old.jsonl": "old.jsonl is also an input",
    "evaluate ok.csv --output o.csv --dead-letters ok.csv": "ok.csv is also an input",
    "evaluate ok.csv --output o.csv --dead-letters ./o.csv": "--dead-letters ./o.csv rows",
    "evaluate ok.csv --output o.csv --dead-letters none/d.csv": "none/d.csv does not exist",
    "evaluate ok.csv --output o.csv --dead-letters d.txt": "d.txt .parquet",
    "evaluate ok.csv --output o.csv --dead-letters -": "--dead-letters stdout",
    "evaluate ok.csv --output kafka://host/topic": "--output kafka://host/topic host:port",
    "evaluate ok.csv --output o.csv --curves ok.csv": "--curves ok.csv is also an input",
    "evaluate ok.csv --output o.csv --curves ./o.csv": "--curves ./o.csv file of the rows another",
    "evaluate ok.csv --output o.csv --dead-letters d.csv --curves d.csv": "--curves d.csv dead letters",
    "evaluate ok.csv --output o.csv --curves none/c.csv": "none/c.csv does not exist",
    "evaluate ok.csv --output o.csv --curves c.png": "c.png .parquet .jsonl",
    "evaluate ok.csv --output o.csv --curves folder.csv": "folder.csv is a folder",
    "evaluate ok.csv --output o.csv --curves -": "--curves stdout is for rows",
    "evaluate ok.csv --output o.csv --curves kafka://host:1/": "--curves kafka://host:1/ name of a topic",
    # settings
    "evaluate ok.csv --output o.csv --curves-every 5": "--curves-every 5 --curves PATH",
    "evaluate ok.csv --output o.csv --curves-points all": "--curves-points all --curves PATH",
    "evaluate ok.csv --report r.html --curves-points all": "--curves-points all --curves PATH",
    "evaluate ok.csv --output o.csv --curves-every end": "--curves-every end --curves PATH",
    "evaluate ok.csv --output o.csv --curves c.csv --curves-every 0": "--curves-every '0' 1 or more end",
    "evaluate ok.csv --output o.csv --curves c.csv --curves-every -4": "--curves-every '-4' 1 or more",
    "evaluate ok.csv --output o.csv --curves c.csv --curves-every often": "--curves-every 'often' whole",
    "evaluate ok.csv --output o.csv --curves c.csv --curves-every 1h": "--curves-every '1h' whole number",
    "evaluate ok.csv --output o.csv --curves c.csv --curves-every 9999999999999999999": "whole number",
    "evaluate ok.csv --output o.csv --curves c.csv --predicted label": "--predicted --positive VALUE",
    "evaluate ok.csv --output o.csv --window last:0": "--window last:0 1 or more",
    "evaluate ok.csv --output o.csv --window last:-5": "--window last:-5 1 or more",
    "evaluate ok.csv --output o.csv --window last:ten": "--window last:ten 'ten' duration",
    "evaluate ok.csv --output o.csv --window last:7d": "--window last:7d event time --time",
    "evaluate ok.csv --output o.csv --window last:7x": "--window last:7x no duration '12h'",
    "evaluate ok.csv --output o.csv --window fading:1d": "--window fading:1d event time --time",
    "evaluate ok.csv --output o.csv --window fading:0": "--window fading:0 1 to 2147483647",
    "evaluate ok.csv --output o.csv --window adaptive:2": "--window adaptive:2 between 0 and 1",
    "evaluate ok.csv --output o.csv --window adaptive:0.1:auc": "adaptive:0.1:auc 'placement'",
    "evaluate ok.csv --output o.csv --window adaptive::brier": "brier --probabilities",
    "evaluate ok.csv --output o.csv --window adaptive --predicted score": "--predicted --positive error",
    "evaluate ok.csv --output o.csv --partial-fpr 0.1": "--partial-fpr 0.1 0:0.1",
    "evaluate ok.csv --output o.csv --partial-fpr 0.3:0.1": "partial_fpr",
    "evaluate ok.csv --output o.csv --window 100": "--window 100 last:N",
    "evaluate ok.csv --output o.csv --every 0": "--every 0 1 or more",
    "evaluate ok.csv --output o.csv --every 1h": "--every 1h event time --time",
    "evaluate ok.csv --output o.csv --every 0h --time score": "--every 0h 1 microsecond",
    "evaluate ok.csv --output o.csv --every 1.5": "--every 1.5 whole number",
    "evaluate ok.csv --output o.csv --order random": "--order random position time arrival 'time:10m'",
    "evaluate ok.csv --output o.csv --order time": "--order time --time",
    "evaluate ok.csv --output o.csv --order time:soon --time score": "time:soon 'soon' no length 'time:10m'",
    "evaluate ok.csv --output o.csv --order time:10m": "time:10m needs times --time",
    "evaluate ok.csv --output o.csv --max-ahead 1d": "--max-ahead 1d needs times --time",
    "evaluate ok.csv --output o.csv --time score --time-unit h": "--time-unit 'h' 'ms'",
    "evaluate ok.csv --output o.csv --measures auc,acu": "'acu' accuracy",
    "evaluate ok.csv --output o.csv --measures brier": "'brier' --probabilities",
    "evaluate ok.csv --output o.csv --cost beta:0,1": "--cost beta:0,1 a > 0",
    "evaluate ok.csv --output o.csv --cost betta": "--cost betta severity uniform",
    "evaluate ok.csv --output o.csv --cost severity:-1": "--cost severity:-1 > 0",
    "evaluate ok.csv --output o.csv --priors 1.5": "priors 1.5 between 0 and 1",
    "evaluate ok.csv --output o.csv --priors half": "--priors 'half' number",
    "evaluate ok.csv --output o.csv --threshold nan": "threshold nan finite",
    "evaluate ok.csv --output o.csv --confidence 95": "confidence 95 between 0 and 1",
    "evaluate ok.csv --output o.csv --at-fpr 2": "at_fpr 2 between 0 and 1",
    "evaluate ok.csv --output o.csv --false-positive-cost 1": "false_positive_cost between 0 and 1",
    "evaluate ok.csv --output o.csv --shards 0": "--shards '0' 1 or more",
    "evaluate ok.csv --output o.csv --shards many": "--shards 'many' whole number",
    "evaluate ok.csv --output o.csv --cache-bytes -1": "--cache-bytes '-1' 0 or more",
    "evaluate ok.csv --output o.csv --slice ,": "--slice ',' COL,COL",
    "evaluate ok.csv --output o.csv --slice label,label": "label,label once",
    "evaluate ok.csv --output o.csv --slice label --slice label": "label once",
    "evaluate ok.csv --output o.csv --model score --model-name m": "--model-name --model",
    "evaluate ok.csv --output o.csv --weight wight": "wight",
    "evaluate ok.csv --output o.csv --labels=l.csv": "--labels l.csv id --id COL",
    "evaluate ok.csv --output o.csv --labels=l.csv --id score": "--labels l.csv time of a prediction --time",
    "evaluate ok.csv --output o.csv --ttl 3d": "--ttl 3d labels of their own --labels",
    "evaluate ok.csv --output o.csv --labels= --id score --time label": "--labels '' name a file",
    "evaluate ok.csv --output o.csv --labels=ok.csv --id score --time label --ttl 20000000d": (
        "ttl='20000000d' is longer than 36,000 years"
    ),
    "evaluate ok.csv --output o.csv --label-time t": "--label-time t --labels",
    "evaluate - --labels l.csv --output o.csv": "--labels l.csv SOURCE - --label-records",
    # alerts
    "evaluate ok.csv --output o.csv --alerts a.csv": "--alerts a.csv --alert RULE",
    "evaluate ok.csv --output o.csv --alert auk<1": "--alert 'auk<1' did you mean 'auc' or 'aum'?",
    "evaluate ok.csv --output o.csv --alert auc": "--alert 'auc' drops or rises",
    "evaluate ok.csv --output o.csv --evidence-below 1": "--evidence-below 1 between 0 and 1",
    "evaluate ok.csv --output o.csv --evidence-below high": "--evidence-below high between 0 and 1",
    "evaluate ok.csv --output o.csv --evidence-below 2026-02..2026-01": "ends before it starts",
    "evaluate ok.csv --output o.csv --evidence-below 2026-01..2026-02": "2026-01-01 event time --time",
    "evaluate ok.csv --output o.csv --evidence-below .8 --block-gap 1h": "--block-gap 1h event time --time",
    "evaluate ok.csv --output o.csv --evidence-below .8 --block-gap 5": "--block-gap 5 no duration 5s",
    "evaluate ok.csv --output o.csv --block-gap 1h": "--block-gap 1h no evidence --evidence-below AUC",
    "evaluate ok.csv --output o.csv --evidence-blocks 8": "--evidence-blocks 8 no evidence",
    "evaluate ok.csv --output o.csv --evidence-blocks 0": "--evidence-blocks '0' 1 or more",
    "evaluate ok.csv --output o.csv --evidence-below .8 --evidence-blocks 101": "evidence_blocks 101 100",
    "evaluate ok.csv --output o.csv --measures evidence": "'evidence' --evidence-below 0.8",
    "evaluate ok.csv --output o.csv --evidence-below 0.8 --weight score": "--evidence-below --weight proven",
    "evaluate ok.csv --output o.csv --alert evidence>9": "evidence > 9 not computed --evidence-below 0.8",
    "evaluate ok.csv --output o.csv --false-alarms 1 --alert h<1": "--false-alarms 1 no budget 1 per 1000000",
    "evaluate ok.csv --output o.csv --false-alarms 1": "--false-alarms 1 --alert RULE",
    "evaluate ok.csv --output o.csv --alert auc<1 --alert auc<1.0": "--alert 'auc < 1' 2 times",
    "evaluate ok.csv --output o.csv --alert brier<1": "--alert 'brier < 1' not computed --probabilities",
    "evaluate ok.csv --output o.csv --alert average_precision<1": "--measures average_precision, or",
    "evaluate ok.csv --output o.csv --alert h<1 --measures auc": "'h < 1' not computed --measures h",
    "evaluate ok.csv --output o.csv --alert drift>0": "'drift > 0' last:10000 --window adaptive",
    "evaluate ok.csv --output o.csv --alert h<1 --predicted label": "'h < 1' --positive VALUE",
    "evaluate ok.csv --output o.csv --alert f1<1 --predicted label": "'f1 < 1' --positive VALUE",
    "evaluate ok.csv --output o.csv --alert h<1 --alerts ok.csv": "--alerts ok.csv is also an input",
    "evaluate ok.csv --output o.csv --alert h<1 --alerts ./o.csv": "--alerts ./o.csv file of the rows",
    "evaluate ok.csv --output o.csv --alert h<1 --alerts a.txt": "a.txt .parquet",
    "evaluate ok.csv --output o.csv --alert h<1 --alerts -": "--alerts stdout",
    "evaluate ok.csv --output o.csv --alert h<1 --runner flink": "'flink' --alerts PATH",
    # runners, and options of Beam
    "evaluate ok.csv --output o.csv --evry 5": "--evry did you mean --every?",
    "evaluate ok.csv --output o.csv --direct_num_worker=2": "did you mean --direct_num_workers?",
    "evaluate ok.csv --output o.csv --direct_num_workers two": "--direct_num_workers 'two'",
    "evaluate ok.csv --output o.csv --direct_running_mode=fast": "'fast' 'multi_processing'",
    "evaluate ok.csv --output o.csv --job_name": "--job_name",
    "evaluate ok.csv --output o.csv --runner locla": "'locla' did you mean local?",
    "evaluate ok.csv --output o.csv --runner os.nothing": "'os.nothing' local",
    "evaluate ok.csv --output o.csv other": "'other'",
    # one value where one counts
    "evaluate ok.csv --output o.csv --label a --label b": "--label a and --label b: leave one out",
    "evaluate ok.csv --window all --output o.csv --window=last:5": "--window all and --window last:5:",
    "evaluate ok.csv --output o.csv --output p.csv": "--output o.csv and --output p.csv:",
    "compare r.csv -o a.csv --output b.csv": "-o a.csv and --output b.csv: compare --help",
    "state import dir --output a --output b": "--output a and --output b: import --help",
    "evaluate ok.csv --output kafka://h:1/t --kafka-option a=x --kafka-option a=y": "--kafka-option a twice",
}


@pytest.mark.parametrize("words", MISTAKES, ids=lambda words: words or "nothing")
def test_a_mistake_is_one_sentence_and_status_2_before_anything_is_written(words, capsys):
    before = names()
    ran = call(capsys, *words.split())
    assert (ran.status, ran.out, len(ran.lines)) == (2, "", 1), ran
    assert ran.lines[0].startswith("rocsteady: ")
    needles = MISTAKES[words].replace(" did you mean ", " \0did\0you\0mean\0").split()
    for needle in needles:
        assert needle.replace("\0", " ").strip() in ran.lines[0], ran.lines[0]
    assert names() == before


@pytest.mark.parametrize("option", ["--id order", "--slice scor", "--weight lable", "--time modle"])
def test_a_column_that_is_far_or_that_has_another_role_is_not_suggested(option, capsys):
    ran = call(capsys, "evaluate", "models.csv", *option.split(), "--output", "o.csv")
    assert ran.status == 2
    assert "it has model, score, label" in ran.lines[0]
    assert "did you mean" not in ran.lines[0]


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_help_says_a_default_once(command, capsys):
    told = " ".join(call(capsys, command, "--help").out.split())
    assert not re.search(r"(\[[^]]+\]) \1", told)


def test_without_a_word_there_is_help_and_status_2(capsys):
    ran = call(capsys)
    assert (ran.status, ran.out) == (2, "")
    assert "\n".join([*ran.lines, ""]) == call(capsys, "--help").out


def test_a_file_whose_name_begins_with_a_dash(capsys):
    Path("-dash.csv").write_text(OK)
    assert call(capsys, "evaluate", "./-dash.csv", "--output=-rows.csv").status == 0
    assert call(capsys, "evaluate", "--output", "o.csv", "--", "-dash.csv").status == 0
    assert Path("-rows.csv").read_text() == Path("o.csv").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="file names that are no text are Linux's")
def test_a_name_that_is_no_text_is_refused(capsys):
    Path("\udcff.csv").write_text(OK)
    for words in (["\udcff.csv"], ["ok.csv", "--model-name", "\udcff"]):
        ran = call(capsys, "evaluate", *words, "--output", "o.csv")
        assert (ran.status, len(ran.lines)) == (2, 1), ran
        assert "\\udcff" in ran.lines[0]
        assert "not UTF-8" in ran.lines[0]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(capsys):
    Path("locked").mkdir(mode=0o500)
    ran = call(capsys, "evaluate", "ok.csv", "--output", "locked/o.csv")
    assert ran.status == 2
    assert "locked" in ran.lines[0]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can write: /proc")
def test_a_folder_in_which_nobody_can_write(capsys):
    ran = call(capsys, "evaluate", "ok.csv", "--output", "/proc/o.csv")
    assert ran.status == 2
    assert "/proc/o.csv" in ran.lines[0]
    assert "cannot be written" in ran.lines[0]


def test_an_empty_name_is_no_file(capsys):
    assert call(capsys, "evaluate", "", "--output", "o.csv").status == 2
    assert call(capsys, "evaluate", "ok.csv", "--output", "").status == 2
    assert call(capsys, "evaluate", "ok.csv", "--output", "o.csv", "--score", "").status == 2


@pytest.fixture(scope="module")
def packed():
    """A gzip file so long that what is wrong behind its middle is not seen in its head."""
    return gzip.compress(scores_csv(300_000).encode(), 1)


def test_damage_in_the_head_of_a_file_is_found_before_the_job(packed, capsys):
    Path("cut.csv.gz").write_bytes(packed[:1000])
    ran = call(capsys, "evaluate", "cut.csv.gz", "--output", "o.csv")
    assert (ran.status, len(ran.lines)) == (2, 1), ran
    assert "cut.csv.gz" in ran.lines[0]


def test_a_damaged_file_fails_the_job_with_a_sentence_and_leaves_no_output(packed, capsys):
    middle = len(packed) * 3 // 4
    Path("cut.csv.gz").write_bytes(packed[:middle])
    Path("torn.csv.gz").write_bytes(packed[:middle] + bytes(64) + packed[middle + 64 :])
    before = names()
    for name in ("cut.csv.gz", "torn.csv.gz"):
        ran = call(capsys, "evaluate", "ok.csv", name, "--output", "o.csv", "--dead-letters", "d.csv")
        assert (ran.status, ran.out, len(ran.lines)) == (1, "", 1), ran
        assert ran.lines[0].startswith(f"rocsteady: {name} is damaged after record ")
        assert "while running" not in ran.lines[0]
        assert names() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--runner", "BundleBasedDirectRunner"],
        ["--direct_running_mode=multi_threading", "--direct_num_workers=2"],
    ],
)
@pytest.mark.slow
def test_other_engines_fail_with_the_same_sentence(arguments, packed, capsys):
    """Before it, one of them prints the traceback itself."""
    Path("cut.csv.gz").write_bytes(packed[:-100])
    ran = call(capsys, "evaluate", "cut.csv.gz", "--output", "o.csv", *arguments)
    assert ran.status == 1
    assert ran.lines[-1].startswith("rocsteady: cut.csv.gz is damaged after record ")
    assert "while running" not in ran.lines[-1]
    assert "o.csv" not in names()


def test_a_failed_job_leaves_the_output_of_the_last_one(packed, capsys):
    Path("o.csv").write_text("from yesterday")
    Path("cut.csv.gz").write_bytes(packed[:-100])
    assert call(capsys, "evaluate", "cut.csv.gz", "--output", "o.csv").status == 1
    assert Path("o.csv").read_text() == "from yesterday"


@posix
@pytest.mark.parametrize(
    "more", [("--every", "1"), ("--every", "400", "--curves", "c.csv", "--curves-every", "50")]
)
def test_a_full_disk_fails_the_job_with_a_sentence(more, capsys):
    """In place of the disk, a limit on the size of a file."""
    import resource

    Path("many.csv").write_text(scores_csv(400))
    before = names()
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, usual[1]))
    try:
        ran = call(capsys, "evaluate", "many.csv", "--output", "o.csv", *more)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert (ran.status, len(ran.lines)) == (1, 1), ran
    assert "File too large" in ran.lines[0]
    assert names() == before


@posix
def test_a_new_output_replaces_the_old_one_and_keeps_its_mode(capsys):
    Path("o.csv").write_text("from yesterday")
    Path("o.csv").chmod(0o640)
    assert call(capsys, "evaluate", "ok.csv", "--output", "o.csv").status == 0
    assert Path("o.csv").read_text().startswith("model,slice,row,")
    assert Path("o.csv").stat().st_mode & 0o777 == 0o640


@posix
def test_an_output_that_is_a_link_is_written_where_it_points(capsys):
    """In the format of its own name."""
    Path("elsewhere").mkdir()
    Path("o.csv").symlink_to("elsewhere/rows")
    assert call(capsys, "evaluate", "ok.csv", "--output", "o.csv").status == 0
    assert Path("o.csv").is_symlink()
    assert names("elsewhere") == ["rows"]
    assert Path("elsewhere/rows").read_text().startswith("model,slice,row,")


@posix
@pytest.mark.parametrize("option", ["--output", "--dead-letters", "--curves"])
def test_an_output_that_can_be_no_file_is_found_before_the_job(option, capsys):
    Path("link.csv").symlink_to("nowhere/rows.csv")
    Path("loop.csv").symlink_to("loop.csv")
    Path("device.csv").symlink_to("/dev/null")
    os.mkfifo("pipe.csv")
    before = names()
    words = {
        "link.csv": "nowhere does not exist",
        "loop.csv": "symbolic links",
        "device.csv": "is a pipe, a socket or a device",
        "pipe.csv": "is a pipe, a socket or a device",
        f"{'n' * 252}.csv": "name too long",
    }
    for name, expected in words.items():
        outputs = {"--output": "o.csv", option: name}
        ran = call(capsys, "evaluate", "ok.csv", *(word for pair in outputs.items() for word in pair))
        assert (ran.status, len(ran.lines)) == (2, 1), ran
        assert ran.lines[0].startswith(f"rocsteady: {option} {name} ")
        assert expected in ran.lines[0]
    assert names() == before
    assert Path("pipe.csv").is_fifo()


def test_a_name_may_be_as_long_as_the_system_lets_it(capsys):
    name = f"{'n' * 248}.csv.gz"
    ran = call(capsys, "evaluate", "ok.csv", "--output", name, "--dead-letters", name.replace("n", "d"))
    assert ran.status == 0, ran
    assert gzip.decompress(Path(name).read_bytes()).startswith(b"model,slice,row,")


def test_options_may_stand_anywhere_and_any_option_of_beam_passes(capsys):
    ran = call(
        capsys, "evaluate", "--direct_num_workers", "1", "--every", "2", "ok.csv",
        "--job_name", "nightly", "--output", "o.csv", "--no_direct_runner_use_stacked_bundle",
    )  # fmt: skip
    assert ran.status == 0, ran
    assert ran.counts == (4, 4, 0, 2)


def test_a_threshold_may_be_negative(capsys):
    assert call(capsys, "evaluate", "ok.csv", "--output", "o.csv", "--threshold", "-1.5").status == 0


@pytest.mark.parametrize("command", ["", "evaluate", "inspect", "demo"])
def test_help_has_examples(command, capsys):
    ran = call(capsys, *command.split(), "--help")
    assert ran.status == 0
    assert not ran.lines
    assert "example" in ran.out
    assert f"  rocsteady {command}" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 120


def test_the_help_of_evaluate_tells_every_option(capsys):
    out = call(capsys, "evaluate", "--help").out
    _, parsers = command_parser()
    assert all(name in out for name in parsers["evaluate"]._option_string_actions)


def test_no_option_of_any_command_loses_a_value():
    """Two values of an option are an error that shows both, unless the option is declared repeatable."""
    _, commands = command_parser()
    (state,) = (action.choices for action in commands["state"]._actions if action.dest == "action")
    parsers = [*(parser for name, parser in commands.items() if name != "state"), *state.values()]
    assert [*commands] == [command.name for command in COMMANDS]
    tried = 0
    for parser in parsers:
        for action in parser._actions:
            if not action.option_strings or action.nargs == 0:
                continue
            first, second = action.choices[:2] if action.choices else ("1", "2")
            words = [action.option_strings[0], first, action.option_strings[-1], second]
            if isinstance(action, argparse._AppendAction | argparse._ExtendAction):
                assert "repeatable" in action.help or action.nargs == "+" or "--learner" in words, words
                continue
            with pytest.raises(ConfigError, match=f"{words[0]} {first} and {words[2]} {second}: one value"):
                parser.parse_known_args(words)
            tried += 1
    assert tried > 90


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_a_command_has_a_function(command):
    module, _, function = command.run.partition(":")
    assert callable(getattr(import_module(f"rocsteady.pipelines.{module}"), function))


def test_the_same_value_twice_is_one(capsys):
    ran = call(capsys, "evaluate", "ok.csv", "--output", "o.csv", "--every", "2", "--every", "2")
    assert ran.counts == (4, 4, 0, 2)


def test_version(capsys):
    assert call(capsys, "--version").out.startswith("rocsteady ")


def test_help_and_version_import_no_heavy_library():
    program = """if True:
        import sys
        from rocsteady.pipelines.cli import main
        for word in ("--help", "--version"):
            try:
                main([word])
            except SystemExit:
                pass
        heavy = {"apache_beam", "numba", "numpy", "pyarrow", "scipy"} & sys.modules.keys()
        sys.exit(f"imported: {heavy}" if heavy else 0)"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_main_leaves_the_process_as_it_was(capsys):
    import logging

    before = (
        logging.getLogger().handlers[:],
        signal.getsignal(signal.SIGINT),
        signal.getsignal(signal.SIGTERM),
    )
    assert call(capsys, "evaluate", "ok.csv", "--output", "o.csv").status == 0
    after = (
        logging.getLogger().handlers[:],
        signal.getsignal(signal.SIGINT),
        signal.getsignal(signal.SIGTERM),
    )
    assert after == before


def test_nobody_speaks_when_all_is_said():
    """A runner's threads fall over when its server is ended with the process: that is no news."""
    program = """
import atexit, logging, sys, threading
atexit.register(logging.error, "the stream was removed")
atexit.register(lambda: ended.set() or thread.join())
ended = threading.Event()
thread = threading.Thread(target=lambda: ended.wait() and int("x"), daemon=True)
thread.start()
from rocsteady.pipelines.cli import main
sys.argv[1:] = ["rows", "none.csv", "--output", "o.csv"]
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    assert len(said(done.stderr)) == 1


def test_the_summary_counts_one_of_a_thing(capsys):
    Path("one.csv").write_text("score,label\n0.5,1\nx,1\n")
    ran = call(capsys, "evaluate", "one.csv", "--output", "o.csv")
    assert "2 events read = 1 applied + 1 dead letter; 1 row in o.csv" in ran.lines[0]


def test_progress_tells_the_share_read_and_that_evaluation_goes_on():
    line = ProgressLine(enabled=False, total_bytes=200, total_files=2)
    assert line._line(progress.Progress(1234, 1, 50, 1), 3.4) == "1,234 events read (25%), 1 dead letter; 3 s"
    assert line._line(progress.Progress(1, 0, 200, 2), 60) == "1 event read, evaluating; 60 s"
    with ANNOUNCEMENT:
        waits = line._line(progress.Progress(0, 0, 0, 0), 60)
    assert waits == "0 events read (0%), compiling the kernels; 60 s"


# Real processes from here on.


@pytest.mark.skipif(
    not shutil.which("rocsteady", path=str(Path(sys.executable).parent)),
    reason="the console script is not installed beside this Python",
)
def test_the_console_script(capsys):
    """By a word that needs no library: what it calls is tested everywhere else."""
    script = Path(sys.executable).with_name("rocsteady")
    done = subprocess.run([script, "evalute", "ok.csv"], capture_output=True, text=True)
    here = call(capsys, "evalute", "ok.csv")
    assert (done.returncode, done.stdout, said(done.stderr)) == here
    assert here.status == 2


def test_stdout_is_pure_json_lines():
    """And stderr is exactly one line."""
    Path("many.csv").write_text(scores_csv(400))
    full = run("evaluate", "many.csv", "--every", "1", "--output", "-")
    assert full.status == 0
    assert len(full.lines) == 1
    assert full.counts == (400, 400, 0, 400)
    assert [json.loads(line)["row"] for line in full.out.splitlines()] == list(range(400))


@pytest.mark.slow  # in a plain run test_live.py and test_replay.py close a stdout early
def test_stdout_may_be_closed_early():
    Path("many.csv").write_text(scores_csv(400))
    process = start("evaluate", "many.csv", "--every", "1", "--output", "-")
    assert json.loads(process.stdout.readline())["row"] == 0
    process.stdout.close()
    assert process.wait(120) == 1
    assert said(process.stderr.read()) == []
    process.stderr.close()


@posix
def test_streams_that_are_closed_take_nothing_with_them():
    shell = '"$@" 2>&- >rows.jsonl'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", *COMMAND, "evaluate", "ok.csv", "--output", "-"], check=False
    )
    assert done.returncode == 0
    assert [json.loads(line)["model"] for line in Path("rows.jsonl").read_text().splitlines()] == ["ok"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    ("words", "status"),
    [pytest.param("ok.csv --output rows.csv", 0, marks=pytest.mark.slow), ("none.csv --output o.csv", 2)],
)  # in a plain run a job that does well has no stderr at all
def test_a_stderr_that_takes_nothing_fails_no_job(words, status):
    shell = f"exec {shlex.join(COMMAND)} evaluate {words} 2>/dev/full"
    assert subprocess.run(["sh", "-c", shell], check=False).returncode == status
    assert Path("rows.csv").exists() == (status == 0)


@posix
@pytest.mark.parametrize(
    ("to", "words", "status", "reason"),
    [
        (">&-", "evaluate ok.csv --output -", 1, "it is closed"),
        pytest.param(">&-", "evaluate - --output - <ok.jsonl", 1, "it is closed", marks=pytest.mark.slow),
        pytest.param(">&- <&-", "evaluate ok.csv --output -", 1, "it is closed", marks=pytest.mark.slow),
        (">&-", "evaluate --help", 1, "it is closed"),
        pytest.param(
            ">/dev/full", "evaluate ok.csv --output -", 1, "No space left on device", marks=pytest.mark.slow
        ),
        (">/dev/full", "--version", 1, "No space left on device"),
        (">&-", "evaluate ok.csv --output rows.csv", 0, None),
    ],
)
def test_rows_that_nobody_can_get_are_not_called_written(to, words, status, reason):
    """And a stdout that takes nothing harms no command that writes nothing there."""
    Path("ok.jsonl").write_text('{"score": 0.5, "label": 1}\n')
    shell = f"exec {shlex.join(COMMAND)} {words} {to}"
    done = subprocess.run(["sh", "-c", shell], stderr=subprocess.PIPE, text=True, check=False)
    lines = said(done.stderr)
    assert done.returncode == status, lines
    if reason is None:
        assert "1 row in rows.csv" in lines[0]
    else:
        assert lines == [f"rocsteady: stdout cannot be written to: {reason}"]


@posix
def test_help_may_be_cut_short():
    shell = f"{shlex.join(COMMAND)} evaluate --help | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[1:] in (["0"], ["1"])


SLOW_SIGNALS = [pytest.param(name, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGHUP")]


@posix
@pytest.mark.parametrize("name", ["SIGINT", *SLOW_SIGNALS])
def test_a_signal_in_the_middle_ends_the_job_and_leaves_nothing(name):
    rng = np.random.default_rng(1)
    columns = {"score": rng.random(400_000), "label": rng.integers(0, 2, 400_000)}
    pq.write_table(pa.table(columns), "large.parquet")
    words = ("evaluate", "../large.parquet", "--every", "1", "--output", "o.csv", "--dead-letters", "d.csv")
    status, word = {
        "SIGINT": (130, "interrupted"),
        "SIGTERM": (143, "terminated"),
        "SIGHUP": (129, "the terminal hung up"),
    }[name]
    Path("job").mkdir()
    process = start(*words, cwd="job")
    while not names("job"):  # no output is begun before the job is
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)  # into the job, which takes many seconds: anywhere in it is in the middle
    process.send_signal(signal.Signals[name])
    out, err = process.communicate(timeout=120)  # for what hangs
    assert (process.returncode, out) == (status, ""), err
    *progress, last = said(err)
    assert last.startswith(f"rocsteady: {word}")
    assert all("events read" in line for line in progress)
    assert names("job") == []
