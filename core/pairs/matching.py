"""Which events belong to one instance of a model and its champion: events of one id, or of one record.

Events come in the order in which they apply. An instance is complete with the later of its two events, and
has the greater of their times. The fate of an event:

compared      the model and the champion have one label for the instance. Of two events of a model with one
              id, the first counts; the other one is counted in `repeated`
alone         no partner came, or the partner has another label (counted in `contradicted`)

By id, an event waits for its partner for `within` of event time: it is alone as soon as an event comes that
is later by more. Without `within` it waits to the end of the input. By record, both events come together. An
event of the champion without partners is alone for every model that has had an event by then; of the models
of columns of scores, for all.

A batch is matched in columns (`together`). By id, these are the events of an id of which no event waits
already, no model has two events, and all waits end within the batch or all last beyond it. All other events
are taken one by one. Events are numbered in their order, from 1 on.

Cost: in batches of 10,000 or more, an event takes .1 microseconds by record and .3 by id, or 2 to 3 if it
waits beyond its batch or is taken one by one. A batch takes at least .2 ms, or .4 ms by id. State by id: some
300 bytes for each event of the champion, and for each event without a partner, that came within `within`.

Wire form of the state, little-endian: models (u32, then stem and model as texts), events (u32), then each
event as `_EVENT`, its stem (text), id (bytes behind their length), model and slice values (texts), and of the
champion the models that were compared with it (u32, texts).
"""

from __future__ import annotations

import heapq
import math
import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, Int64Array
from ..encoding.fields import Reader, packed_bytes, packed_text
from ..errors import InputError
from ..events.batch import NEGATIVE, EventBatch
from ..events.columns import IdColumn
from ..events.times import NO_TIME
from ..settings.against import Against
from .instances import OWN, Finding, Instances, Single, first_rows, in_order
from .whole_batch import Columns, Met, Models, Waits, first_of_record, keys_of, of_ids, of_records, simple_ids

_EVENT = struct.Struct("<qqdb?I")
_COUNT = struct.Struct("<I")


class _Event(NamedTuple):
    label: int
    score: float
    time: int
    slices: tuple[str, ...]


@dataclass
class _Held:
    """An event that waits for a partner; for the champion, with the models whose events it has met.

    number  the number of the event, if its wait ends at some time; 0: the event waits to the end of the input
    """

    event: _Event
    number: int
    met: dict[str, None] = field(default_factory=dict)


_Key = tuple[str, bytes]
"""The text before the column in a model's name, and the id of the instance."""


