"""EvaluateModels gives the rows of a ModelEvaluator per model, slice and pane, however it is run."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.testing import test_stream
from apache_beam.transforms.window import FixedWindows, Sessions, SlidingWindows, TimestampedValue
from rocsteady.core.errors import ConfigError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.rows.records import MeasureRow
from rocsteady.core.rows.rows import Rows
from rocsteady.core.settings.costs import BetaCost
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import Adaptive, EveryEvents, EverySeconds, LastDuration, LastEvents
from rocsteady.core.table.table import EvaluatorTable
from rocsteady.transforms.evaluate.models import EvaluateModels
from rocsteady.transforms.evaluate.shards import RowsCoder
from rocsteady.transforms.events.dead_letters import NO_LETTERS, Chunk, DeadLetter
from rocsteady.transforms.events.fields import EventColumns, EventFields
from rocsteady.transforms.events.lateness import ANY_TIME
from rocsteady.transforms.events.records import records_to_batch
from rocsteady.transforms.events.validate import validate_as
from rocsteady.transforms.sinks.kinds import CURVE_ORDER, CURVE_SCHEMA, curves_to_arrow, sorted_table
from rocsteady.transforms.sources import pack_records

from tests.support.processes.beam_runs import EVERY_RUNNER, RUNNERS_AND_CACHES, InOrder, Keep, kept, pipeline
from tests.support.thorough import some

SETTINGS = EvaluatorSettings(window=LastEvents(30), every=EveryEvents(20), cost=BetaCost(2, 3))
SLICES = (("carrier",), ("carrier", "origin"))


def make_events(n: int = 300, seed: int = 1) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    scores = rng.random(n).round(2)
    return [
        {
            "model": f"m{rng.integers(4)}",
            "score": float(score),
            "label": int(rng.random() < score),
            "when": 1_600_000_000 + i,
            "carrier": ["UA", "AA"][rng.integers(2)],
            "origin": ["JFK", "LGA", None][rng.integers(3)],
        }
        for i, score in enumerate(scores)
    ]


EVENTS = make_events()


def transform(**changes: Any) -> EvaluateModels:
    arguments: dict[str, Any] = {
        "window": SETTINGS.window,
        "every": SETTINGS.every,
        "cost": SETTINGS.cost,
        "time": "when",
        "slices": ("carrier", ("carrier", "origin")),
        "shards": 4,
    }
    return EvaluateModels(**{**arguments, **changes})


FIELDS = EventFields(model="model", time="when", slices=SLICES)


def validated(events: Sequence[dict[str, Any]]) -> Any:
    """Return events as a batch, and their dead letters."""
    chunk = Chunk(-1, records_to_batch(events), None, NO_LETTERS)
    return validate_as("event", chunk, FIELDS, "", 0, ANY_TIME)


def expected(events: Sequence[dict[str, Any]], pane: tuple[int, int] | None = None) -> list[tuple[Any, ...]]:
    """Return the rows of one table that is given everything at once."""
    if not events:
        return []
    table = EvaluatorTable(TableSettings(SETTINGS, SLICES, 4), pane)
    batch, _ = validated(events)
    parts = [*table.apply(batch.pack()), *table.apply(EndOfInput().pack())]
    return ordered(row for part in parts for row in part)


def expected_curves(
    events: Sequence[dict[str, Any]], curves: Any, pane: tuple[int, int] | None = None
) -> list[dict[str, Any]]:
    """Return the points of one table that is given everything at once."""
    table = EvaluatorTable(TableSettings(replace(SETTINGS, curves=curves), SLICES, 4), pane)
    batch, _ = validated(events)
    parts = [*table.apply(batch.pack()), *table.apply(EndOfInput().pack())] if events else []
    return in_order([curves_to_arrow(part.curves) for part in parts])


def in_order(batches: Sequence[pa.RecordBatch]) -> list[dict[str, Any]]:
    return sorted_table(batches, CURVE_SCHEMA, CURVE_ORDER).to_pylist()


def ordered(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=lambda row: (row[0], row[1], row[6] or 0, row[2]))


def run(
    events: Sequence[Any], directory: Path, runner: str = "in process", **changes: Any
) -> list[tuple[Any, ...]]:
    with pipeline(runner) as p:
        result = p | InOrder(events) | transform(**changes)
        result.rows | Keep(directory, "rows")
        result.dead_letters | Keep(directory, "dead")
        result.late | Keep(directory, "late")
    assert kept(directory, "late") == []
    return ordered(row.value for row in kept(directory, "rows"))


@pytest.mark.parametrize(("runner", "cache_bytes"), RUNNERS_AND_CACHES)
def test_rows_are_equal_on_every_runner(runner: str, cache_bytes: int, tmp_path: Path) -> None:
    assert run(EVENTS, tmp_path, runner, cache_bytes=cache_bytes) == expected(EVENTS)
    assert kept(tmp_path, "dead") == []


def test_an_element_with_several_scores_is_an_event_of_each(tmp_path: Path) -> None:
    names = ("score", "other")
    wide = [event | {"other": round(1 - event["score"], 2)} for event in EVENTS]
    long = [
        event | {"model": f"{event['model']}/{name}", "score": event[name]}
        for event in wide
        for name in names
    ]
    assert run(wide, tmp_path, score=[*names]) == expected(long)
    assert kept(tmp_path, "dead") == []


@pytest.mark.slow
@pytest.mark.parametrize(("runner", "cache_bytes"), RUNNERS_AND_CACHES)
def test_curves_are_equal_on_every_runner(
    runner: str, cache_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row comes with every twentieth event, a curve with every ninth: mostly where no row is."""
    monkeypatch.setattr(pack_records, "PACKET_EVENTS", 7)
    with pipeline(runner) as p:
        result = p | InOrder(EVENTS) | transform(curves=EveryEvents(9), cache_bytes=cache_bytes)
        result.curves | Keep(tmp_path, "curves")
        result.rows | Keep(tmp_path, "rows")
        result.batches | Keep(tmp_path, "batches")
    assert in_order([batch.value for batch in kept(tmp_path, "curves")]) == expected_curves(
        EVENTS, EveryEvents(9)
    )
    assert ordered(row.value for row in kept(tmp_path, "rows")) == expected(EVENTS)
    assert all(batch.value.num_rows for batch in kept(tmp_path, "batches"))


