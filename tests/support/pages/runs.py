"""Runs a page's blocks: Python and plain commands in this process, other shell by bash."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from rocsteady.core.errors import ConfigError
from rocsteady.pipelines.arguments import cache_bytes_of
from rocsteady.pipelines.cli import main, parse
from rocsteady.pipelines.evaluate.options import alerts_of, fields_of, table_of, timing_of

from tests.support import ROOT
from tests.support.pages.blocks import Block, rocsteady_calls, words_of
from tests.support.processes.command import COMPILING

ROCSTEADY = 'exec "$PYTHON" -c "import sys; from rocsteady.pipelines.cli import main; sys.exit(main())" "$@"'
PROGRAMS = {"rocsteady": ROCSTEADY, "python": 'exec "$PYTHON" "$@"', "python3": 'exec "$PYTHON" "$@"'}
"""What a reader's environment has on its PATH, as scripts of sh."""

SECONDS = re.compile(r"\d+\.\d s\)")
PASSING = re.compile(rf"{COMPILING}|WARNING:|rocsteady: .*; \d+ s$")
"""Begins a line, or is the line, that comes on a slow or a new machine alone."""

CHECKS = {"json": json.loads, "jsonl": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}


def run(block: Block, variables: dict[str, Any]) -> None:
    """Run a block in the working folder, or write the file that it is; compare what it prints.

    `variables` are those that a Python block finds, and leaves.
    """
    if block.file is not None:
        Path(block.file).write_text(block.text)
        if block.language in ("bash", "sh"):
            Path(block.file).chmod(0o755)
    elif block.language == "python":
        _compare(block, run_python(block, variables))
    elif block.language == "bash" and block.lacking:
        parse_commands(block)
    elif block.language == "bash":
        status, printed = _plain(block) if block.is_plain else run_bash(block)
        assert status == block.status, f"{block.place}: exit status {status}\n{printed}"
        _compare(block, printed)
    elif block.language in CHECKS:
        CHECKS[block.language](block.text)


def parse_commands(block: Block) -> None:
    """Read a block's commands as the command line reads them; an unknown option or a wrong value fails."""
    for arguments in rocsteady_calls(block.text):
        try:
            _, options, _ = parse(arguments)
            if options.command == "evaluate":
                fields = fields_of(options)
                settings = table_of(options, fields)
                cache_bytes_of(options)
                timing_of(options, settings.evaluator)
                options.alert_exec = None  # its program need not be there
                alerts_of(options, settings.evaluator, fields, here=True)
        except (ConfigError, SystemExit) as error:
            raise AssertionError(f"{block.place}: rocsteady {' '.join(arguments)}: {error}") from error


def run_python(block: Block, variables: dict[str, Any]) -> str:
    """Run Python as a file of the working folder; return what it prints."""
    code = compile("\n" * block.line + block.text, block.page, "exec")
    with _printed() as printed:
        exec(code, variables)
    return printed()


def _plain(block: Block) -> tuple[int, str]:
    """Run plain commands one after another, up to the first that fails."""
    with _printed() as printed:
        status = next(filter(None, map(_status, block.commands)), 0)
    return status, printed()


def _status(line: str) -> int:
    """Run a plain command; return its exit status."""
    program, *words = words_of(line)
    try:
        if program == "rocsteady":
            return main(words)
        with mock.patch.object(sys, "argv", words):
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as leave:
        return int(leave.code or 0)
    return 0


@contextlib.contextmanager
def readers_environment() -> Iterator:
    """Give the environment of a reader's shell, in which `rocsteady` and `python` are this process's."""
    paths = [path or str(Path.cwd()) for path in sys.path if path != str(ROOT)]
    with tempfile.TemporaryDirectory() as programs:
        for name, text in PROGRAMS.items():
            program = Path(programs, name)
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        known = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONUNBUFFERED": "1",
        }
        yield {**os.environ, **known}


def run_bash(block: Block) -> tuple[int, str]:
    """Run a shell block; return its exit status and what it prints."""
    with readers_environment() as environment:
        done = subprocess.run(
            ["bash", "-c", "set -euo pipefail\n" + "\n".join(block.commands)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return done.returncode, done.stdout


@contextlib.contextmanager
def _printed() -> Iterator:
    """Collect what is printed meanwhile, on stdout and stderr, in its order."""
    both = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)

    def printed() -> str:
        return both.buffer.getvalue().decode()

    with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        yield printed


def _compare(block: Block, printed: str) -> None:
    """Raise AssertionError where a block prints something else than the page shows.

    Times a run took are equal to each other. A line `...` stands for any lines.
    """
    if block.shown is None:
        return
    said = [line for line in _lines(printed) if not PASSING.match(line)]
    shown = _lines(block.shown)
    pattern = "\n".join(".*" if line == "..." else re.escape(line) for line in shown)
    assert re.fullmatch(pattern, "\n".join(said), re.DOTALL), f"{block.place} prints\n{printed}"


def _lines(text: str) -> list[str]:
    return [SECONDS.sub("_ s)", line.rstrip()) for line in text.rstrip().splitlines()]
