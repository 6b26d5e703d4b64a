"""What pages show is true: every block of every page runs, in the page's order, in the page's own folder.

How an author writes a page:

- A `python` block is a script. A `bash` block is what a reader types. A `text` block right behind either is
  what the block prints, stdout and stderr together. Times a run took, `(1.2 s)`, may differ. A line `...`
  stands for any lines.
- Blocks share the page's folder: a later block reads the files of an earlier one. They do not share
  variables, except on pages of `NOTEBOOKS`.
- A block behind a line that ends in a file's name and a colon, "Save this as `nightly.sh`:", is that file.
  The block is written, not run (csv, json, jsonl, py, sh, toml, yaml). A file .sh may be executed.
- A bash block fails with its first command that fails. Where that is the point, the block ends with `# exit
  status 2`.
- Lines that prepare a machine (`pip install`, `python3 -m venv`, `. .venv/bin/activate`, `git clone`) are
  left out; `.venv/bin/rocsteady` is `rocsteady`.
- Blocks whose lines are all plain `rocsteady ...` or `python3 script.py` run in this process, quickly. All
  others go through bash. A page with a bash block that starts a Python is slow: keep loops and pipes to pages
  that need them.
- Files of the reader's own (`scores.csv`) that a page does not make are in tests/support/page_files.py.
- A block that needs what a plain machine lacks (Kafka, Flink, Google Cloud: `LACKING` in
  tests/support/page_blocks.py) does not run; the command line reads its commands and checks their options.
"""

from __future__ import annotations

import re
import sys

import pytest
from page_blocks import FENCE, LACKING, NOTEBOOKS, PAGES, SLOW, blocks_of
from page_files import GIVEN
from page_runs import parse_commands, run

LANGUAGES = {"bash", "csv", "json", "jsonl", "python", "sh", "sql", "text", "toml", "yaml"}
BLOCKS = {page: blocks_of(page) for page in PAGES}
WITH_CODE = [
    pytest.param(
        page, marks=[pytest.mark.slow] if page in SLOW or any(block.is_slow for block in blocks) else []
    )
    for page, blocks in BLOCKS.items()
    if any(block.language in ("python", "bash") for block in blocks)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The page's folder; modules that a page makes are forgotten behind it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")  # pytest's import of readline sets 80 in the processes of xdist
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", WITH_CODE)
def test_a_page_runs_as_written_and_prints_what_it_shows(page, folder):
    if page in GIVEN:
        GIVEN[page]()
    variables = {}
    for block in BLOCKS[page]:
        if page not in NOTEBOOKS:
            variables = {"__name__": "page"}
        run(block, variables)


def test_every_block_is_of_a_language_that_is_run_or_shown():
    others = {
        block.place: block.language
        for blocks in BLOCKS.values()
        for block in blocks
        if block.language not in LANGUAGES and not block.language.startswith("{")
    }
    assert others == {}


def test_every_fence_is_a_block_that_is_found():
    for page, path in PAGES.items():
        fences = re.findall(r"^ *```.*$", path.read_text("utf-8"), re.MULTILINE)
        shown = sum(block.shown is not None for block in BLOCKS[page])
        assert len(fences) == 2 * (len(BLOCKS[page]) + shown), page


def test_every_command_is_in_a_block_but_those_that_ci_types():
    commands = {
        line.split(" && ")[-1]
        for path in PAGES.values()
        for line in re.findall(
            r"^    (?:\$ |rocsteady |python3? |pip |\.venv).*",
            FENCE.sub("", path.read_text("utf-8")),
            re.MULTILINE,
        )
    }
    assert commands == {".venv/bin/rocsteady demo", ".venv/bin/pytest"}


def test_every_word_that_keeps_a_block_from_running_is_on_a_page():
    assert {
        word for word in LACKING if not any(word in path.read_text("utf-8") for path in PAGES.values())
    } == set()


def test_pages_with_given_files_and_those_of_a_kind_are_there():
    assert {*GIVEN, *NOTEBOOKS, *SLOW} <= PAGES.keys()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("rocsteady evaluate kafka://a:1/b --no-such-option", "no-such-option"),
        ("rocsteady evaluate kafka://a:1/b --window last:none", "--window"),
        ("rocsteady evaluate ... --alert 'auc_hi < 1' | rocsteady evaluate -", "auc_hi"),
        ("rocsteady no-such-command", "no-such-command"),
    ],
)
def test_a_command_that_does_not_run_is_read_all_the_same(command, message):
    block = BLOCKS["README.md"][0]._replace(text=command + "\n")
    with pytest.raises(AssertionError, match=message):
        parse_commands(block)
