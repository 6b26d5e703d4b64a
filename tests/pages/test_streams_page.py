"""What docs/concepts/streams.md shows is true: the code draws its pictures, and knows its times."""

from __future__ import annotations

import re

from benchmark_path import ROOT
from rocsteady.core.join.settings import JoinSettings

from benchmarks import streams_pictures

PAGE = (ROOT / "docs/concepts/streams.md").read_text()


def test_the_pictures_are_those_that_the_code_draws(tmp_path):
    streams_pictures.main(tmp_path)
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(drawn) == set(re.findall(r"\(\.\./img/(streams-\w+\.svg)\)", PAGE))
    for name, text in drawn.items():
        assert (ROOT / "docs" / "img" / name).read_text() == text


def test_what_a_joined_stream_waits_is_as_the_page_says():
    eighth, hour = JoinSettings.of("8h", 0).waking, 3_600_000_000
    assert eighth == hour + 1
    for second, lead, waits in (("first", 0, 0), ("first", "2h", 2), ("last", 0, 8), ("last", "2h", 10)):
        assert JoinSettings.of("8h", lead, second=second).runner_delay == waits * hour + eighth
