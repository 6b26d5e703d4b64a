"""Names that command a terminal, forge a line or reverse text: no command shows a person one of them raw."""

from __future__ import annotations

import argparse
import json
import unicodedata
from pathlib import Path

import pytest
from rocsteady.pipelines.cli import main
from rocsteady.pipelines.commands import command_parser

HOSTILE = "\x1b]0;t\x07\x1b[2J\x9b31m\r\nrocsteady: forged\t\x7f\u202e\u2066\u200b\u2028"
"""ESC, OSC with BEL, CSI of C1, CR, LF, TAB, DEL, marks of direction and no width, separators of lines."""

FILE = "\x1b]0;t\x07\x9b\r\n\t\x7f\u202e\u2066"
"""The same for a file, shorter: a file name has at most 255 bytes."""

EVENTS, ROWS = f"events{FILE}.jsonl", f"rows{FILE}.parquet"
COLUMNS = (
    "--score", f"s{HOSTILE}", "--label", f"y{HOSTILE}", "--time", f"t{HOSTILE}", "--id", f"i{HOSTILE}",
    "--model", f"m{HOSTILE}", "--slice", f"k{HOSTILE}",
)  # fmt: skip
NUL = f"{HOSTILE}\0"
"""Of values alone: a word of a command line and a file name cannot hold NUL."""


