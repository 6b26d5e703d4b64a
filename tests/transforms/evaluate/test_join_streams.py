"""JoinLabels finds what all pairs say: labels before, after, twice, never, too late, for the wrong id."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import pytest
import rocsteady as rs
from apache_beam.transforms.window import FixedWindows, Sessions
from rocsteady.core.errors import ConfigError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.rejected import Rejected
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.join.matching_steps import ORPHAN, SECOND, USED
from rocsteady.core.rows.records import MeasureRow
from rocsteady.transforms.evaluate.join_labels import JoinFactory
from rocsteady.transforms.events.dead_letters import DeadLetter
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.sources.pack_records import PackRecords

from tests.support.oracles.labels import Label, Prediction, Truth, matched
from tests.support.processes.beam_runs import PROCESSES, RUNNERS, InOrder, Keep, kept, pipeline
from tests.support.processes.failing_dofn import FailingMachines, FailsBetween, Failures
from tests.support.streams.beam_streams import Stream, played
from tests.support.streams.partitions import SECOND as S
from tests.support.streams.partitions import Event, identity, rows_in_time

IDS = ["a", "A", " ", "é", "n" * 10_000, *"bcdefg"]
OUTPUTS = ("unmatched", "duplicates", "late", "dead_letters")


class Traffic(NamedTuple):
    """Predictions of two models and labels, by the same ids; a handle is a place in the list."""

    predictions: list[Prediction]
    labels: list[Label]

    def elements(self) -> list[tuple[int, dict[str, Any]]]:
        """Return every record with its event time; a prediction's score is its handle."""
        return [
            *((each.time, self.prediction(each)) for each in self.predictions),
            *((each.time, {"id": each.id, "label": each.tie, "known": each.time}) for each in self.labels),
        ]

    @staticmethod
    def prediction(each: Prediction) -> dict[str, Any]:
        return {"id": each.id, "made": each.time, "score": each.handle, "model": "mn"[each.handle % 2]}


def some_traffic(rng: random.Random, n: int = 40, span: int = 60, *, own_ids: bool = False) -> Traffic:
    """Return predictions, and labels for most: before, after, twice, too late, or of an id of nobody."""
    predictions = [
        Prediction(f"{handle}" if own_ids else rng.choice(IDS), rng.randrange(span) * S, handle)
        for handle in range(n)
    ]
    labels: list[tuple[str, int, int]] = []
    for each in predictions:
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            time = each.time + rng.choice((rng.randint(-15, 0), rng.randint(0, 15), rng.randint(0, 9))) * S
            labels.append((rng.choice([each.id] * 9 + ["nobody's"]), time, rng.randint(0, 1)))
    labels += rng.sample(labels, 5)  # some come again
    return Traffic(predictions, [Label(*label, handle) for handle, label in enumerate(labels)])


def truth_of(traffic: Traffic, ttl: int, lead: int, second: str) -> Truth:
    return matched(traffic.predictions, traffic.labels, ttl * S, lead * S, second)


def join(second: str = "first", lead: int | None = None, **more: Any) -> rs.JoinLabels:
    columns: dict[str, Any] = {"id": "id", "time": "made", "label_time": "known", "model": "model"}
    columns |= {"time_unit": "us", "ttl": 10, "shards": 3, "label_lead": lead}
    return rs.JoinLabels(second_label=second, **{**columns, **more})  # type: ignore[arg-type]


def keep_all(result: Any, folder: Path) -> None:
    result.events | Keep(folder, "events")
    for name in OUTPUTS:
        getattr(result, name) | f"one {name}" >> Keep(folder, name)


def joined(folder: Path) -> dict[int, tuple[str | None, int, int]]:
    """Return of every joined prediction its id, and its label's time and label."""
    found: dict[int, tuple[str | None, int, int]] = {}
    for packet in kept(folder, "events"):
        batch = EventBatch.unpack(packet.value)
        assert batch.ids is not None
        assert batch.times is not None
        columns = (batch.scores, batch.ids.to_list(), batch.times.tolist(), batch.labels.tolist())
        for score, *event in zip(*columns, strict=True):
            assert found.setdefault(int(score), tuple(event)) == tuple(event)  # type: ignore[arg-type]
    return found


def letters(folder: Path, name: str) -> list[DeadLetter]:
    return [DeadLetter(*letter.value) for letter in kept(folder, name)]


