"""A matcher that takes event after event: the slow oracle of `core.pairs.matching`, with the same state."""

from __future__ import annotations

import heapq
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from rocsteady.core.encoding.fields import Reader, packed_bytes, packed_text
from rocsteady.core.errors import InputError
from rocsteady.core.events.batch import NEGATIVE, EventBatch
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.settings.against import Against

_EVENT = struct.Struct("<qqdb?I")
_COUNT = struct.Struct("<I")


class _Event(NamedTuple):
    label: int
    score: float
    time: int
    slices: tuple[str, ...]


@dataclass
class _Held:
    """An event that waits; of the champion also the models that it has met.

    number  its place among the events that wait for a moment; 0: it waits to the end of the input
    """

    event: _Event
    number: int
    met: list[str] = field(default_factory=list)


class Instance(NamedTuple):
    """An instance of a model and its champion. NaN: one of them did not score it; time NO_TIME: none."""

    model: str
    against: str
    label: int
    score: float
    score_against: float
    time: int
    slices: tuple[str, ...]


_Key = tuple[str, bytes]
"""What stands before the column in a model's name, and the id of the instance."""


class Matcher:
    """Finds instances among the events of a shard.

    repeated, contradicted  how many events did not count, since the matcher was made or loaded
    """

    def __init__(self, against: Against) -> None:
        self.against = against
        self.repeated = self.contradicted = 0
        self._names: dict[str, tuple[str, str]] = {}
        self._models: dict[str, dict[str, None]] = {}
        self._champions: dict[_Key, _Held] = {}
        self._waiting: dict[_Key, dict[str, _Held]] = {}
        self._alone_at: list[tuple[int, int, _Key, str | None]] = []
        self._number = 0
        self._greatest = NO_TIME

    def __len__(self) -> int:
        """Return how many events wait for a partner or for a repetition."""
        return len(self._champions) + sum(map(len, self._waiting.values()))

    def match(self, batch: EventBatch) -> Iterator[Instance]:
        """Take in events in their order; yield the instances that are complete, and events that are alone."""
        if batch.labels.min(initial=0) < NEGATIVE:
            raise InputError("labels are classes and none is named as positive; name it with --positive")
        columns = [[text or "" for text in column.to_list()] for _, column in batch.slices]
        slices = list(zip(*columns, strict=True)) if columns else [()] * len(batch)
        times = [NO_TIME] * len(batch) if batch.times is None else batch.times.tolist()
        events = map(_Event, batch.labels.tolist(), batch.scores.tolist(), times, slices)
        codes, values = batch.models.codes.tolist(), batch.models.values
        if self.against.by_record:
            yield from self._by_record(batch, [values[code] for code in codes], list(events))
            return
        if batch.ids is None:
            raise InputError("models are compared by the ids of events; name the column with --id")
        for code, key, event in zip(codes, batch.ids.encoded(), events, strict=True):
            yield from self._take(values[code], key, event)

    # ---- by record

    def _by_record(self, batch: EventBatch, models: list[str], events: list[_Event]) -> Iterator[Instance]:
        """Yield the instances of whole records: in order of time, then of their first event."""
        if batch.positions is None:
            raise InputError("a packet of events has no positions; its reader must give them")
        sources = batch.event_sources().codes.astype(np.int64)
        records = batch.positions + sources * (int(batch.positions.max(initial=0)) + 1)
        _, first, record = np.unique(records, return_index=True, return_inverse=True)
        place = first[record]  # of the record's first event
        found: dict[tuple[str, int], dict[str, _Event]] = {}
        for row in np.argsort(place, kind="stable").tolist():
            stem, _ = self._name(models[row])
            found.setdefault((stem, int(place[row])), {})[models[row]] = events[row]
        for (stem, _), of_record in found.items():
            champion = self._name(next(iter(of_record)))[1]
            theirs = of_record.pop(champion, None)
            for model, mine in of_record.items():
                yield _together(model, champion, mine, theirs)
            if theirs is not None:
                for model in self._models[stem]:
                    if model not in of_record:
                        yield _alone_of_champion(model, champion, theirs, theirs.time)

    def _name(self, model: str) -> tuple[str, str]:
        """Return what stands before the column in a model's name, and the model's champion."""
        if model not in self._names:
            stem, _champion = self._names[model] = self.against.champion_of(model)
            others = (column for column in self.against.columns if column != self.against.champion)
            names = (f"{stem}/{column}" if stem else column for column in others)
            self._models.setdefault(stem, {}).update(dict.fromkeys(names))
        return self._names[model]

    # ---- by id

    def _take(self, model: str, id_: bytes | None, event: _Event) -> Iterator[Instance]:
        self._greatest = max(self._greatest, event.time)
        yield from self.go_on_to(self._greatest)
        stem, champion = self._name(model)
        if model == champion:
            yield from self._take_champion(stem, id_, champion, event)
            return
        self._models.setdefault(stem, {})[model] = None
        if id_ is None:
            yield _alone_of_model(model, champion, event, event.time)
        elif (theirs := self._champions.get((stem, id_))) is None:
            of_id = self._waiting.setdefault((stem, id_), {})
            if model in of_id:
                self.repeated += 1
            else:
                of_id[model] = self._held((stem, id_), model, event)
        elif model in theirs.met:
            self.repeated += 1
        else:
            theirs.met.append(model)
            yield from self._meet(model, champion, event, theirs.event)

    def _take_champion(
        self, stem: str, id_: bytes | None, champion: str, event: _Event
    ) -> Iterator[Instance]:
        if id_ is None:
            for model in self._models.get(stem, ()):
                yield _alone_of_champion(model, champion, event, event.time)
        elif (stem, id_) in self._champions:
            self.repeated += 1
        else:
            held = self._champions[stem, id_] = self._held((stem, id_), None, event)
            for model, mine in self._waiting.pop((stem, id_), {}).items():
                held.met.append(model)
                yield from self._meet(model, champion, mine.event, event)

    def _meet(self, model: str, champion: str, mine: _Event, theirs: _Event) -> Iterator[Instance]:
        if mine.label == theirs.label:
            yield _together(model, champion, mine, theirs)
            return
        self.contradicted += 1
        time = max(mine.time, theirs.time)
        yield _alone_of_model(model, champion, mine, time)
        yield _alone_of_champion(model, champion, theirs, time)

    def _held(self, key: _Key, model: str | None, event: _Event) -> _Held:
        """Return an event that waits; `model` None: the champion's."""
        if self.against.within is None or event.time == NO_TIME:
            return _Held(event, 0)
        self._number += 1
        heapq.heappush(self._alone_at, (event.time + self.against.within, self._number, key, model))
        return _Held(event, self._number)

    def go_on_to(self, clock: int) -> Iterator[Instance]:
        """Yield the events that are alone, as every later event has a time of `clock` or more."""
        while self._alone_at and self._alone_at[0][0] < clock:
            moment, number, key, model = heapq.heappop(self._alone_at)
            waiting = self._champions.get(key) if model is None else self._waiting.get(key, {}).get(model)
            if waiting is not None and waiting.number == number:
                yield from self._give_up(key, model, moment)

    def _give_up(self, key: _Key, model: str | None, moment: int) -> Iterator[Instance]:
        """Forget an event; yield it for every model for which it stayed alone."""
        if model is None:
            held, stem = self._champions.pop(key), key[0]
            champion = f"{stem}/{self.against.champion}" if stem else self.against.champion
            for other in self._models.get(stem, ()):
                if other not in held.met:
                    yield _alone_of_champion(other, champion, held.event, moment)
            return
        of_id = self._waiting[key]
        event = of_id.pop(model).event
        if not of_id:
            del self._waiting[key]
        yield _alone_of_model(model, self._name(model)[1], event, moment)

    def finish(self) -> Iterator[Instance]:
        """Yield the events that still wait, as alone, at the greatest time that came: the input has ended."""
        self._alone_at = []
        for key in list(self._champions):
            yield from self._give_up(key, None, self._greatest)
        for key in list(self._waiting):
            for model in list(self._waiting[key]):
                yield from self._give_up(key, model, self._greatest)

    # ---- state

    @property
    def wire_bytes(self) -> int:
        """About the length of the wire form in bytes. O(1)."""
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
            self._models.setdefault(stem, {})[model] = None
        for _ in range(reader.number(_COUNT.format)):
            number, time, score, label, is_champion, columns = reader.numbers(_EVENT.format)
            stem, id_, model = reader.text(), reader.sized(), reader.text()
            key = stem, id_
            event = _Event(label, score, time, tuple(reader.text() for _ in range(columns)))
            met = [reader.text() for _ in range(reader.number(_COUNT.format))]
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


def _together(model: str, champion: str, mine: _Event, theirs: _Event | None) -> Instance:
    if theirs is None:
        return _alone_of_model(model, champion, mine, mine.time)
    time = max(mine.time, theirs.time)
    return Instance(model, champion, mine.label, mine.score, theirs.score, time, mine.slices)


def _alone_of_model(model: str, champion: str, event: _Event, time: int) -> Instance:
    return Instance(model, champion, event.label, event.score, math.nan, time, event.slices)


def _alone_of_champion(model: str, champion: str, event: _Event, time: int) -> Instance:
    return Instance(model, champion, event.label, math.nan, event.score, time, event.slices)