def event(number, model, **changes):
    score = (number * 7 % 11) / 11 + (number % 2) * (0.1 if model == "a" else 0.2)
    values = {"s": score, "y": number % 2, "t": 1_700_000_000 + number, "i": f"{NUL}{number}{model}"}
    values |= {"m": f"{NUL}{model}", "k": f"{NUL}{number % 3}"} | changes
    return {f"{name}{HOSTILE}": value for name, value in values.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with hostile events: most are right, some have each value wrong, some come twice."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = [event(number, model) for number in range(60) for model in "ab"]
    lines += [event(60, "a", **{name: f"no{NUL}"}) for name in "syt"] + [event(1, "a"), {NUL: NUL}, NUL]
    text = "\n".join(map(json.dumps, lines))
    (folder / EVENTS).write_text(f"{text}\n{{{HOSTILE}\n", "utf-8", newline="")
    return folder


@pytest.fixture(autouse=True)
def _there(folder, monkeypatch):
    monkeypatch.chdir(folder)


def told(capfd, *words, status=0, data=False):
    """Run a command, check what it said, and return that.

    status  the exit status that it must have, None for any
    data    stdout holds records, which stay raw
    """
    capfd.readouterr()
    try:
        found = main([str(word) for word in words])
    except SystemExit as leave:
        found = leave.code
    out, err = capfd.readouterr()
    said = err if data else err + out
    for line in said.split("\n"):
        raw = [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
        assert not raw, line
        assert not line.startswith("rocsteady: forged"), line
    assert found == status or status is None, said
    return said


@pytest.fixture
def evaluated(folder, capfd):
    """The folder with rows, dead letters and a state; one job for the module."""
    if not Path(ROWS).exists():
        said = told(
            capfd, "evaluate", EVENTS, *COLUMNS, "--every", "10", "--deduplicate", "1d", "--output", ROWS,
            "--dead-letters", f"dead{FILE}.csv", "--report", f"page{FILE}.html", "--title", HOSTILE,
            "--export-state", f"state{FILE}", "--shards", "4", status=0,
        )  # fmt: skip
        assert "7 dead letters + 1 duplicate" in said
        assert r"state\x1b]0;t\x07" in said
    return folder


@pytest.mark.slow
def test_what_reads_the_outputs_of_a_job(evaluated, capfd):
    assert r"\x1b]0;t\x07" in told(capfd, "inspect", f"state{FILE}")
    for step in Path(f"state{FILE}").iterdir():
        told(capfd, "inspect", step, status=0 if step.name != "manifest.json" else 2)
    again = ("state", "import", f"state{FILE}", "--output", f"again{FILE}")
    told(capfd, *again, "--shards", "2")
    told(capfd, *again, status=2)  # the folder is there
    told(capfd, "rows", ROWS, "--output", f"rows{FILE}.csv")
    compare = ("compare", ROWS, "--output", f"compared{FILE}.csv", "--over")
    told(capfd, *compare, f"k{HOSTILE}")
    told(capfd, *compare, f"q{HOSTILE}", status=2)
    letters = ("--dead-letters", f"dead{FILE}.csv")
    told(capfd, "report", ROWS, *letters, "--title", HOSTILE, "--output", f"page{FILE}.html")


def test_rows_on_stdout_alerts_and_dead_letters_on_stderr(capfd):
    said = told(
        capfd, "evaluate", EVENTS, *COLUMNS, "--every", "10", "--alert", "auc < 1", "--output", "-",
        "--fail-if", "applied < 1000", "--shards", "4", status=4, data=True,
    )  # fmt: skip
    assert "alerts opened" in said
    assert "dead letters, kept with --dead-letters" in said


def test_replay_to_stdout_and_to_a_folder(capfd):
    options = ("--time", f"t{HOSTILE}", "--speed", "max")
    told(capfd, "replay", EVENTS, *options, data=True)
    told(capfd, "replay", EVENTS, *options, "--output", f"played{FILE}")
    told(capfd, "replay", EVENTS, *options, "--output", f"played{FILE}", status=2)


def options_of(parser):
    """Yield every option of a command and of its subcommands, with the words that lead to it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                for words, option in options_of(child):
                    yield [name, *words], option
        elif action.option_strings and action.nargs != 0:
            yield [], action.option_strings[-1]


NEEDS = {
    "evaluate": (EVENTS, "--output", "none/rows.csv"),
    "replay": (EVENTS, "--time", "t"),
    "report": (ROWS, "--output", "none/page.html"),
    "rows": (ROWS, "--output", "none/rows.csv"),
    "show": ("none.csv",),
    "roll-up": (ROWS, "--output", "none/rows.csv"),
    "compare": (ROWS, "--output", "none/rows.csv"),
    "prequential": (EVENTS, "--label", "y", "--learner", "majority", "--output", "none/none"),
    "inspect": ("none",),
    "export": ("--control", "none", "--output", "none/none", "--timeout", "1ms"),
    "import": ("none", "--output", "none/none"),
    "doctor": ("--no-job",),
    "monitoring": (EVENTS,),
    "serve": (f"none{FILE}.xyz",),
    "watch": (f"none{FILE}.xyz",),
}
"""What each command needs, wrong enough that nothing runs."""


@pytest.mark.parametrize(
    "value",
    [
        HOSTILE,
        *(
            pytest.param(form.format(HOSTILE), marks=pytest.mark.slow)
            for form in ("none{}.jsonl", "kafka://{}/t", "a={}", "1{}", "@{}")
        ),
    ],
    ids=["bare", "file", "topic", "pair", "number", "contents"],
)
def test_a_hostile_value_of_every_option(capfd, value):
    tried = set()
    for words, option in options_of(command_parser()[0]):
        if not words or words[0] == "demo":
            continue
        needs = [*NEEDS[words[-1]]]
        if option in needs:
            at = needs.index(option)
            del needs[at : at + 2]
        told(capfd, *words, *needs, f"{option}={value}", status=None)
        tried.add((*words, option))
    assert len(tried) > 90
    assert {words[0] for words in tried} == {*NEEDS, "state"} - {"export", "import"} - {"inspect"}


def test_hostile_words(capfd):
    for words in ([HOSTILE], ["evaluate", f"--{HOSTILE}"], ["inspect", HOSTILE], ["rows", HOSTILE, "--x"]):
        assert told(capfd, *words, status=2).startswith("rocsteady: ")


@pytest.mark.slow
def test_learners_and_columns_of_instances(capfd):
    said = told(
        capfd, "prequential", EVENTS, "--label", f"y{HOSTILE}", "--positive", "1", "--learner", "majority",
        "--learner", f"l{HOSTILE}=persistent", "--folds", "3", "--output", f"out{FILE}",
    )  # fmt: skip
    assert r"\x1b]0;t\x07" in said
