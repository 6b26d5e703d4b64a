"""A record far ahead of the wall clock is told of when it comes, once, with what it does and the remedy."""

from __future__ import annotations

import json

import pytest
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.settings.durations import microseconds
from rocsteady.transforms.events.doubts.ahead import tell_ahead
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import Timing
from rocsteady.transforms.events.validate import validate_as
from rocsteady.transforms.sources.files.json_lines import JsonLines
from rocsteady.transforms.sources.streams.reader import StreamReader
from rocsteady.transforms.sources.streams.stream_input import StreamInput

from tests.support.streams.list_partition import ListPartition

FIELDS = EventFields(time="t", model_name="m")
NOW = 1_704_067_200_000_000
"""2024-01-01T00:00:00Z."""


def line(time):
    return json.dumps({"score": 0.5, "label": 1, "t": time}).encode()


def told(caplog):
    found = [each.getMessage() for each in caplog.records if each.name == "rocsteady.times"]
    caplog.clear()
    return found


@pytest.mark.parametrize(
    ("times", "before", "lateness", "said"),
    [
        (["2024-01-01T23:59Z", "2023-12-31"], None, "0s", None),
        (
            ["2024-01-01", "soon", "2099-01-01"],
            None,
            "0s",
            "position 1,002 is dated 2099-01-01, 27394d ahead",
        ),
        (["2024-01-04"], None, "10m", "and records more than 10m before that time are late from here on"),
        (["2024-01-04"], None, "0s", "and records before that time are late from here on"),
        (["2024-01-04"], None, None, "windows and rows by time go on from that time"),
        (["2024-01-04"], None, "7d", None),
        (["2024-01-05"], "3d", "0s", None),
        (["2024-01-08"], "3d", "0s", "dated 2024-01-08, 7d ahead"),
    ],
)
def test_what_is_told_of_a_record_that_is_dated_ahead(times, before, lateness, said, caplog):
    chunk = JsonLines("s", ["t"], ["score", "label", "t"]).chunk(b"\n".join(map(line, times)), 1_000)
    batch, _ = validate_as("event", chunk, FIELDS, "s", 0, Timing())
    high_water = NO_TIME if before is None else NOW + microseconds(before, "before")
    late = None if lateness is None else 0 if lateness == "0s" else microseconds(lateness, "lateness")
    tell_ahead("topic [3]", chunk, batch, FIELDS, Timing(high_water, late, NOW))
    found = told(caplog)
    assert len(found) == (said is not None)
    if said is not None:
        assert found[0].startswith("topic [3]: the record at position")
        assert said in found[0]
        assert "--max-ahead 1d" in found[0]


@pytest.mark.parametrize("ahead", [None, 86_400_000_000])
def test_a_reader_tells_of_it_once_and_with_max_ahead_it_is_a_dead_letter_instead(ahead, caplog):
    values = [line(time) for time in ("2024-01-01", "9000-01-01", "2024-01-02", "9001-01-01")]
    timing = Timing(lateness=0, ahead=ahead)
    reader = StreamReader(StreamInput(ListPartition("p", values), 0, 1, "event", FIELDS, 0, None, timing), 1)
    letters = sum(len(reader.step(1).letters) for _ in values)
    assert len(told(caplog)) == (ahead is None)
    assert letters == (1 if ahead is None else 2)