def check(folder: Path, traffic: Traffic, truth: Truth, second: str = "first") -> None:
    """Compare all that left with the truth: every record is in one output."""
    assert joined(folder) == {handle: what for handle, what in truth.label_of.items() if what is not None}
    assert not letters(folder, "late")
    unmatched = letters(folder, "unmatched")
    alone = Counter(
        (each.id, each.time) for each in traffic.predictions if truth.label_of[each.handle] is None
    )
    assert Counter((each.id, each.time) for each in unmatched if each.model) == alone
    orphans = Counter(what[:2] for what, fate in truth.fate_of.items() if fate == ORPHAN)
    assert Counter((each.id, each.time) for each in unmatched if not each.model) == orphans
    seconds = Counter(what[:2] for what, fate in truth.fate_of.items() if fate == SECOND)
    repeats = Counter((each.id, each.time) for each in traffic.labels) - Counter(
        what[:2] for what in truth.fate_of
    )
    found = {name: Counter((each.id, each.time) for each in letters(folder, name)) for name in OUTPUTS[1::2]}
    if second == "dead-letter":
        assert found == {"duplicates": repeats, "dead_letters": seconds}
    else:
        assert found == {"duplicates": repeats + seconds, "dead_letters": Counter()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("second", "lead"),
    [("first", None), ("first", 0), ("last", 4), ("dead-letter", None)],
)
def test_a_mixed_stream_is_joined_as_all_pairs_say(second: str, lead: int | None, tmp_path: Path) -> None:
    rng = random.Random(f"{second} {lead}")
    traffic = some_traffic(rng)
    truth = truth_of(traffic, 10, 10 if lead is None else lead, second)
    assert {USED, ORPHAN, SECOND} == {*truth.fate_of.values()}
    elements = traffic.elements()
    rng.shuffle(elements)
    elements.sort(key=lambda element: element[0] + rng.randint(0, 30 * S))  # a watermark knows how late
    with pipeline("retrying", "--streaming") as p:
        keep_all(p | played(elements, rng) | join(second, lead), tmp_path)
    check(tmp_path, traffic, truth, second)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["predictions", "labels"])
def test_one_side_may_come_wholly_before_the_other(first: str, tmp_path: Path) -> None:
    """Two PCollections: while the watermark of one stays, nothing of the other is given up."""
    rng = random.Random(first)
    traffic = some_traffic(rng)
    sides = [
        [element for element in traffic.elements() if ("made" in element[1]) == side]
        for side in ((True, False) if first == "predictions" else (False, True))
    ]
    stream = Stream().watermark(-60 * S).then(*sides[0]).watermark(-50 * S).then(*sides[1])
    with pipeline("retrying", "--streaming") as p:
        labels, predictions = p | stream.end() | beam.Partition(lambda each, _: int("made" in each), 2)
        keep_all((predictions, labels) | join(), tmp_path)
    check(tmp_path, traffic, truth_of(traffic, 10, 10, "first"))


@pytest.mark.parametrize("runner", [runner for runner in RUNNERS if runner != "processes"])
def test_a_bounded_input_is_joined_on_every_runner(runner: str, tmp_path: Path) -> None:
    rng = random.Random(3)
    traffic = some_traffic(rng)
    records = [record for _, record in traffic.elements()]
    rng.shuffle(records)
    with pipeline(runner) as p:
        sides = [[each for each in records if (name in each)] for name in ("made", "known")]
        keep_all(
            tuple(p | name >> InOrder(side) for name, side in zip("pl", sides, strict=True)) | join(),
            tmp_path,
        )
    check(tmp_path, traffic, truth_of(traffic, 10, 10, "first"))


def expected_rows(traffic: Traffic, truth: Truth, order: str) -> list[MeasureRow]:
    """Return the rows of the stream that is joined already, in order of its labels' times."""
    events = [
        Event(what[1], what[0], "mn"[handle % 2], float(handle), what[2])
        for handle, what in truth.label_of.items()
        if what is not None
    ]
    settings = rs.EvaluatorSettings(window=rs.LastEvents(9), every=rs.EveryEvents(1), order=order)
    return rows_in_time(settings, events, one_clock=False)


def evaluated(events: Any, order: str, folder: Path) -> None:
    columns: dict[str, Any] = {"time": "made", "time_unit": "us", "id": "id", "model": "model", "shards": 2}
    result = events | rs.EvaluateModels(
        window=rs.LastEvents(9), every=rs.EveryEvents(1), order=order, clock="runner", **columns
    )
    result.rows | "kept rows" >> Keep(folder, "rows")
    result.late | "kept late" >> Keep(folder, "late events")