@pytest.mark.slow
@pytest.mark.parametrize("runner", EVERY_RUNNER)
def test_two_evaluations_of_one_input_each_end_with_their_last_rows(runner: str, tmp_path: Path) -> None:
    """The in-process runner puts both into one stage, and keeps its timers by their names alone."""
    with pipeline(runner) as p:
        events = p | InOrder(EVENTS)
        for name, k in (("a", 5), ("b", 500)):
            result = events | name >> EvaluateModels(window=LastEvents(k), every=EveryEvents(10**6))
            result.rows | f"keep {name}" >> Keep(tmp_path, name)
    models = {event["model"] for event in EVENTS}
    for name in ("a", "b"):
        assert {MeasureRow(*row.value).model for row in kept(tmp_path, name)} == models


def test_without_curves_there_are_none_and_at_the_end_there_is_one_each(tmp_path: Path) -> None:
    for curves in (None, "end"):
        with pipeline() as p:
            result = p | InOrder(EVENTS) | transform(curves=curves)
            result.curves | Keep(tmp_path, str(curves))
    assert kept(tmp_path, "None") == []
    points = in_order([batch.value for batch in kept(tmp_path, "end")])
    assert points == expected_curves(EVENTS, "end")
    keys = [(point["model"], point["slice"]) for point in points if point["point"] == 0]
    assert keys == sorted({row[:2] for row in expected(EVENTS)})


class Event(NamedTuple):
    model: str
    score: float
    label: int
    when: int
    carrier: str
    origin: str | None


def test_dicts_named_tuples_beam_rows_and_packed_batches_are_the_same_events(
    tmp_path: Path,
) -> None:
    batch, _ = validated(EVENTS[200:])
    mixed = [
        *EVENTS[:100],
        *(Event(**event) for event in EVENTS[100:150]),
        *(beam.Row(**event) for event in EVENTS[150:200]),
        batch.pack(),
    ]
    assert run(mixed, tmp_path) == expected(EVENTS)
    assert kept(tmp_path, "dead") == []


@pytest.mark.slow
@pytest.mark.parametrize(("packet", "shards"), some(itertools.product([1, 7, 100, 10_000], [1, 64, None])))
def test_rows_do_not_depend_on_how_events_are_cut_into_packets_and_shards(
    packet: int, shards: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_records, "PACKET_EVENTS", packet)
    assert run(EVENTS, tmp_path, shards=shards) == expected(EVENTS)


