"""Instances of a whole batch, found in columns: from events of one record, and from events of one id.

The order of instances is that in which the events, taken one by one, complete them. So each instance has the
number of the event at which it is complete; see `found.Finding`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray, Int8Array, Int64Array
from ..errors import InputError
from ..events.batch import EventBatch
from ..events.columns import IdColumn
from ..events.times import END_OF_TIME, NO_TIME
from ..ids.index import IdIndex
from .instances import OWN, Finding


class Models(NamedTuple):
    """The models of a batch, by number.

    stems        the text before the column, for each number of a stem
    names        the name of each number; `lacking` adds further names
    known        by stem: the models that are known, and the event from which on each is known
    of_event     the model of each event
    stem         the number of the stem, for each number of a model
    is_champion  whether it is a champion, for each number of a model
    """

    stems: list[str]
    names: list[str]
    known: dict[str, dict[str, int]]
    of_event: Int64Array
    stem: Int64Array
    is_champion: BoolArray

    @classmethod
    def of(
        cls,
        names: list[str],
        of_event: Int64Array,
        stems: Sequence[tuple[str, str]],
        known: dict[str, dict[str, int]],
    ) -> Models:
        """Return models from their names; `stems` has the stem and the champion of each name."""
        numbers = {stem: number for number, stem in enumerate(dict.fromkeys(stem for stem, _ in stems))}
        stem = np.array([numbers[stem] for stem, _ in stems], np.int64)
        is_champion = [name == champion for name, (_, champion) in zip(names, stems, strict=True)]
        return cls(list(numbers), names, known, of_event, stem, np.array(is_champion, np.bool_))

    def lacking(
        self, stem: Int64Array, before: Int64Array | None, met: Int64Array, of_met: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Return (event, model) for each event of a champion and each model that it has not met, in order.

        stem         the stem of each event of the champion
        before       for each of these events: a model counts if it was known before this event; None: all
                     models count
        met, of_met  the events that have met a model, and the model
        """
        index = {name: number for number, name in enumerate(self.names)}
        place = np.full(len(self.names), -1)  # the place of each model among the known models of its stem
        known: list[int] = []
        since: list[int] = []
        first, count = np.zeros(
            (2, len(self.stems)), np.int64
        )  # of each stem: where its models are in `known`
        for number in np.unique(stem).tolist():
            models = self.known[self.stems[number]]
            first[number], count[number] = len(known), len(models)
            codes = np.array([index.setdefault(model, len(index)) for model in models], np.int64)
            own = np.flatnonzero(codes < len(place))
            place[codes[own]] = own
            known += codes.tolist()
            since += models.values()
        self.names[:] = index
        counts = count[stem]
        start = np.cumsum(counts) - counts
        event = np.repeat(np.arange(len(stem)), counts)
        at = np.arange(len(event)) + np.repeat(first[stem] - start, counts)
        lacks = np.ones(len(event), np.bool_)
        if before is not None:
            lacks = np.array(since, np.int64)[at] < before[event]
        lacks[start[met] + place[of_met]] = False
        return event[lacks], np.array(known, np.int64)[at[lacks]]


class Columns(NamedTuple):
    """The values that instances take over from events: labels, scores and times (NO_TIME: none)."""

    labels: Int8Array
    scores: FloatArray
    times: Int64Array