@pytest.mark.slow
@pytest.mark.parametrize(("second", "lead", "lateness"), [("first", None, 7), ("last", 3, 0)])
def test_in_the_order_that_it_names_no_joined_event_is_late(
    second: str, lead: int | None, lateness: int, tmp_path: Path
) -> None:
    """The watermark goes on in small steps: this runner does not hold it for what timers will put out."""
    rng = random.Random(f"{second} {lead}")
    traffic = some_traffic(rng, own_ids=True)
    elements = sorted(traffic.elements(), key=lambda element: element[0] + rng.randint(0, lateness) * S)
    stream = Stream().watermark(-60 * S)
    for moment in range(-20, 120, 4):
        now = [each for each in elements if each[0] < moment * S]
        elements = [each for each in elements if each[0] >= moment * S]
        stream = (stream.then(*now) if now else stream).watermark((moment - 1) * S)
    transform = join(second, lead, lateness=f"{lateness}s")
    with pipeline("retrying", "--streaming") as p:
        result = p | stream.end() | transform
        evaluated(result.events, transform.order, tmp_path)
    truth = truth_of(traffic, 10, 10 if lead is None else lead, second)
    assert not kept(tmp_path, "late events")
    rows = sorted((MeasureRow(*row.value) for row in kept(tmp_path, "rows")), key=identity)
    assert rows == expected_rows(traffic, truth, transform.order)
    assert len(rows) > 15


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["in process", PROCESSES, "portable"])
def test_rows_behind_a_join_are_those_of_the_joined_stream(runner: str, tmp_path: Path) -> None:
    rng = random.Random(5)
    traffic = some_traffic(rng, own_ids=True)
    records = [record for _, record in traffic.elements()]
    rng.shuffle(records)
    with pipeline(runner) as p:
        result = p | InOrder(records) | join()
        keep_all(result, tmp_path)
        evaluated(result.events, join().order, tmp_path)
    truth = truth_of(traffic, 10, 10, "first")
    check(tmp_path, traffic, truth)
    assert not kept(tmp_path, "late events")
    rows = sorted((MeasureRow(*row.value) for row in kept(tmp_path, "rows")), key=identity)
    assert rows == expected_rows(traffic, truth, join().order)


def test_what_is_behind_the_clock_of_the_join_is_late_by_how_much(tmp_path: Path) -> None:
    prediction = {"id": "a", "made": 30 * S, "score": 0.5, "model": "m"}
    stream = (
        Stream()
        .then((30 * S, prediction))
        .watermark(40 * S)
        .then((20 * S, {**prediction, "id": "b", "made": 20 * S}))
        .then(*((time * S, {"id": "a", "label": 1, "known": time * S}) for time in (12, 31, 39)))
    )
    with pipeline("retrying", "--streaming") as p:
        keep_all(p | stream.end() | join(), tmp_path)
    late = sorted((letter.detail, letter.id, letter.model) for letter in letters(tmp_path, "late"))
    assert late == [
        ("18s 750ms behind the clock of the join", "b", "m"),
        ("26s 750ms behind the clock of the join", "a", None),
        ("7s 750ms behind the clock of the join", "a", None),
    ], "the clock goes on by eighths of ttl behind the last of 30 s"
    assert joined(tmp_path) == {0: ("a", 39 * S, 1)}


def test_a_label_serves_every_score_of_its_prediction(tmp_path: Path) -> None:
    records = [
        {"id": "i", "made": 1 * S, "model": "m", "a": None, "b": 0.25},
        {"id": "j", "made": 2 * S, "model": "m", "a": 0.5, "b": 0.75},
        *({"id": name, "known": 3 * S, "label": 1} for name in "ij"),
    ]
    with pipeline() as p:
        keep_all(p | InOrder(records) | join(score=["a", "b"]), tmp_path)
    batches = [EventBatch.unpack(packet.value) for packet in kept(tmp_path, "events")]
    events = [event for each in batches for event in zip(each.models.to_list(), each.scores, strict=True)]
    assert sorted(events) == [("m/a", 0.5), ("m/b", 0.25), ("m/b", 0.75)]
    (letter,) = letters(tmp_path, "dead_letters")
    assert (letter.model, letter.field, letter.reason) == ("m/a", "a", "score is missing")


def test_what_is_neither_prediction_nor_label_is_a_dead_letter(tmp_path: Path) -> None:
    good: list[Any] = [
        {"id": "a", "made": 1, "score": 0.5, "model": "m"}, {"id": "a", "known": 2, "label": 0},
        {"id": "b", "made": 1, "known": 2, "score": 1.5, "model": "m", "label": 1},  # both at once
    ]  # fmt: skip
    bad: list[Any] = [
        {"id": None, "made": 1, "score": 0.5, "model": "m"}, {"id": "", "known": 1, "label": 1},
        {"id": "c", "known": "soon", "label": 1},
        {"id": "d", "known": 1, "label": "maybe"}, {"id": "e", "made": 1, "score": "high", "model": "m"}, 7,
    ]  # fmt: skip
    with pipeline() as p:
        keep_all(p | InOrder([*bad, *good]) | join(), tmp_path)
    assert joined(tmp_path) == {0: ("a", 2, 0), 1: ("b", 2, 1)}
    reasons = sorted(letter.detail for letter in letters(tmp_path, "dead_letters"))
    assert len(reasons) == len(bad)
    for words in (
        "'int' is no kind of record",
        "id: missing",
        "label: 'maybe'",
        "score: 'high'",
        "time: 'soon'",
    ):
        assert any(words in reason for reason in reasons), (words, reasons)