@pytest.mark.parametrize(
    ("runner", "windows"),
    some(itertools.product(["in process", "retrying"], [FixedWindows(100), SlidingWindows(100, 50)])),
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_every_pane_is_evaluated_by_itself(runner: str, windows: Any, tmp_path: Path) -> None:
    """Rows stay in their pane, at the time of their newest event, far outside of the pane's own times."""
    with pipeline(runner) as p:
        times = [(event, place) for place, event in enumerate(EVENTS)]
        events = p | InOrder(times) | beam.MapTuple(TimestampedValue) | beam.WindowInto(windows)
        result = events | transform(curves=EveryEvents(9))
        result.rows | Keep(tmp_path, "rows")
        result.batches | Keep(tmp_path, "batches")
        result.curves | Keep(tmp_path, "curves")
    got = kept(tmp_path, "rows")
    drawn = kept(tmp_path, "curves")
    step = 50 if isinstance(windows, SlidingWindows) else 100
    panes = range(-50 if step == 50 else 0, 300, step)
    for start in panes:
        pane = (start * 1_000_000, (start + 100) * 1_000_000)
        rows = ordered(row.value for row in got if row.pane == (start, start + 100))
        assert rows == expected(EVENTS[max(0, start) : max(0, start + 100)], pane)
        assert all((row[6], row[7]) == pane for row in rows)
        points = in_order([batch.value for batch in drawn if batch.pane == (start, start + 100)])
        applied = EVENTS[max(0, start) : max(0, start + 100)]
        assert points == expected_curves(applied, EveryEvents(9), pane)
        assert points[0]["pane_start"].timestamp() == start
    assert {row.pane for row in got} == {(start, start + 100) for start in panes}
    assert all(row.time == row.value[4] for row in got)
    assert sum(batch.value.num_rows for batch in kept(tmp_path, "batches")) == len(got)


def test_a_pane_ends_with_its_last_rows_while_the_stream_goes_on(tmp_path: Path) -> None:
    stream = (
        test_stream.TestStream()
        .add_elements([TimestampedValue(event, 3) for event in EVENTS[:30]])
        .add_elements([TimestampedValue(event, 5) for event in EVENTS[30:50]])
        .advance_watermark_to(11)
        .add_elements([TimestampedValue(event, 12) for event in EVENTS[50:90]])
        .advance_watermark_to_infinity()
    )
    with pipeline("retrying", "--streaming") as p:
        result = p | stream | beam.WindowInto(FixedWindows(10)) | transform()
        result.rows | Keep(tmp_path, "rows")
    got = ordered(row.value for row in kept(tmp_path, "rows"))
    first, second = (
        expected(EVENTS[:50], (0, 10_000_000)),
        expected(EVENTS[50:90], (10_000_000, 20_000_000)),
    )
    assert got == ordered([*first, *second])


def test_without_times_a_row_has_the_beam_time_of_its_events(tmp_path: Path) -> None:
    with pipeline() as p:
        events = p | InOrder(EVENTS[:40]) | beam.Map(lambda event: TimestampedValue(event, 77))
        result = events | EvaluateModels(every=EveryEvents(5))
        result.rows | Keep(tmp_path, "rows")
    got = kept(tmp_path, "rows")
    due = [row for row in got if MeasureRow(*row.value).seq % 5 == 0]
    assert due
    assert {row.time for row in due} == {77_000_000}


def test_what_is_no_event_is_a_dead_letter_and_the_rest_goes_on(tmp_path: Path) -> None:
    bad: list[Any] = [
        "score=0.5",
        ("m1", {"score": 0.5}),
        None,
        b"RSEBxx",
        7,
        {"model": "m1", "label": 1, "when": 5},
        {"model": None, "score": 0.5, "label": 1, "when": 5},
        {"model": "m1", "score": "high", "label": 1, "when": 5},
        {},
    ]
    mixed = [event for pair in zip(bad, EVENTS, strict=False) for event in pair] + EVENTS[len(bad) :]
    assert run(mixed, tmp_path) == expected(EVENTS)
    letters = [row.value for row in kept(tmp_path, "dead")]
    assert {letter[0] for letter in letters} == {"invalid"}
    assert Counter(letter[1] for letter in letters) == {
        "not a record": 4, "packed batch does not fit": 1, "score is missing": 1, "model is missing": 2,
        "score is not a number": 1,
    }  # fmt: skip
    reasons = [DeadLetter(*letter).detail for letter in letters]
    for words in (
        "'str' is no kind of event; give dicts",
        "'tuple' is no kind of event; give dicts",
        "'NoneType' is no kind of event",
        "'int' is no kind of event",
        "an event batch ends after 6 bytes",
        "score: missing",
        "model: missing",
        "score: 'high' is not a number",
        "or one name for all with model_name=; score: missing; label: missing; time: missing",
    ):
        assert any(words in reason for reason in reasons), (words, reasons)


def test_a_record_without_the_keys_of_others_shows_its_own_alone(tmp_path: Path) -> None:
    bad: list[Any] = [{"p": 0.9, "model": ("a", 1)}, {"score": "deep", "label": 1, "model": "m", "when": 1}]
    with pipeline() as p:  # Beam itself cannot make what is nested so deeply
        result = p | InOrder([bad[0], *EVENTS, bad[1]]) | beam.Map(_deepened) | transform()
        result.rows | Keep(tmp_path, "rows")
        result.dead_letters | Keep(tmp_path, "dead")
    assert ordered(row.value for row in kept(tmp_path, "rows")) == expected(EVENTS)
    raw = sorted(row.value[7] for row in kept(tmp_path, "dead"))
    assert raw == ['{"p": 0.9, "model": ["a", 1]}', '{"score": "...", "label": 1, "model": "m", "when": 1}']


def _deepened(event: Any) -> Any:
    if event.get("score") != "deep":
        return event
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    return {**event, "score": deep}


SOME = EventBatch(
    models=TextColumn.of(["m1", "m2"]),
    scores=np.array([0.25, 1.5]),
    labels=np.array([1, 0], np.int8),
    times=np.array([1, 2]),
    slices=(("origin", TextColumn.of(["JFK", None])), ("carrier", TextColumn.of(["UA", "AA"]))),
)
CLASSES = replace(SOME, label_classes=TextColumn.of(["1", "x"]), predicted=TextColumn.of(["x", "x"]))


@pytest.mark.parametrize(
    ("batch", "settings", "words"),
    [
        (replace(SOME, slices=SOME.slices[:1]), {}, "it has no slice column 'carrier'; give JoinLabels, or"),
        (replace(SOME, slices=SOME.slices * 2), {}, "it has 2 times the slice column 'carrier'"),
        (replace(SOME, weights=np.ones(2)), {}, "it has weights"),
        (replace(SOME, times=None), {}, "it has no times, and time= is given"),
        (replace(SOME, times=np.array([1, NO_TIME])), {}, "a time that is missing"),
        (SOME, {"probabilities": True}, "a score that is no probability"),
        (SOME, {"predicted": "p"}, "it has no predicted classes, and predicted= is given"),
        (CLASSES, {}, "it has predicted classes; say so with predicted="),
        (CLASSES, {"predicted": "p"}, "labels are not what its classes say where no class is said to be"),
        (
            CLASSES,
            {"predicted": "p", "positive": "x"},
            "labels are not what its classes say where positive='x'",
        ),
        (replace(SOME, models=TextColumn.of(["m", "\ud800"])), {}, "in models is not UTF-8"),
        (replace(SOME, models=TextColumn.of(["m", ""])), {}, "models is the empty text"),
        (
            replace(CLASSES, predicted=TextColumn.of(["1.0", "x"])),
            {"predicted": "p", "positive": 1},
            "the class '1.0' is spelled '1' here",
        ),
    ],
)
def test_packed_events_that_do_not_fit_the_settings_are_one_dead_letter(
    batch: EventBatch, settings: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pipeline() as p:
        result = p | InOrder([batch.pack()]) | transform(**settings)
        result.rows | Keep(tmp_path, "rows")
        result.dead_letters | Keep(tmp_path, "dead")
    assert kept(tmp_path, "rows") == []
    (letter,) = (DeadLetter(*row.value) for row in kept(tmp_path, "dead"))
    assert letter.reason == "packed batch does not fit"
    assert letter.detail is not None
    assert letter.detail.startswith("a packed batch of events does not fit the settings: ")
    assert words in letter.detail


def test_of_packed_events_only_what_is_asked_for_counts(tmp_path: Path) -> None:
    extra = replace(SOME, ids=IdColumn.of(["a", "b"]), source="\ud800", head=PacketHead(sequence=5))
    with pipeline() as p:
        result = p | InOrder([extra.pack()]) | transform(time=None, slices=())
        result.rows | Keep(tmp_path, "rows")
        result.dead_letters | Keep(tmp_path, "dead")
    assert kept(tmp_path, "dead") == []
    assert sorted(row.value[:2] for row in kept(tmp_path, "rows")) == [("m1", ""), ("m2", "")]
    assert all(row.value[4] is None for row in kept(tmp_path, "rows"))


@pytest.mark.parametrize("shards", [None, 1, 4])
def test_a_model_that_a_packed_dictionary_names_twice_keeps_its_order(
    shards: int | None, tmp_path: Path
) -> None:
    column = TextColumn(np.array([1, 0, 1, 0], np.int32), ("a", "a"))
    batch = EventBatch(column, np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1], np.int8))
    with pipeline() as p:
        result = (
            p
            | InOrder([batch.pack()])
            | EvaluateModels(model="model", window=LastEvents(2), every=EveryEvents(1), shards=shards)
        )
        result.rows | Keep(tmp_path, "rows")
    rows = sorted((MeasureRow(*row.value) for row in kept(tmp_path, "rows")), key=lambda row: row.seq)
    assert [(row.seq, row.positives) for row in rows] == [(1, 0.0), (2, 1.0), (3, 1.0), (4, 1.0)]