def of_records(models: Models, events: Columns, record: Int64Array) -> Iterator[Finding]:
    """Yield the instances of whole records: in order of their first events, then of stems and of models.

    record  the first event of each event's record
    """
    order = np.argsort(record, kind="stable")
    model = models.of_event[order]
    stems = len(models.stems)
    _, first, group = np.unique(
        record[order] * stems + models.stem[model], return_index=True, return_inverse=True
    )
    mine, place = order, np.arange(len(order))
    pair = group * len(models.names) + model
    kinds, place_of, last_of = np.unique(pair, return_index=True, return_inverse=True)
    if len(kinds) < len(
        pair
    ):  # of two events of a model in a record, the last event counts, in the place of the first
        last = np.empty(len(kinds), np.int64)
        last[last_of] = order
        place = np.sort(place_of)
        mine, group, model = last[last_of[place]], group[place], model[place]
    champion = models.is_champion[model]
    theirs = np.full(len(first), -1)
    theirs[group[champion]] = mine[champion]
    row, of_group, own = mine[~champion], group[~champion], model[~champion]
    other = theirs[of_group]
    there = other >= 0
    yield Finding(
        first[of_group], OWN, place[~champion], 0, own, events.labels[row], events.scores[row],
        np.where(there, events.scores[other], math.nan),
        np.where(there, np.maximum(events.times[row], events.times[other]), events.times[row]), row,
    )  # fmt: skip
    having = np.flatnonzero(theirs >= 0)
    rank = np.full(len(first), -1)
    rank[having] = np.arange(len(having))
    row = theirs[having]
    event, lacking = models.lacking(
        models.stem[models.of_event[row]], None, rank[of_group[there]], own[there]
    )
    row = row[event]
    yield Finding(
        first[having[event]], OWN, len(order), np.arange(len(row)), lacking, events.labels[row], math.nan,
        events.scores[row], events.times[row], row,
    )  # fmt: skip


class Waits(NamedTuple):
    """How long each event of a batch waits for a partner.

    number  the number of the event
    moment  when its wait ends; END_OF_TIME if never
    ends    the number of the event at which its wait ends; for a wait that ends later, the number after the
            batch's last event
    """

    number: Int64Array
    moment: Int64Array
    ends: Int64Array

    @classmethod
    def of(cls, times: Int64Array, clock: Int64Array, within: int | None, before: int) -> Waits:
        """Return the waits of events.

        `clock` is the greatest time up to each event, `before` the number of the last event before the batch.
        """
        number = np.arange(before + 1, before + 1 + len(times))
        if within is None:
            moment = np.full(len(times), END_OF_TIME)
        else:
            ends_once = (times != NO_TIME) & (times <= END_OF_TIME - within)
            moment = np.where(ends_once, np.where(ends_once, times, 0) + within, END_OF_TIME)
        ends = before + 1 + np.searchsorted(clock, moment, side="right")
        return cls(number, moment, np.maximum(ends, number + 1))

    @property
    def last(self) -> BoolArray:
        """Whether the wait of each event lasts beyond the batch."""
        return np.asarray(self.ends > self.number[-1])


class Met(NamedTuple):
    """The matches by id between events of one batch; all numbers are rows of the batch.

    findings      the instances that the matches make
    contradicted  how many instances have two labels
    waiting       rows of events that still wait at the end, by rising row
    champion, model  for the waiting events: the row of an event of the champion, and a model with which this
                  event is matched, in order
    """

    findings: list[Finding]
    contradicted: int
    waiting: Int64Array
    champion: Int64Array
    model: Int64Array


