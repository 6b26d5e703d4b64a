"""What pages show is true: every block of every page runs, in the page's order, in the page's own folder.

How an author writes a page:

- A `python` block is a script. A `bash` block is what a reader types. A `text` block right behind either is
  what the block prints, stdout and stderr together. Times a run took, `(1.2 s)`, may differ. A line `...`
  stands for any lines.
- Blocks share the page's folder: a later block reads the files of an earlier one. They do not share
  variables, except on pages of `NOTEBOOKS`.
- A block behind a line that ends in a file's name and a colon, "Save this as `nightly.sh`:", is that file.
  The block is written, not run (csv, json, jsonl, py, sh, toml, yaml). A file .sh may be executed. Another
  block of the page uses the file.
- A bash block fails with its first command that fails. Where that is the point, the block ends with `# exit
  status 2`.
- Lines that prepare a machine (`pip install`, `python3 -m venv`, `. .venv/bin/activate`, `git clone`) are
  left out; `.venv/bin/rocsteady` is `rocsteady`.
- Blocks whose lines are all plain `rocsteady ...` or `python3 script.py` run in this process, quickly. All
  others go through bash. A page with a bash block that starts a Python is slow: keep loops and pipes to pages
  that need them.
- Files of the reader's own (`scores.csv`) that a page does not make are in tests/support/pages/files.py.
- A block that needs what a plain machine lacks (Kafka, Flink, Google Cloud: `LACKING` in
  tests/support/pages/blocks.py) does not run; the command line reads its commands and checks their options.
"""

from __future__ import annotations

import re
import sys
from collections import Counter

import pytest

from tests.support.pages.blocks import FENCE, LACKING, NOTEBOOKS, PAGES, ROOT, SLOW, blocks_of
from tests.support.pages.files import GIVEN
from tests.support.pages.runs import parse_commands, run

LANGUAGES = {"bash", "csv", "json", "jsonl", "python", "sh", "sql", "text", "toml", "yaml"}
BLOCKS = {page: blocks_of(page) for page in PAGES}
ALL = [block for blocks in BLOCKS.values() for block in blocks]
DIRECTIVES = {"{toctree}", "{generated}", "{include}"}
ON_A_BROKER = {"docs/how-to/kafka.md", "docs/how-to/rows-in-kafka.md"}
"""Pages whose blocks `{code-block} python` tests/servers/kafka/test_kafka_pages.py runs."""

TEXT_ALONE = {
    "README.md": 1,  # of the demo, which .ci/run compares
    "docs/tutorials/demo.md": 1,  # the same
    "docs/tutorials/live-demo.md": 1,  # of a year, which tests/pipelines/demo/test_live.py plays
    "docs/how-to/flink.md": 3,  # of a cluster
    "docs/how-to/kafka.md": 3,  # of a broker, of --help, and a file of settings
    "docs/how-to/state.md": 1,  # a listing of files, whose names hold times
    "docs/tutorials/many-models.md": 1,  # a line of a crontab
    "docs/reference/reasons.md": 1,  # the form of a cell
}
"""Blocks `text` behind no block that prints them, by page: nothing compares these here."""

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
        for block in ALL
        if block.language not in LANGUAGES
        and block.language.partition(" ")[0] not in DIRECTIVES
        and not (block.language == "{code-block} python" and block.page in ON_A_BROKER)
    }
    assert others == {}


def test_every_text_is_what_a_block_prints_but_those_that_are_known():
    alone = Counter(page for page, blocks in BLOCKS.items() for block in blocks if block.language == "text")
    assert alone == TEXT_ALONE


def test_no_text_hides_all_that_is_printed():
    shown = {block.place: block.shown.split() for block in ALL if block.shown is not None}
    assert [place for place, words in shown.items() if not set(words) - {"..."}] == []


def test_no_line_that_is_left_out_runs_rocsteady_or_a_script():
    assert [
        (block.place, line)
        for block in ALL
        if block.language == "bash"
        for line in block.left_out
        if re.search(r"[|&;] *(?:rocsteady|python3? [\w./-]+\.py)\b", line)
    ] == []


def test_every_file_of_a_page_has_a_name_that_another_block_uses():
    for block in ALL:
        if block.language in ("csv", "json", "jsonl", "sh", "toml", "yaml"):
            assert block.file, block.place
        if block.file:
            name = rf"\b{re.escape(block.file.removesuffix('.py'))}\b"
            others = [other.text for other in BLOCKS[block.page] if other != block]
            assert any(re.search(name, text) for text in others), block.place


def test_every_fence_is_a_block_that_is_found():
    for page, path in PAGES.items():
        fences = re.findall(r"^ *(?:```|~~~|<pre).*$", path.read_text("utf-8"), re.MULTILINE)
        shown = sum(block.shown is not None for block in BLOCKS[page])
        assert len(fences) == 2 * (len(BLOCKS[page]) + shown), page


def test_pages_beside_the_site_have_no_block_which_nothing_would_run():
    beside = [*ROOT.glob("*.md"), ROOT / "examples" / "README.md"]
    found = [
        path.name for path in beside if re.search(r"^ *(?:```|~~~)", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert found == ["README.md"]


def test_every_command_is_in_a_block_but_those_that_ci_types():
    commands = {
        line.split(" && ")[-1]
        for path in PAGES.values()
        for line in re.findall(
            r"^    (?:\$ |rocsteady |python3? |pip |\.venv|sh |curl |\w+\.\w+\(|import |from ).*",
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
        ("X=1 Y='a b' rocsteady no-such-command", "no-such-command"),
        ("for day in 1 2; do\n    rocsteady no-such-command\ndone", "no-such-command"),
        ("if ! rocsteady no-such-command; then", "no-such-command"),
    ],
)
def test_a_command_that_does_not_run_is_read_all_the_same(command, message):
    block = BLOCKS["README.md"][0]._replace(text=command + "\n")
    with pytest.raises(AssertionError, match=message):
        parse_commands(block)