def test_late_and_dead_letters_and_rows_are_typed() -> None:
    p = beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
    result = p | InOrder(EVENTS) | transform()
    assert result.rows.element_type is MeasureRow
    assert result.dead_letters.element_type is result.late.element_type is result.duplicates.element_type
    assert [name for name, _ in zip(result._fields, result, strict=True)] == [
        "rows",
        "batches",
        "dead_letters",
        "late",
        "curves",
        "duplicates",
    ]
    assert result.curves.element_type is result.batches.element_type


def test_windows_that_merge_are_refused_in_a_sentence() -> None:
    p = beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
    events = p | InOrder(EVENTS) | beam.WindowInto(Sessions(10))
    with pytest.raises(ConfigError, match=r"^EvaluateModels: the input is in Sessions"):
        events | transform()


def test_something_else_than_a_pcollection_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="is applied to a PBegin; apply it to one PCollection"):
        (beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner") | transform())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"score": ""}, "score=''"),
        ({"shards": 0}, "shards=0"),
        (
            {"window": LastDuration("7d"), "time": None},
            "window last:7d goes by event time; name the field of times with",
        ),
        ({"every": EverySeconds("1h"), "time": None}, "every 1h goes by event time"),
        (
            {"window": Adaptive(), "predicted": "guess"},
            "window adaptive:0.002:placement: with predicted= labels are classes",
        ),
        ({"cache_bytes": -5}, "cache_bytes=-5"),
        ({"model": "m", "model_name": "n"}, "give one of them"),
        ({"threshold": "x"}, "threshold='x'"),
        ({"window": 100}, "window=100"),
        ({"time_unit": "h"}, "time_unit='h'"),
        ({"measures": ("aoc",)}, "'aoc' is not known"),
        ({"curves": 0}, "curves=0: give EveryEvents"),
        ({"curves_points": "few"}, "curves_points='few': give 'thinned'"),
        ({"curves": "end", "predicted": "p"}, "with predicted='p' labels are classes.*positive="),
        ({"slices": (("a", "a"),)}, "names a column twice"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_when_it_is_made(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        transform(**wrong)


def test_settings_may_be_given_as_a_whole_with_others_beside_them() -> None:
    settings = EvaluatorSettings(threshold=0.25, at_fpr=0.1, positive="yes")
    made = EvaluateModels(settings=settings, at_fpr=0.2, shards=None, window=None)._settings
    assert made == TableSettings(replace(settings, at_fpr=0.2))


def test_columns_of_an_event_are_keywords() -> None:
    columns = {field.name for field in fields(EventFields)}
    of_classes = {"class_scores", "class_names", "class_labels"}
    others = {"probabilities", "features", "classes", "scores", *of_classes}
    assert EventColumns.__annotations__.keys() == columns - others
    with pytest.raises(TypeError, match=r"EvaluateModels.__init__\(\) got an unexpected .* 'features'"):
        EvaluateModels(features=("x",))  # type: ignore[call-arg]


def test_columns_have_the_names_that_the_user_gives(tmp_path: Path) -> None:
    renamed = [
        {"p": event["score"], "y": "yes" if event["label"] else "no", "t": event["when"] * 1000}
        for event in EVENTS
    ]
    one = [{**event, "model": "churn"} for event in EVENTS]
    with pipeline() as p:
        result = (
            p
            | InOrder(renamed)
            | transform(
                score="p",
                label="y",
                positive="yes",
                time="t",
                time_unit="ms",
                model_name="churn",
                slices=(),
            )
        )
        result.rows | Keep(tmp_path, "rows")
    got = ordered(row.value for row in kept(tmp_path, "rows"))
    assert got == [row for row in expected(one) if row[1] == ""]


def test_rows_between_stages_are_what_they_were() -> None:
    table = EvaluatorTable(TableSettings(SETTINGS, SLICES, 4))
    batch, _ = validated(EVENTS)
    assert isinstance(EventBatch.unpack(batch.pack()), EventBatch)
    (rows,) = table.apply(batch.pack())
    coder = RowsCoder()
    again = coder.decode(coder.encode(rows))
    assert list(again) == list(rows)
    assert coder.encode(again) == coder.encode(rows)
    assert len(coder.decode(coder.encode(Rows.empty("abc")))) == 0
    json.dumps([row._asdict() for row in again])
