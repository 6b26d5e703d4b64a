"""The how-to pages about Kafka are true: on a real broker their commands print what the pages show."""

from __future__ import annotations

import re
import shlex

import pytest
from rocsteady.runners.servers.kafka import KafkaBroker

from tests.support.pages.blocks import blocks_of, rocsteady_calls
from tests.support.pages.runs import run, run_bash, run_python
from tests.support.processes.command import COMPILING
from tests.support.requirements import servers
from tests.support.servers.kafka_topics import produce

PAGES = ["docs/how-to/kafka.md", "docs/how-to/rows-in-kafka.md"]
SHOWN = "localhost:9092"
"""The address of the broker on the pages."""

TOPIC = re.compile(r"^python -m rocsteady\.runners\.servers topic (.*)$", re.MULTILINE)
MEASURED = re.compile(r"\d+\.\d s|[\d,]+/s")


@pytest.fixture
def own_broker(tmp_path):
    """A broker without topics: those of the pages have names that other tests may use."""
    servers("kafka")
    with KafkaBroker(tmp_path / "kafka") as started:
        yield started


def ends(block):
    """Whether a block's jobs end by themselves on this machine."""
    calls = [" ".join(call) for call in rocsteady_calls(block.text)]
    for_ever = [call for call in calls if call.startswith("evaluate kafka:") and "--until" not in call]
    return not for_ever and "--runner" not in block.text


def outcomes(text):
    """The lines of an output, without what depends on the machine."""
    lines = [line.rstrip() for line in text.strip().splitlines() if COMPILING not in line]
    return [MEASURED.sub("_", line) for line in lines]


def labels_come_later(broker):
    """Fill the topics of the page's join: of every tenth prediction there is no label."""
    for name in ("predictions", "labels"):
        broker.create_topic(name)
    made = [f'{{"order": {i}, "made": {60 * i}, "score": {i % 7}}}' for i in range(1_000)]
    known = [f'{{"order": {i}, "known": {60 * i + 9}, "label": {i % 2}}}' for i in range(1_000) if i % 10]
    for name, lines in (("predictions", made), ("labels", known)):
        produce(broker, name, [(0, line.encode(), 0) for line in lines])


@pytest.mark.slow
def test_the_commands_run_as_written_and_print_what_is_shown(own_broker, tmp_path, monkeypatch):
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.chdir(folder)
    labels_come_later(own_broker)
    compared = 0
    for block in (block for page in PAGES for block in blocks_of(page)):
        here = block._replace(text=block.text.replace(SHOWN, own_broker.address))
        for words in map(shlex.split, TOPIC.findall(block.text)):
            own_broker.create_topic(words[0])
        if block.language == "{code-block} python":
            printed = run_python(here, {"__name__": "page"})
        elif block.language == "bash" and "kafka://" in block.text and ends(block):
            status, printed = run_bash(here)
            assert status == 0, f"{block.place}\n{printed}"
        else:
            run(block, {"__name__": "page"})
            continue
        if block.shown is not None:
            assert outcomes(printed.replace(own_broker.address, SHOWN)) == outcomes(block.shown), block.place
            compared += 1
    assert compared == 5
    assert len((folder / "left_over.jsonl").read_text().splitlines()) == 100
