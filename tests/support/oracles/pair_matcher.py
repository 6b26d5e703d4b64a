"""What becomes of each event of a stream of pairs: the slow oracle of `core.pairs.matching`.

The oracle gets the whole stream at once, as a list of steps. For each event, the oracle searches the list for
the step at which the event's wait ends. Then the oracle searches for partners before this step. So the oracle
has no state that goes from batch to batch, and nothing to store or to load.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.settings.against import Against


class Instance(NamedTuple):
    """An instance of a model and its champion. The score of a missing event is None."""

    model: str
    label: int
    score: float | None
    score_against: float | None
    time: int
    slices: tuple[str, ...]


class Held(NamedTuple):
    """An event that waits, in the fields of the wire form.

    number  the place of the event among all events, from 1 on; 0: the event waits to the end of the input
    model   "" for an event of the champion
    met     the models that were compared with an event of the champion, in order
    """

    number: int
    time: int
    score: float
    label: int
    is_champion: bool
    stem: str
    id: str
    model: str
    slices: tuple[str, ...]
    met: tuple[str, ...]


class After(NamedTuple):
    """What a matcher must say after a batch, after a moment of the clock, or after the end of the input.

    found     the instances that the batch, the moment or the end completes, in order
    held      the events that wait, in the order of the wire form
    models    the stem and the name of each model that is known
    greatest  the greatest time so far
    repeated, contradicted  how many events did not count so far
    """

    found: list[Instance]
    held: list[Held]
    models: list[tuple[str, str]]
    greatest: int
    repeated: int
    contradicted: int


@dataclass(eq=False)
class _Event:
    """An event, and what becomes of the event.

    step         the place of the event among all steps: events and moments of the clock
    number       the place of the event among all events, from 1 on
    before       what stands before the column in the model's name: "" or "STEM/"
    record       the batch, the source and the position; they tell which events are one record
    over         the moment at which the wait ends; infinite: the event waits to the end of the input
    until        the step at which the event stops waiting; for an event that never waits, its own step
    of_id        all events of the event's id and stem
    met          the events that were compared with the event
    is_repeated  whether the event does not count, as a second event of its model
    """

    step: int
    number: int
    model: str
    before: str
    is_champion: bool
    id: str | None
    record: tuple[int, str | None, int]
    label: int
    score: float
    time: int
    slices: tuple[str, ...]
    over: float = math.inf
    until: int = 0
    of_id: list[_Event] = field(default_factory=list)
    met: list[_Event] = field(default_factory=list)
    is_repeated: bool = False


def told(happenings: Sequence[EventBatch | int], against: Against) -> list[After]:
    """Return what a matcher must say after each batch and each moment of the clock, and after the end."""
    stream = _Stream(happenings, against)
    if against.by_record:
        stream.match_records()
    else:
        stream.match_ids()
    return [stream.after(first, end) for first, end in stream.parts]


class _Stream:
    """A stream as a list of steps; the last step is the end of the input.

    first_of  the first event of each model
    clock     by step: for an event the greatest time so far, for a moment of the clock the moment
    parts     for each batch, for each moment and for the end, the first step and the step behind the last one
    end       the last step
    found     by step, the instances that the step completes
    """

    def __init__(self, happenings: Sequence[EventBatch | int], against: Against) -> None:
        self.against = against
        self.events: list[_Event] = []
        self.first_of: dict[str, _Event] = {}
        self.clock: list[int] = []
        self.parts: list[tuple[int, int]] = []
        self.found: dict[int, list[Instance]] = defaultdict(list)
        for happening in happenings:
            first = len(self.clock)
            if isinstance(happening, int):
                self.clock.append(happening)
            else:
                self._read(happening)
            self.parts.append((first, len(self.clock)))
        self.end = len(self.clock)
        self.parts.append((self.end, self.end + 1))

    def _read(self, batch: EventBatch) -> None:
        count = len(batch)
        columns = (
            batch.models.to_list(),
            [None] * count if batch.ids is None else batch.ids.to_list(),
            [None] * count if batch.sources is None else batch.sources.to_list(),
            [0] * count if batch.positions is None else batch.positions.tolist(),
            batch.labels.tolist(),
            batch.scores.tolist(),
            [NO_TIME] * count if batch.times is None else batch.times.tolist(),
        )
        texts = [column.to_list() for _, column in batch.slices]
        greatest = self._greatest(self.events)
        for row, (model, id_, source, position, label, score, time) in enumerate(zip(*columns, strict=True)):
            before = self._before_column(model)
            is_champion = model == before + self.against.champion
            record, slices = (len(self.parts), source, position), tuple(column[row] or "" for column in texts)
            place = len(self.clock), len(self.events) + 1
            event = _Event(*place, model, before, is_champion, id_, record, label, score, time, slices)
            self.events.append(event)
            self.first_of.setdefault(model, event)
            greatest = max(greatest, time)
            self.clock.append(greatest)

    def _before_column(self, model: str) -> str:
        """Return what stands before the longest column that ends the model's name."""
        columns = [column for column in self.against.columns if f"/{model}".endswith(f"/{column}")]
        return min((model[: len(model) - len(column)] for column in columns), key=len, default="")

    def _greatest(self, events: Sequence[_Event]) -> int:
        """Return the greatest time of events. Records do not wait, so by record no time counts."""
        return NO_TIME if self.against.by_record else max((event.time for event in events), default=NO_TIME)

    def _known(self, before: str, step: int) -> list[str]:
        """Return the models of a stem, without the champion, that had an event before a step.

        An event of one column tells of the models of all columns.
        """
        names: list[str] = []
        for model, event in self.first_of.items():
            if event.before == before and event.step < step:
                names += [*(before + column for column in self.against.columns), model]
        return [name for name in dict.fromkeys(names) if name != before + self.against.champion]

    def _alone(self, event: _Event, time: int, step: int, met: Collection[str]) -> list[Instance]:
        """Return the instances of an event that stays alone.

        The champion stays alone for each model that is not in `met` and had an event before `step`.
        """
        known = self._known(event.before, step) if event.is_champion else [event.model]
        return [_of_one(model, event, time) for model in known if model not in met]

    # ---- by record

    def match_records(self) -> None:
        """Find the instances of each record. Of two events of a model in a record, the last one counts."""
        records: dict[tuple[int, str | None, int], dict[str, dict[str, _Event]]] = {}
        for event in self.events:
            records.setdefault(event.record, {}).setdefault(event.before, {})[event.model] = event
        for (batch, _, _), stems in records.items():
            found = self.found[self.parts[batch][0]]
            for before, of_model in stems.items():
                theirs = of_model.pop(before + self.against.champion, None)
                for mine in of_model.values():
                    found.append(_of_two(mine, theirs) if theirs else _of_one(mine.model, mine, mine.time))
                if theirs:
                    found += self._alone(theirs, theirs.time, self.end, of_model)

    # ---- by id

    def match_ids(self) -> None:
        """Find the instances of each id. Waits that are over at the step of an event end before the event."""
        of_id: dict[tuple[str, str | None], list[_Event]] = defaultdict(list)
        for event in self.events:
            self._set_wait(event)
            event.of_id = of_id[event.before, event.id]
            event.of_id.append(event)
        for (_, id_), events in of_id.items():
            if id_ is not None:
                _find_partners(events)
        greatest = self._greatest(self.events)
        for event in sorted(self.events, key=self._turn):
            if event.step < event.until and (event.is_champion or not event.met):
                time = greatest if event.until == self.end else int(event.over)
                met = [other.model for other in event.met]
                self.found[event.until] += self._alone(event, time, event.until, met)
        for event in self.events:
            if event.id is None:
                self.found[event.step] += self._alone(event, event.time, event.step + 1, ())
            for other in event.met:
                if other.step < event.step:
                    self.found[event.step] += _compared(event, other)

    def _set_wait(self, event: _Event) -> None:
        """Set the moment and the step at which the wait of an event ends if no partner comes."""
        if self.against.within is not None and event.time != NO_TIME:
            event.over = event.time + self.against.within
        later = range(event.step + 1, self.end) if event.over < math.inf else ()
        event.until = next((step for step in later if self.clock[step] > event.over), self.end)
        if event.id is None:
            event.until = event.step

    def _turn(self, event: _Event) -> tuple[float, ...]:
        """Return what events whose waits end are sorted by: the step, then the moment, then the event.

        At the end of the input, all waits end at one moment: the order is that of `_place`.
        """
        return event.until, *(_place(event) if event.until == self.end else (event.over, event.step))

    # ---- what is left

    def after(self, first: int, end: int) -> After:
        """Return what a matcher must say after the steps from `first` to the one before `end`."""
        events = [event for event in self.events if event.step < end]
        waiting = sorted((event for event in events if event.until >= end), key=_place)
        pairs = [(event, other) for event in events for other in event.met if other.step < event.step]
        return After(
            found=[instance for step in range(first, end) for instance in self.found[step]],
            held=[_held(event, end) for event in waiting],
            models=[
                (before.removesuffix("/"), model)
                for before in dict.fromkeys(event.before for event in events)
                for model in self._known(before, end)
            ],
            greatest=self._greatest(events),
            repeated=sum(event.is_repeated for event in events),
            contradicted=sum(event.label != other.label for event, other in pairs),
        )