class Matcher:
    """Finds instances among the events of a shard.

    repeated, contradicted  how many events did not count for either reason, since the matcher was made

    >>> from rocsteady.core.events.columns import IdColumn, TextColumn
    >>> matcher = Matcher(Against("champion"))
    >>> batch = EventBatch(
    ...     TextColumn.of(["new", "champion", "new"]), np.array([0.7, 0.6, 0.2]), np.array([1, 1, 0]),
    ...     ids=IdColumn.of(["i", "i", "j"]),
    ... )
    >>> found = matcher.match(batch)
    >>> found.models.to_list(), found.pairs.scores, found.pairs.against
    (['new'], array([0.7]), array([0.6]))
    >>> matcher.finish().pairs.scores
    array([0.2])
    """

    def __init__(self, against: Against) -> None:
        self.against = against
        self.repeated = self.contradicted = 0
        self._names: dict[str, tuple[str, str]] = {}
        # By stem, the models; with each model, the number of the event from which on it is known.
        self._models: dict[str, dict[str, int]] = {}
        self._champions: dict[_Key, _Held] = {}
        self._waiting: dict[_Key, dict[str, _Held]] = {}
        self._alone_at: list[tuple[int, int, _Key, str | None]] = []
        self._number = 0
        self._greatest = NO_TIME
        # Of the batch that is being matched: the clock at each event, and the instances found one by one.
        self._clock: list[int] = []
        self._found: list[Single] = []

    def __len__(self) -> int:
        """Return how many events wait for a partner or for a repetition."""
        return len(self._champions) + sum(map(len, self._waiting.values()))

    def match(self, batch: EventBatch) -> Instances:
        """Take in events in their order; return the complete instances, and the events without a partner."""
        if batch.labels.min(initial=0) < NEGATIVE:
            raise InputError("labels are classes and none is named as positive; name it with --positive")
        by_record, ids = self.against.by_record, batch.ids
        if not by_record and ids is None:
            raise InputError("models are compared by the ids of events; name the column with --id")
        if not len(batch):
            return in_order([])
        times = np.full(len(batch), NO_TIME) if batch.times is None else batch.times
        models, events = self._models_of(batch), Columns(batch.labels, batch.scores, times)
        if by_record or ids is None:
            findings = [*of_records(models, events, first_of_record(batch))]
        else:
            findings = self._by_id(batch, ids, models, events)
        self._number += len(batch)
        found, self._found, self._clock = self._found, [], []
        return in_order(found, findings, models.names, [column for _, column in batch.slices])

    def _models_of(self, batch: EventBatch) -> Models:
        """Return the models of a batch, numbered; store new models in the order in which they come."""
        index: dict[str, int] = {}
        table = np.array([index.setdefault(name, len(index)) for name in batch.models.values], np.int64)
        of_event, names = table[batch.models.codes], list(index)
        first = first_rows(of_event, len(names))
        for code in np.argsort(first, kind="stable").tolist():
            if first[code] < len(batch):
                self._note(names[code], self._number + 1 + int(first[code]))
        return Models.of(names, of_event, [self._name(name) for name in names], self._models)

    def _note(self, model: str, number: int) -> None:
        """Store that a model is known from the event `number` on, with the models of its other columns."""
        stem, champion = self._name(model)
        known = self._models.setdefault(stem, {})
        for column in self.against.columns:
            if column != self.against.champion:
                known.setdefault(f"{stem}/{column}" if stem else column, number)
        if model != champion:
            known.setdefault(model, number)

    def champion_of(self, model: str) -> str:
        """Return the name of the champion with which a model is compared."""
        return self._name(model)[1]

    def _name(self, model: str) -> tuple[str, str]:
        """Return the text before the column in a model's name, and the model's champion."""
        if model not in self._names:
            self._names[model] = self.against.champion_of(model)
        return self._names[model]

    # ---- by id

    def _by_id(self, batch: EventBatch, ids: IdColumn, models: Models, events: Columns) -> list[Finding]:
        """Match events by id: in columns where possible, the other events one by one."""
        clock = np.maximum.accumulate(np.maximum(events.times, self._greatest))
        waits = Waits.of(events.times, clock, self.against.within, self._number)
        key, keys = keys_of(ids, models)
        simple = simple_ids(models, waits, key, self._waits_already(ids, models, key, keys))
        in_columns = key >= 0
        in_columns[in_columns] = simple[key[in_columns]]
        met = of_ids(models, events, waits, key, np.flatnonzero(in_columns), keys)
        self.contradicted += met.contradicted
        self._one_by_one(batch, ids, models, clock, in_columns, met)
        return met.findings

    def _waits_already(self, ids: IdColumn, models: Models, key: Int64Array, keys: int) -> BoolArray:
        """Return, for each key, whether an event of its id waits already."""
        found = np.zeros(keys, np.bool_)
        if self._champions or self._waiting:
            rows = np.empty(keys, np.int64)
            there = np.flatnonzero(key >= 0)
            rows[key[there]] = there
            stems = models.stem[models.of_event[rows]].tolist()
            for number, (stem, id_) in enumerate(zip(stems, ids.take(rows).encoded(), strict=True)):
                place = models.stems[stem], id_ or b""
                found[number] = place in self._champions or place in self._waiting
        return found

    def _one_by_one(
        self,
        batch: EventBatch,
        ids: IdColumn,
        models: Models,
        clock: Int64Array,
        in_columns: BoolArray,
        met: Met,
    ) -> None:
        """Match the events that were not matched in columns, one by one.

        Let the events that were matched in columns wait, if their wait goes on.
        """
        waits = np.zeros(len(batch), np.bool_)
        waits[met.waiting] = True
        rows = np.flatnonzero(waits | ~in_columns)
        self._clock = clock.tolist() if self._alone_at or len(rows) else []
        met_by: dict[int, dict[str, None]] = {}
        for row, model in zip(met.champion.tolist(), met.model.tolist(), strict=True):
            met_by.setdefault(row, {})[models.names[model]] = None
        texts = [[text or "" for text in column.take(rows).to_list()] for _, column in batch.slices]
        slices = list(zip(*texts, strict=True)) if texts else [()] * len(rows)
        times = [NO_TIME] * len(rows) if batch.times is None else batch.times[rows].tolist()
        given = map(_Event, batch.labels[rows].tolist(), batch.scores[rows].tolist(), times, slices)
        names = [models.names[model] for model in models.of_event[rows].tolist()]
        columns = rows.tolist(), names, ids.take(rows).encoded(), given, waits[rows].tolist()
        for row, model, id_, event, only_waits in zip(*columns, strict=True):
            number = self._number + 1 + row
            self._give_up_until(self._clock[row])
            if only_waits:
                stem, champion = self._name(model)
                self._hold((stem, id_ or b""), model if model != champion else None, event, number)
                if row in met_by:
                    self._champions[stem, id_ or b""].met = met_by[row]
            else:
                self._take(model, id_, event, number)
        self._greatest = int(clock[-1])
        if in_columns[-1] and not waits[-1]:  # otherwise this was done before the last event began to wait
            self._give_up_until(self._greatest)

    def _take(self, model: str, id_: bytes | None, event: _Event, number: int) -> None:
        stem, champion = self._name(model)
        if id_ is None:
            alone = self._known(stem, number + 1) if model == champion else [model]
            for each in alone:
                self._alone(each, event, event.time, number, is_champion=model == champion)
            return
        key = stem, id_
        theirs = self._champions.get(key)
        if model == champion:
            if theirs is not None:
                self.repeated += 1
                return
            theirs = self._hold(key, None, event, number)
            for other, mine in self._waiting.pop(key, {}).items():
                theirs.met[other] = None
                self._meet(other, mine.event, event, number)
        elif model in (self._waiting.get(key, ()) if theirs is None else theirs.met):
            self.repeated += 1
        elif theirs is None:
            self._hold(key, model, event, number)
        else:
            theirs.met[model] = None
            self._meet(model, event, theirs.event, number)

    def _known(self, stem: str, before: int) -> list[str]:
        """Return the models that are known from an event before the event `before` on."""
        return [model for model, since in self._models.get(stem, {}).items() if since < before]

    def _meet(self, model: str, mine: _Event, theirs: _Event, number: int) -> None:
        time = max(mine.time, theirs.time)
        if mine.label == theirs.label:
            scores = mine.score, theirs.score
            self._found.append(Single(number, OWN, 0, model, mine.label, *scores, time, mine.slices))
            return
        self.contradicted += 1
        self._alone(model, mine, time, number, is_champion=False)
        self._alone(model, theirs, time, number, is_champion=True)

    def _alone(
        self,
        model: str,
        event: _Event,
        time: int,
        at: int,
        *,
        is_champion: bool,
        given_up: int = 0,
    ) -> None:
        """Store an event that is alone for a model.

        `given_up`: the number of the event, if its wait has ended.
        """
        scores = (math.nan, event.score) if is_champion else (event.score, math.nan)
        moment = time if given_up else OWN
        self._found.append(Single(at, moment, given_up, model, event.label, *scores, time, event.slices))

    def _hold(self, key: _Key, model: str | None, event: _Event, number: int) -> _Held:
        """Let an event wait; `model` is None for an event of the champion."""
        held = _Held(event, 0)
        if self.against.within is not None and event.time != NO_TIME:
            held.number = number
            heapq.heappush(self._alone_at, (event.time + self.against.within, number, key, model))
        if model is None:
            self._champions[key] = held
        else:
            self._waiting.setdefault(key, {})[model] = held
        return held

    def go_on_to(self, clock: int) -> Instances:
        """Advance time to `clock`, before which no event can come any more.

        Return the events that are then alone.
        """
        self._give_up_until(clock)
        return self._singles()

    def _give_up_until(self, clock: int) -> None:
        while self._alone_at and self._alone_at[0][0] < clock:
            moment, number, key, model = heapq.heappop(self._alone_at)
            waiting = self._champions.get(key) if model is None else self._waiting.get(key, {}).get(model)
            if waiting is not None and waiting.number == number:
                at = max(number, self._number + bisect_right(self._clock, moment)) + 1
                self._give_up(key, model, moment, at, number)

    def _give_up(self, key: _Key, model: str | None, moment: int, at: int, number: int) -> None:
        """Forget an event whose wait has ended; store it for every model for which it is alone."""
        if model is None:
            held = self._champions.pop(key)
            for other in self._known(key[0], at):
                if other not in held.met:
                    self._alone(other, held.event, moment, at, is_champion=True, given_up=number)
            return
        of_id = self._waiting[key]
        event = of_id.pop(model).event
        if not of_id:
            del self._waiting[key]
        self._alone(model, event, moment, at, is_champion=False, given_up=number)

    def finish(self) -> Instances:
        """Return the events that still wait as events without a partner; the input has ended."""
        self._alone_at = []
        at = self._number + 1
        for key in list(self._champions):
            self._give_up(key, None, self._greatest, at, 0)
        for key in list(self._waiting):
            for model in list(self._waiting[key]):
                self._give_up(key, model, self._greatest, at, 0)
        return self._singles()

    def _singles(self) -> Instances:
        """Return the instances found one by one."""
        found, self._found = self._found, []
        return in_order(found)

    # ---- state

    @property
    def wire_bytes(self) -> int:
        """Return about the length of the wire form in bytes. O(1)."""
        return 60 * (len(self._champions) + len(self._waiting)) + 30 * len(self._models)

    def pack(self) -> list[bytes]:
        """Return the wire form."""
        models = [(stem, model) for stem, known in self._models.items() for model in known]
        parts = [struct.pack("<q", self._greatest), _COUNT.pack(len(models))]
        parts += [packed_text(text) for pair in models for text in pair]
        events: list[tuple[_Key, str, bool, _Held]] = [
            *((key, "", True, held) for key, held in self._champions.items()),
            *((key, model, False, held) for key, of in self._waiting.items() for model, held in of.items()),
        ]
        parts.append(_COUNT.pack(len(events)))
        for (stem, id_), model, is_champion, held in events:
            label, score, time, slices = held.event
            parts.append(_EVENT.pack(held.number, time, score, label, is_champion, len(slices)))
            parts += [packed_text(stem), packed_bytes(id_), packed_text(model)]
            parts += map(packed_text, slices)
            parts.append(_COUNT.pack(len(held.met)))
            parts += map(packed_text, held.met)
        return parts

    @classmethod
    def read(cls, reader: Reader, against: Against) -> Matcher:
        """Read the wire form; raises ValueError or struct.error for bytes that `pack` cannot have written."""
        self = cls(against)
        self._greatest = reader.number("<q")
        for _ in range(reader.number(_COUNT.format)):
            stem, model = reader.text(), reader.text()
            self._models.setdefault(stem, {})[model] = 0
        for _ in range(reader.number(_COUNT.format)):
            number, time, score, label, is_champion, columns = reader.numbers(_EVENT.format)
            stem, id_, model = reader.text(), reader.sized(), reader.text()
            key = stem, id_
            event = _Event(label, score, time, tuple(reader.text() for _ in range(columns)))
            met = dict.fromkeys(reader.text() for _ in range(reader.number(_COUNT.format)))
            if label not in (0, 1) or not math.isfinite(score):
                raise ValueError(f"an event of the label {label} and the score {score}")
            held = _Held(event, number, met)
            if is_champion:
                self._champions[key] = held
            else:
                self._waiting.setdefault(key, {})[model] = held
            if number:
                self._number = max(self._number, number)
                moment = time + (against.within or 0)
                heapq.heappush(self._alone_at, (moment, number, key, None if is_champion else model))
        return self