def simple_ids(models: Models, waits: Waits, key: Int64Array, known: BoolArray) -> BoolArray:
    """Return, by key, which ids can be matched in columns.

    key    the number of each event's stem and id; -1: no id
    known  whether an id's events wait already, by key
    """
    rows = np.flatnonzero(key >= 0)
    pair = np.sort(key[rows] * len(models.names) + models.of_event[rows])
    simple = ~known
    simple[pair[1:][pair[1:] == pair[:-1]] // len(models.names)] = False
    last = waits.last[rows]
    some = np.zeros((2, len(known)), np.bool_)
    some[0, key[rows[last]]] = True
    some[1, key[rows[~last]]] = True
    return simple & ~some.all(axis=0)


def of_ids(models: Models, events: Columns, waits: Waits, key: Int64Array, row: Int64Array, keys: int) -> Met:
    """Return the matches of the events of ids that `simple_ids` allows.

    `row` has the rows of these events, ascending. -
    """
    last = waits.last
    own = models.of_event[row]
    is_champion = models.is_champion[own]
    theirs = np.full(keys, -1)
    theirs[key[row[is_champion]]] = row[is_champion]
    champions, mine = row[is_champion], row[~is_champion]
    other = theirs[key[mine]]
    meets = (other >= 0) & np.where(
        mine < other, waits.ends[mine] > waits.number[other], waits.number[mine] < waits.ends[other]
    )
    alone, mine, other = mine[~meets], mine[meets], other[meets]
    findings = []
    time = np.maximum(events.times[mine], events.times[other])
    at = waits.number[np.maximum(mine, other)]
    same = events.labels[mine] == events.labels[other]
    one = slice(None) if same.all() else same
    findings.append(Finding(
        at[one], OWN, waits.number[mine[one]], 0, models.of_event[mine[one]], events.labels[mine[one]],
        events.scores[mine[one]], events.scores[other[one]], time[one], mine[one],
    ))  # fmt: skip
    if not same.all():
        two = ~same
        for place, each in enumerate((mine[two], other[two])):
            score, against = (events.scores[each], math.nan)[:: 1 - 2 * place]
            findings.append(Finding(
                at[two], OWN, waits.number[mine[two]], place, models.of_event[mine[two]],
                events.labels[each], score, against, time[two], each,
            ))  # fmt: skip
    gone = alone[~last[alone]]
    findings.append(Finding(
        waits.ends[gone], waits.moment[gone], waits.number[gone], 0, models.of_event[gone],
        events.labels[gone], events.scores[gone], math.nan, waits.moment[gone], gone,
    ))  # fmt: skip
    gone = champions[~last[champions]]
    rank = np.full(keys, -1)
    rank[key[gone]] = np.arange(len(gone))
    met = rank[key[mine]]
    event, lacking = models.lacking(
        models.stem[models.of_event[gone]], waits.ends[gone], met[met >= 0], models.of_event[mine[met >= 0]]
    )
    gone = gone[event]
    findings.append(Finding(
        waits.ends[gone], waits.moment[gone], waits.number[gone], np.arange(len(gone)), lacking,
        events.labels[gone], math.nan, events.scores[gone], waits.moment[gone], gone,
    ))  # fmt: skip
    waiting = np.sort(np.concatenate((champions[last[champions]], alone[last[alone]])))
    keeps = last[other]
    return Met(findings, int(np.count_nonzero(~same)), waiting, other[keeps], models.of_event[mine[keeps]])


def first_of_record(batch: EventBatch) -> Int64Array:
    """Return, for each event, the first event of its record."""
    if batch.positions is None:
        raise InputError("a packet of events has no positions; its reader must give them")
    records = batch.positions
    if batch.sources is not None:
        records = records + batch.sources.codes.astype(np.int64) * (int(records.max(initial=0)) + 1)
    if (records[1:] >= records[:-1]).all():
        begins = np.flatnonzero(np.diff(records, prepend=records[0] - 1))
        return np.repeat(begins, np.diff(begins, append=len(records)))
    _, first, record = np.unique(records, return_index=True, return_inverse=True)
    return first[record]


def keys_of(ids: IdColumn, models: Models) -> tuple[Int64Array, int]:
    """Return the number of the stem and id of each event, -1 without an id, and the count of numbers."""
    has_id = ids.lengths >= 0
    rows = slice(None) if has_id.all() else np.flatnonzero(has_id)
    known = ids if isinstance(rows, slice) else ids.take(rows)
    found = IdIndex().numbers(known).astype(np.int64)
    if len(models.stems) > 1:
        found = found * len(models.stems) + models.stem[models.of_event[rows]]
        found = np.unique(found, return_inverse=True)[1]
    key = np.full(len(ids), -1)
    key[rows] = found
    return key, int(found.max(initial=-1)) + 1