def _find_partners(events: list[_Event]) -> None:
    """Find which events of an id meet.

    An event is repeated if another event waits that is of the same model, or has met the model.
    """
    for event in events:
        waiting = [other for other in events if other.step < event.step < other.until]
        if event.model in [each.model for other in waiting for each in (other, *other.met)]:
            event.is_repeated, event.until = True, event.step
            continue
        for other in waiting:
            if other.is_champion != event.is_champion:
                event.met.append(other)
                other.met.append(event)
                of_model = other if event.is_champion else event
                of_model.until = event.step  # the champion's event waits on, for other models


def _place(event: _Event) -> tuple[int, ...]:
    """Return what events that wait are sorted by: the champion's first, then by id, then by event.

    The ids are in order of the step since which an id has had events of models that wait, without a gap.
    """
    since = event.step
    if not event.is_champion:
        others = [other for other in event.of_id if not other.is_champion]
        while earlier := [other.step for other in others if other.step < since < other.until]:
            since = min(earlier)
    return not event.is_champion, since, event.step


def _held(event: _Event, end: int) -> Held:
    return Held(
        number=event.number if event.over < math.inf else 0,
        time=event.time,
        score=event.score,
        label=event.label,
        is_champion=event.is_champion,
        stem=event.before.removesuffix("/"),
        id=event.id or "",
        model="" if event.is_champion else event.model,
        slices=event.slices,
        met=tuple(other.model for other in event.met if other.step < end),
    )


def _compared(event: _Event, other: _Event) -> list[Instance]:
    """Return the instance of an event and its partner, or two if the partner has another label."""
    mine, theirs = (other, event) if event.is_champion else (event, other)
    if mine.label == theirs.label:
        return [_of_two(mine, theirs)]
    time = max(mine.time, theirs.time)
    return [_of_one(mine.model, mine, time), _of_one(mine.model, theirs, time)]


def _of_two(mine: _Event, theirs: _Event) -> Instance:
    time = max(mine.time, theirs.time)
    return Instance(mine.model, mine.label, mine.score, theirs.score, time, mine.slices)


def _of_one(model: str, event: _Event, time: int) -> Instance:
    score, against = (None, event.score) if event.is_champion else (event.score, None)
    return Instance(model, event.label, score, against, time, event.slices)
