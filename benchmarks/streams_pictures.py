"""The pictures of docs/concepts/streams.md, drawn of what the code does.

python -m benchmarks.streams_pictures [FOLDER]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from rocsteady.core.events.batch import EventBatch, LabelBatch, PredictionBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfInput, EndOfPartition, Heartbeat
from rocsteady.core.events.rejected import Rejected
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.join.join import LabelJoin
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.rows.records import MeasureRow
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import EveryEvents, LastEvents
from rocsteady.core.shard.orders import TimeOrder
from rocsteady.core.table.table import EvaluatorTable
from rocsteady.transforms.events.dead_letters import NO_LETTERS, Chunk
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import Timing
from rocsteady.transforms.events.validate import validate_as

from .svg import BLUE, DARK, GREEN, GREY, ORANGE, RED, Picture, steps, write

MINUTE, HOUR = 60_000_000, 3_600_000_000
# ---- order: two partitions, and the clock of a shard

COMES = [
    ("A", 2), ("B", 1), ("A", 5), ("A", 3), ("B", 4), ("A", 8), ("A", 7), ("A", 10), ("A", 9), ("A", 12),
    ("B", 6), ("B", 11), ("A", 14), ("B", 13), ("A", 16), ("B", 15),
]  # fmt: skip
"""Of which partition an event comes, and its time in minutes."""
ALLOWED = 2


def order() -> Picture:
    """Feed a `TimeOrder` event by event; draw what waits, and what the clock says."""
    machine, sent, high = TimeOrder(), {"A": 0, "B": 0}, {"A": -99, "B": -99}
    settled: dict[str, list[tuple[float, float]]] = {"A": [], "B": []}
    clock: list[tuple[float, float]] = []
    applied: dict[int, int] = {}

    def take(record: EventBatch | Heartbeat | EndOfPartition, step: int) -> None:
        for given in machine.receive(record, record.pack()):
            if isinstance(given, Rejected) or given.times is None:
                raise AssertionError("nothing is late here")
            applied.update(dict.fromkeys((given.times // MINUTE).tolist(), step))

    for step, (name, minute) in enumerate(COMES):
        number, high[name] = "AB".index(name), max(high[name], minute)
        one = EventBatch(
            TextColumn.of(["m"]), np.zeros(1), np.zeros(1, np.int8), np.array([minute * MINUTE]),
            source=name, head=PacketHead(number, sent[name]),
        )  # fmt: skip
        take(one, step)
        sent[name] += 1
        take(Heartbeat(name, number, 2, sent[name], (high[name] - ALLOWED) * MINUTE), step)
        settled[name].append((step, high[name] - ALLOWED))
        if len(clock) or machine.clock > -99 * MINUTE:
            clock.append((step, machine.clock / MINUTE))
    for name in "AB":
        take(EndOfPartition(name, "AB".index(name), 2, sent[name], high[name] * MINUTE), len(COMES))

    picture = Picture(
        "Events wait until the clock, the least of what two partitions are settled up to, has passed them",
        680,
        360,
        "Events of two partitions over arrival and event time. A bar behind an event shows how long it "
        "waits. While partition B is silent, the clock stands, and events of partition A wait.",
    )
    across, up = (lambda step: 60 + 34 * step), (lambda minute: 312 - 16.5 * minute)
    picture.line([(45, 20), (45, 335), (650, 335)], GREY, 1)
    picture.text(50, 18, "event time", GREY)
    picture.text(650, 351, "arrival at a shard", GREY, "end")
    end = len(COMES)
    picture.line(steps([(across(x), up(y)) for x, y in clock], across(end)), "#bbb", 7)
    for name, colour in (("A", BLUE), ("B", ORANGE)):
        points = [(across(x), up(y)) for x, y in settled[name]]
        picture.line(steps(points, across(end)), colour, 1.4, "5 3")
    for step, (name, minute) in enumerate(COMES):
        colour = BLUE if name == "A" else ORANGE
        picture.box(across(step), up(minute) - 2.5, across(applied[minute]) - across(step), 5, colour, 0.3)
        picture.dot(across(step), up(minute), colour)
    low = up(clock[6][1])
    picture.text(across(6), low + 16, "B is silent: the clock stands, and what")
    picture.text(across(6), low + 31, "A has sent waits, though A is far ahead")
    picture.text(across(0.2), 40, "partition A", BLUE)
    picture.text(across(0.2), 56, "partition B", ORANGE)
    picture.text(across(0.2), 76, f"dashed: settled up to, its high-water less {ALLOWED} minutes", GREY)
    picture.text(across(0.2), 92, "grey: the clock of the shard, the least of both", GREY)
    picture.text(across(0.2), 108, "bar: an event waits until the clock has passed it", GREY)
    picture.text(across(end) + 4, 328, "both end", GREY, "middle")
    return picture


# ---- lateness: each partition by its own high water

MINUTES = {
    "A": [0, 6, 14, 11, 20, 28, 9, 31, 29, 38, 27, 42],
    "B": [1, 4, 3, 8, 9, 12, 10, 15, 7, 17, 19, 8],
}
LATENESS = 10


def lateness() -> Picture:
    """Validate the records of two files; draw the high water of each, and what was late."""
    picture = Picture(
        "An event is late by the greatest time before it in its own partition",
        680,
        320,
        "Events of two files over their place and their time. A line follows the greatest time so far, and a "
        "second line runs ten minutes below. Events below the second line of their own file are late.",
    )
    for panel, (name, minutes) in enumerate(MINUTES.items()):
        n, left = len(minutes), 40 + 330 * panel
        batch = pa.RecordBatch.from_pydict(
            {
                "model": ["m"] * n,
                "score": [0.5] * n,
                "label": [1] * n,
                "t": pa.array([minute * MINUTE for minute in minutes], pa.timestamp("us", "UTC")),
            }
        )
        _, letters = validate_as(
            "event", Chunk(0, batch, None, NO_LETTERS), EventFields(time="t"), name, panel,
            Timing(lateness=LATENESS * MINUTE),
        )  # fmt: skip
        late = dict(
            zip(
                letters.batch.column("position").to_pylist(),
                letters.batch.column("detail").to_pylist(),
                strict=True,
            )
        )
        across, up = (lambda place, left=left: left + 18 + 23 * place), (lambda minute: 285 - 4.8 * minute)
        high = np.maximum.accumulate(minutes).tolist()
        picture.line([(left, 40), (left, 295), (left + 295, 295)], GREY, 1)
        picture.text(left, 30, f"partition {name}", BLUE if name == "A" else ORANGE)
        picture.text(left + 295, 311, "place in the file", GREY, "end")
        picture.line(steps([(across(i), up(y)) for i, y in enumerate(high)], across(n)), GREY, 1.5)
        allowed = [(across(i + 1), up(y - LATENESS)) for i, y in enumerate(high[:-1]) if y >= LATENESS]
        picture.line(steps(allowed, across(n)), RED, 1.2, "5 3")
        for place, minute in enumerate(minutes):
            is_late = place in late
            picture.dot(across(place), up(minute), RED if is_late else BLUE if name == "A" else ORANGE)
            if is_late:
                behind = late[place].partition(" behind")[0]
                picture.text(across(place) + 22, up(minute) + 19, f"late: {behind} behind", RED, "end")
    picture.text(382, 56, "Held against A, most of these would be late.")
    picture.text(382, 71, "In its own file only the last is.")
    picture.text(52, 56, "grey: high-water, the greatest time so far", GREY)
    picture.text(52, 71, f"dashed: {LATENESS} minutes below, for the next event", RED)
    return picture


# ---- the join

JOINED: dict[str, tuple[list[tuple[str, float]], list[float]]] = {
    "a": ([("m", 1.0)], [2.4]),
    "b": ([("m", 1.2), ("n", 3.0)], [3.8]),
    "c": ([("m", 2.0)], [3.2, 4.4]),
    "d": ([("m", 2.6)], [2.0]),
    "e": ([("m", 2.2)], [6.2]),
    "f": ([("m", 4.4)], []),
    "g": ([], [4.8]),
}
"""By id: models that predicted it and when, and when labels came; in hours."""
TTL, LEAD = 3, 1


def join() -> Picture:
    """Feed a `LabelJoin` both sides; draw what became of each record."""
    machine = LabelJoin(JoinSettings.of(f"{TTL}h", f"{LEAD}h", evaluator_shards=1), 0)
    made = [(id_, model, hour) for id_, (predictions, _) in JOINED.items() for model, hour in predictions]
    known = [(id_, hour) for id_, (_, labels) in JOINED.items() for hour in labels]
    predictions = PredictionBatch.of(
        models=TextColumn.of([model for _, model, _ in made]),
        scores=np.full(len(made), 0.5),
        ids=IdColumn.of([id_ for id_, *_ in made]),
        times=np.array([round(hour * HOUR) for *_, hour in made]),
    )
    labels = LabelBatch(
        IdColumn.of([id_ for id_, _ in known]),
        np.array([round(hour * HOUR) for _, hour in known]),
        np.ones(len(known), np.int8),
    )
    joined: dict[str, list[tuple[str, float]]] = {}
    refused: dict[str, list[tuple[bool, float, str]]] = {}
    for record in (predictions, labels, EndOfInput()):
        for output in machine.apply(record.pack()):
            if isinstance(output, Rejected):
                times, ids = output.records.times, output.records.ids
                if times is None or ids is None:
                    raise AssertionError("records of a join have ids and times")
                for id_, time in zip(ids.to_list(), times.tolist(), strict=True):
                    refused.setdefault(str(id_), []).append((output.unlabelled, time / HOUR, output.kind))
            elif output[1].startswith(b"RSEB"):
                events = EventBatch.unpack(output[1])
                if events.times is None or events.ids is None:
                    raise AssertionError("joined events have ids and times")
                for id_, model, time in zip(
                    events.ids.to_list(), events.models.to_list(), events.times.tolist(), strict=True
                ):
                    joined.setdefault(str(id_), []).append((str(model), time / HOUR))

    picture = Picture(
        "What becomes of predictions and labels",
        720,
        390,
        "A line for each id, over time. Dots are predictions and diamonds are labels; lines join each label "
        "to the predictions that it serves. Words at the right say what became of them.",
    )
    across = lambda hour: 60 + 55 * hour  # noqa: E731
    for index, (id_, (its_predictions, its_labels)) in enumerate(JOINED.items()):
        y = 50 + 42 * index
        picture.text(30, y + 4, id_)
        matched = dict(joined.get(id_, []))
        left = {(is_prediction, round(hour, 6)): kind for is_prediction, hour, kind in refused.get(id_, [])}
        for row, (model, hour) in enumerate(its_predictions):
            at = y - 8 * (len(its_predictions) - 1) + 16 * row
            colour = BLUE if model in matched else RED
            picture.box(across(hour - LEAD), at - 6, across(TTL + LEAD) - across(0), 12, BLUE)
            if model in matched:
                picture.line([(across(hour), at), (across(matched[model]), y)], GREEN, 2)
            picture.dot(across(hour), at, colour)
        for hour in its_labels:
            picture.diamond(across(hour), y, RED if (False, round(hour, 6)) in left else GREEN)
        words = (
            [f"{len(matched)} event{'s' * (len(matched) > 1)} at {max(matched.values()):g}h"]
            if matched
            else []
        )
        for kind in sorted({*left.values()}):
            whose = sorted({is_prediction for (is_prediction, _), its in left.items() if its == kind})
            names = " and ".join("prediction" if each else "label" for each in reversed(whose))
            words.append(f"{names} {kind}")
        picture.text(500, y + 4, ", ".join(words), GREEN if not left else RED if not matched else DARK)
    foot = 50 + 42 * len(JOINED) - 6
    picture.line([(50, foot), (across(7.5), foot)], GREY, 1)
    for hour in range(8):
        picture.text(across(hour), foot + 16, f"{hour}h", GREY, "middle")
    picture.text(30, 22, "id", GREY)
    picture.text(
        60,
        22,
        f"dot: prediction, with the times at which its label may come: {LEAD} hour before to {TTL} after",
        GREY,
    )
    picture.diamond(66, foot + 32, GREEN)
    picture.text(78, foot + 36, "label; a line joins it to every prediction that it serves", GREY)
    return picture


# ---- identity

DELIVERED = ["x1", "x2", "x3", "x2", "x4", "x5", "x6"]


def identity() -> Picture:
    """Feed a table what a source delivers, one bundle of it twice from one state; draw the rows."""
    settings = TableSettings(
        EvaluatorSettings(window=LastEvents(4), every=EveryEvents(2), measures=("auc",)), deduplicate=HOUR
    )
    table = EvaluatorTable(settings)
    applied, seq = [], 0
    rows: list[MeasureRow] = []
    for place, id_ in enumerate(DELIVERED):
        event = EventBatch(
            TextColumn.of(["m"]), np.array([place / 10]), np.array([place % 2], np.int8),
            np.array([int(id_[1:]) * MINUTE]), IdColumn.of([id_]),
        )  # fmt: skip
        before = table.to_bytes()
        outputs = table.apply(event.pack())
        dropped = any(isinstance(output, Rejected) for output in outputs)
        seq += not dropped
        applied.append(None if dropped else seq)
        rows += [row for output in outputs if not isinstance(output, Rejected) for row in output]
        if place == 4:  # the worker dies before the bundle is committed, and another goes on from the state
            again = EvaluatorTable.from_bytes(before, settings).apply(event.pack())
            rows += [row for output in again if not isinstance(output, Rejected) for row in output]
    kept = {(row.model, row.slice, row.pane_start, row.row): row for row in rows}

    picture = Picture(
        "What comes twice counts once: events by (model, id), rows by (model, slice, pane, row)",
        680,
        262,
        "Four lines: what the source delivers, what is applied, the rows that are written, and the rows that "
        "a sink keeps. The second delivery of event x2 and the second copy of row 1 are dropped.",
    )
    across = lambda place: 190 + 66 * place  # noqa: E731
    heads = ("the source delivers", "applied, as seq", "rows that are written", "rows that a sink keeps")
    for y, words in zip((40, 95, 155, 215), heads, strict=True):
        picture.text(20, y + 4, words, GREY)
    for place, (id_, number) in enumerate(zip(DELIVERED, applied, strict=True)):
        colour = RED if number is None else BLUE
        picture.box(across(place) - 22, 26, 44, 28, colour, 0.15)
        picture.text(across(place), 45, id_, colour, "middle")
        if number is None:
            picture.text(across(place), 99, "duplicate", RED, "middle")
        else:
            picture.line([(across(place), 56), (across(place), 82)], GREY, 1)
            picture.text(across(place), 99, f"{number}", BLUE, "middle")
    seen: set[int] = set()
    for row in rows:
        x = across(applied.index(row.seq)) + (66 if row.row in seen else 0)
        first = row.row not in seen
        seen.add(row.row)
        picture.box(x - 30, 141, 60, 28, GREEN if first else RED, 0.15)
        picture.text(x, 160, f"row {row.row}", GREEN if first else RED, "middle")
        if first:
            picture.line([(x, 106), (x, 138)], GREY, 1)
            picture.line([(x, 172), (x, 200)], GREY, 1)
        else:
            picture.text(x, 186, "again: the bundle", RED, "middle")
            picture.text(x, 200, "was tried twice", RED, "middle")
    for row in kept.values():
        x = across(applied.index(row.seq))
        picture.text(x, 219, f'(m, "", -, {row.row})', GREEN, "middle")
        picture.text(x, 235, f"seq {row.seq}", GREY, "middle")
    return picture


PICTURES = {
    "streams-order": order,
    "streams-lateness": lateness,
    "streams-join": join,
    "streams-identity": identity,
}


if __name__ == "__main__":
    write(PICTURES)
