"""The command line, called in this process or run as one of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from rocsteady.pipelines.cli import main

PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
from rocsteady.pipelines.cli import main
sys.exit(main())
"""
COMMAND = (sys.executable, "-c", PROGRAM)
"""The console script, with signals as at a terminal: a shell's background and nohup ignore some."""

COMPILING = "rocsteady: compiling the kernels"
"""Begins the line that may come once on a machine, and says nothing of a job."""

DONE = re.compile(
    r"rocsteady: ([\d,]+) (?:event|prediction)s? read = ([\d,]+) applied \+ ([\d,]+) dead letters?"
    r"(?: \+ [\d,]+ (?:late|unmatched|duplicates?))*; ([\d,]+) rows? "
    r"(in \S+|on stdout|not kept|on the page \S+)(?:, [\d,]+ curves? in \S+)?(?:, all of it in \S+)?"
    r" \(\d+\.\d s\)"
)


class Ran(NamedTuple):
    """What a command left: its exit status, stdout, and the lines of stderr."""

    status: int
    out: str
    lines: list[str]

    @property
    def counts(self):
        """Events read, applied, dead letters and rows, as the first line tells them."""
        match = DONE.fullmatch(self.lines[0])
        assert match, self.lines
        return tuple(int(number.replace(",", "")) for number in match.groups()[:4])


def said(text):
    return [line for line in text.splitlines() if not line.startswith(COMPILING)]


def call(capsys, *arguments):
    """Run a command in this process.

    `evaluate` gets few shards, because an engine's time is by the key: 0.2 s a job instead of 0.5.
    """
    if arguments[:1] == ("evaluate",) and not any(str(word).startswith("--shards") for word in arguments):
        arguments = ("evaluate", "--shards", "4", *arguments[1:])
    capsys.readouterr()
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as leave:  # --help and --version
        status = leave.code
    out, err = capsys.readouterr()
    return Ran(status, out, said(err))


def evaluated(capsys, *arguments, output="rows.parquet", dead=False):
    """Run `evaluate`, see that all went well and every event is accounted for; return its rows."""
    ran = call(capsys, "evaluate", *arguments, "--output", output)
    assert ran.status == 0, ran
    read, applied, dead_letters, rows = ran.counts
    assert read == applied + dead_letters
    assert dead or not dead_letters, ran
    table = pq.read_table(output)
    assert table.num_rows == rows
    return table.to_pylist()


def start(*arguments, **options):
    """Start a command in a process of its own."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run(*arguments, patience=120, **options):
    """Run a command in a process of its own."""
    process = start(*arguments, **options)
    out, err = process.communicate(timeout=patience)
    return Ran(process.returncode, out, said(err))


def names(folder="."):
    """The names in a folder, hidden ones too."""
    return sorted(entry.name for entry in Path(folder).iterdir())