@pytest.mark.parametrize(
    ("windows", "name"), [(FixedWindows(10), "FixedWindows"), (Sessions(10), "Sessions")]
)
def test_input_in_windows_is_refused_in_a_sentence(windows: Any, name: str) -> None:
    p = beam.Pipeline(runner="FnApiRunner")
    labels = p | "labels" >> beam.Create([{}])
    predictions = p | "predictions" >> beam.Create([{}]) | beam.WindowInto(windows)
    with pytest.raises(ConfigError, match=f"in {name}, .* join first, and put the events into windows"):
        (predictions, labels) | join()
    with pytest.raises(ConfigError, match=f"in {name}"):
        predictions | "mixed" >> join()


def test_something_else_than_one_or_two_pcollections_is_refused() -> None:
    p = beam.Pipeline(runner="FnApiRunner")
    one: Any = p | beam.Create([{}])
    for wrong in (p, (one, one, one), (one, 3), ()):
        with pytest.raises((ConfigError, TypeError), match="apply it to a pair"):
            join().expand(wrong)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a lead that is longer": ({"label_lead": "11s"}, "label_lead='11s' is longer than ttl='10s'"),
    "nonsense": ({"ttl": "soon"}, "ttl.*'soon'"),
    "no time": ({"ttl": 0}, "ttl"),
    "another label": ({"second_label": "both"}, "second_label='both': give 'first', 'last' or 'dead-letter'"),
    "no shards": ({"shards": 0}, "shards=0: give a whole number, 1 or more"),
    "a lateness": ({"lateness": "-1s"}, "lateness"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_setting_that_cannot_be_is_refused_when_it_is_made(kind: str) -> None:
    wrong, sentence = MISTAKES[kind]
    arguments: dict[str, Any] = {"id": "id", "time": "t", "ttl": "10s", **wrong}
    with pytest.raises(ConfigError, match=sentence):
        rs.JoinLabels(**arguments)


@pytest.mark.slow
@pytest.mark.parametrize("second", ["first", "last"])
def test_nothing_differs_where_bundles_fail_before_inside_and_behind_the_join(
    second: str, tmp_path: Path
) -> None:
    rng = random.Random(second)
    traffic = some_traffic(rng)
    elements = sorted(traffic.elements(), key=lambda element: element[0] + rng.randint(0, 9 * S))
    fields = EventFields(id="id", time="made", time_unit="us", model="model")
    settings = JoinSettings(10 * S, None, second, 2, 2)
    pack: Any = PackRecords(fields, 2, "", None, "known", waited_for=True)
    before = Failures.raised
    with pipeline("retrying", "--streaming") as p:
        records = p | played(elements, rng, jumps=0.9) | beam.ParDo(FailsBetween())
        packets = records | beam.ParDo(pack).with_output_types(tuple[str, bytes])
        machines = FailingMachines(JoinFactory(settings), "step", letters=None, lateness=0)
        outputs = packets | beam.ParDo(machines).with_output_types(Any)
        outputs | "behind" >> beam.ParDo(FailsBetween()) | Keep(tmp_path, "outputs")
    assert Failures.raised - before > 20
    truth = truth_of(traffic, 10, 10, second)
    found: dict[int, Any] = {}
    left: Counter[str] = Counter()
    for output in kept(tmp_path, "outputs"):
        if isinstance(output.value, Rejected):
            left[output.value.kind] += len(output.value)
        elif output.value[1][:4] == b"RSEB":
            batch = EventBatch.unpack(output.value[1])
            assert batch.ids is not None
            assert batch.times is not None
            for score, *event in zip(
                batch.scores, batch.ids.to_list(), batch.times.tolist(), batch.labels.tolist(), strict=True
            ):
                assert int(score) not in found
                found[int(score)] = tuple(event)
    assert found == {handle: what for handle, what in truth.label_of.items() if what is not None}
    fates = Counter(truth.fate_of.values())
    repeats = len(traffic.labels) - len(truth.fate_of)
    alone = sum(what is None for what in truth.label_of.values())
    assert left == {"unmatched": alone + fates[ORPHAN], "duplicate": fates[SECOND] + repeats}
