"""EvaluateModels(deduplicate=, slice_cap=, idle_ttl=): rows and duplicates as a table would have them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apache_beam.testing import test_stream
from apache_beam.transforms.window import TimestampedValue
from rocsteady.core.errors import ConfigError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.rows.records import MeasureRow
from rocsteady.core.settings.windows import EveryEvents
from rocsteady.transforms.evaluate.models import EvaluateModels
from rocsteady.transforms.events.dead_letters import DeadLetter
from rocsteady.transforms.sources import pack_records

from tests.support.processes.beam_runs import InOrder, Keep, kept, pipeline
from tests.support.thorough import some

COLUMNS: dict[str, Any] = {"time": "when", "id": "key", "every": EveryEvents(5), "shards": 2}


def event(number: int, when: int, key: str | None, user: str = "u", model: str = "m") -> dict[str, Any]:
    return {
        "model": model, "score": number / 10, "label": number % 2, "when": when, "key": key, "user": user,
    }  # fmt: skip


def run(events: list[Any], directory: Path, runner: str = "in process", **changes: Any) -> list[Any]:
    """Return (model, slice, row, seq, events in the window) of every row."""
    with pipeline(runner) as p:
        result = p | InOrder(events) | EvaluateModels(**{**COLUMNS, **changes})
        for name in ("rows", "duplicates", "dead_letters", "late"):
            getattr(result, name) | name >> Keep(directory, name)
    rows = [MeasureRow(*row.value) for row in kept(directory, "rows")]
    return sorted((row.model, row.slice, row.row, row.seq, row.window_events) for row in rows)


def letters(directory: Path, name: str) -> list[DeadLetter]:
    return [DeadLetter(*letter.value) for letter in kept(directory, name)]


@pytest.mark.parametrize(
    ("runner", "cache_bytes"), some(itertools.product(["in process", "retrying"], [1 << 30, 0]))
)
def test_what_is_delivered_again_counts_once(
    runner: str, cache_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_records, "PACKET_EVENTS", 7)
    once = [event(number, 100 * number, f"{number}") for number in range(40)]
    twice = [*once[:25], once[3], once[20], *once[25:], once[39]]
    (tmp_path / "once").mkdir()
    rows = run(once, tmp_path / "once", deduplicate=3_600)
    assert run(twice, tmp_path, runner, deduplicate=3_600, cache_bytes=cache_bytes) == rows
    assert rows[-1] == ("m", "", 7, 40, 40)
    found = sorted((letter.id, letter.kind) for letter in letters(tmp_path, "duplicates"))
    assert found == [("20", "duplicate"), ("3", "duplicate"), ("39", "duplicate")]
    reasons = {(letter.reason, letter.detail) for letter in letters(tmp_path, "duplicates")}
    same = "its model and id came before, with the same time"
    assert reasons == {("second event of this model and id", same)}
    assert kept(tmp_path, "dead_letters") == kept(tmp_path, "late") == []


def test_late_values_share_a_slice_and_silent_models_return_with_an_empty_window(tmp_path: Path) -> None:
    events = [event(number, 10 * number, None, f"u{number % 4}") for number in range(12)]
    events += [event(0, 10_000, None, "u0"), event(1, 10_001, None, "u9")]
    rows = run(events, tmp_path, slices="user", slice_cap=2, idle_ttl="3h", every=EveryEvents(100))
    assert rows == [
        ("m", "", 0, 14, 14), ("m", "user=other", 0, 7, 7), ("m", "user=u0", 0, 4, 4),
        ("m", "user=u1", 0, 3, 3),
    ]  # fmt: skip
    (tmp_path / "silent").mkdir()
    rows = run(events, tmp_path / "silent", slices="user", slice_cap=2, idle_ttl=600, every=EveryEvents(100))
    assert rows == [
        ("m", "", 0, 12, 12), ("m", "", 1, 14, 2), ("m", "user=other", 0, 6, 6), ("m", "user=other", 1, 7, 1),
        ("m", "user=u0", 0, 3, 3), ("m", "user=u0", 1, 4, 1), ("m", "user=u1", 0, 3, 3),
    ]  # fmt: skip


def test_models_that_the_watermark_finds_silent_give_their_last_rows_once(tmp_path: Path) -> None:
    """Machines ask to be woken for them, and the job ends all the same."""
    stream = test_stream.TestStream()
    for number, model in enumerate("aabb"):
        when = 100 * number
        stream.advance_watermark_to(when)
        stream.add_elements([TimestampedValue(event(number, when, None, model=model), when)])
    stream.advance_watermark_to(5_000).advance_watermark_to_infinity()
    with pipeline("retrying", "--streaming") as p:
        result = p | stream | EvaluateModels(**COLUMNS, order="time", clock="runner", idle_ttl=600)
        result.rows | Keep(tmp_path, "rows")
    rows = [MeasureRow(*row.value) for row in kept(tmp_path, "rows")]
    assert sorted((row.model, row.row, row.seq) for row in rows) == [("a", 0, 2), ("b", 0, 2)]


def test_packed_events_without_ids_are_one_dead_letter(tmp_path: Path) -> None:
    packed = EventBatch(TextColumn.of(["m"]), np.zeros(1), np.zeros(1, np.int8), np.zeros(1, np.int64))
    assert run([packed.pack(), event(1, 0, "x")], tmp_path, deduplicate="1d") == [("m", "", 0, 1, 1)]
    (letter,) = letters(tmp_path, "dead_letters")
    assert letter.reason == "packed batch does not fit"
    assert "it has no ids, and deduplicate= is given" in letter.detail


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"deduplicate": "7d", "time": None}, "deduplicate='7d' needs times; name their field with time="),
        ({"deduplicate": "7d", "id": None}, "deduplicate='7d' needs ids; name their field with id="),
        ({"idle_ttl": 60, "time": None}, "idle_ttl=60 needs times; name their field with time="),
        ({"idle_ttl": "soon"}, "idle_ttl: 'soon' is no duration"),
        ({"slice_cap": 0}, "slice_cap=0: give how many values of a slice have their own, 1 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EvaluateModels(**{**COLUMNS, **changes})
