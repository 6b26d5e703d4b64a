"""Converts the state of one job to the first state of another job, with new settings, shards and input.

The readers of every job give new numbers to their partitions, and count the packets from 0. So the state
forgets what the other job's partitions had sent, but keeps the time that they had reached. Packets that wait
for their turn in order of position keep their turn, before the first new packet of the same partition.

A setting may change if it only chooses which figures of a window a row shows. A setting that decides which
events a window holds may not change, since the events that have left the window are gone. `_CHANGES` lists
the settings that may change.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from ..classes.state import ClassState
from ..encoding.json import read_object
from ..errors import OtherConfigurationError, shown
from ..evaluator.snapshot import Snapshot
from ..evaluator.state import EvaluatorState
from ..events.batch import MAGIC, EventBatch, LabelBatch, PacketBatch
from ..events.earlier import marked
from ..events.times import NO_TIME
from ..join.join_settings import JoinSettings
from ..join.state import JoinState
from ..settings.evaluator import Change, EvaluatorSettings, declared
from ..settings.table import IDLE, TableSettings, parse_slice
from ..settings.windows import parse_every, parse_window
from .class_states import carried, states_of, with_evaluators, with_states

_FREE = {
    "shards",
    "own_shards",
    *(name for name, each in declared(EvaluatorSettings).items() if each.of_rows),
}
"""The settings that may change: the settings of a row's figures, and the shards, since states can be spread
over other shards.
"""


def taken_up(data: bytes, settings: TableSettings) -> bytes:
    """Return the snapshot of a table in a form from which a job of these settings can begin.

    Raises OtherConfigurationError, which names every setting that does not fit the snapshot, or a
    `WireError`.
    """
    return as_begun(_carried(Snapshot.unpack(data), settings)).pack()


def join_taken_up(data: bytes, settings: JoinSettings) -> bytes:
    """Return the state of a join in a form from which a job of these settings can begin.

    Raises as `taken_up` does.
    """
    state, meaning = JoinState.unpack(data)
    check_join(read_object(meaning, "the settings of a label join"), settings)
    return join_as_begun(state, settings.evaluator_shards).pack(json.dumps(settings.meaning()))


def check_join(there: dict[str, Any], settings: JoinSettings) -> None:
    """Raise OtherConfigurationError if the state of a join was made with other settings.

    The numbers of shards may differ.
    """
    _refuse(
        f"{name} was {there.get(name)!r} and is now {value!r}"
        for name, value in settings.meaning().items()
        if there.get(name) != value and name not in ("shards", "evaluator_shards", "own_shards")
    )


def _refuse(refusals: Iterable[str]) -> None:
    if said := "; ".join(refusals):
        raise OtherConfigurationError(
            f"the state was made under another configuration, and cannot be carried over: {said}. "
            "Go on with the old one, or start from an empty state"
        )


# ---- another input


def as_begun(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in which no partition has sent anything yet; the clock and the waiting packets stay.

    The events of waiting packets are marked as events of an earlier job (`events.earlier`).
    """
    held = [(partition, number, _marked(record)) for partition, number, record in snapshot.held]
    snapshot = replace(snapshot, held=held)
    progress = snapshot.progress
    if snapshot.settings.evaluator.order == "arrival":
        return replace(snapshot, progress={})
    if not progress:
        return snapshot
    if snapshot.settings.evaluator.by_time:
        sources = progress.get("sources", {})
        return replace(snapshot, progress={"clock": progress["clock"], "sources": _no_sources(sources)})
    bases: Counter[int] = Counter()
    waiting = []
    for partition, _, record in sorted(snapshot.held):
        if record[: len(MAGIC)] == MAGIC:  # the record is an event batch, not a marker
            waiting.append((partition, bases[partition], record))
            bases[partition] += 1
    begun: dict[str, Any] = {"turn": 0, "expected": 0, "partitions": None, "ends": []}
    if "clock" in progress:
        begun["clock"] = progress["clock"]
    if bases:
        begun["bases"] = sorted(bases.items())
    return replace(snapshot, progress=begun, held=waiting)


def join_as_begun(state: JoinState, evaluator_shards: int) -> JoinState:
    """Return a join's state in which no partition has sent anything and no packet was sent on.

    The predictions and labels in it are marked as those of an earlier job.
    """
    return replace(
        state,
        sources=None if state.sources is None else _no_sources(state.sources),
        sent=[0] * evaluator_shards,
        predictions=None if state.predictions is None else marked(state.predictions),
        labels=None if state.labels is None else marked(state.labels),
        coming_predictions=list(map(_marked, state.coming_predictions)),
        coming_labels=list(map(_marked, state.coming_labels)),
    )


def _marked(record: bytes) -> bytes:
    """Return the packet with its events or labels marked as those of an earlier job.

    Any other record stays unchanged.
    """
    kinds: tuple[type[PacketBatch], ...] = (EventBatch, LabelBatch)
    kind = next((each for each in kinds if record[: len(each.magic)] == each.magic), None)
    return record if kind is None else marked(kind.unpack(record)).pack()


def _no_sources(sources: dict[str, Any]) -> dict[str, Any]:
    return {"count": None, "clock": NO_TIME, "greatest": sources.get("greatest", NO_TIME), "parts": []}


# ---- other settings


def check_table(snapshot: Snapshot, wanted: TableSettings) -> None:
    """Raise OtherConfigurationError if no job with these settings could have written the snapshot."""
    here, there = (settings.meaning() for settings in (wanted, snapshot.settings))
    refusals = []
    for name, value in here.items():
        if name in _FREE or value == there[name]:
            continue
        change = _CHANGES.get(name)
        why = "" if change is None else change(with_evaluators(snapshot), there[name], value)
        if change is None or why:
            refusals.append(f"{name} was {shown(there[name])} and is now {shown(value)}{why and f' ({why})'}")
    _refuse(refusals)


def _carried(snapshot: Snapshot, wanted: TableSettings) -> Snapshot:
    """Return a snapshot with other settings, except its shards; raises as `check_table` does."""
    check_table(snapshot, wanted)
    before, threshold = snapshot.settings, wanted.evaluator.threshold
    beside = {part: data for part, data in snapshot.beside.items() if part in wanted.kept}
    states = list(states_of(snapshot))
    if left := set(before.slices) - set(wanted.slices):
        states = [each for each in states if tuple(name for name, _ in parse_slice(each.slice)) not in left]
    settings = replace(wanted, shards=before.shards)
    snapshot = replace(snapshot, settings=settings, beside=beside)
    if wanted.classes is not None:
        of_classes = [each for each in states if isinstance(each, ClassState)]
        return with_states(snapshot, [carried(each, wanted, _carried) for each in of_classes])
    evaluators = [_in_window(state, wanted) for state in states if isinstance(state, EvaluatorState)]
    if threshold != before.evaluator.threshold:
        evaluators = [_decided(state, threshold) for state in evaluators]
    of_evidence = attrgetter("evidence_below", "evidence_blocks", "block_gap")
    if of_evidence(wanted.evaluator) != of_evidence(before.evaluator):
        evaluators = [replace(state, evidence=b"") for state in evaluators]
    return replace(snapshot, evaluators=evaluators)


def _window(snapshot: Snapshot, was: str, now: str) -> str:  # noqa: ARG001
    before, after = parse_window(was), parse_window(now)
    longest = before.size or before.micros
    if type(before) is type(after) and longest:
        if (after.size or after.micros) < longest:
            return ""
        return "what has left a window cannot come back; a shorter one can be had"
    return "another kind of window would hold other events"


def _every(snapshot: Snapshot, was: str, now: str) -> str:  # noqa: ARG001
    if all(parse_every(each).events for each in (was, now)):
        return ""
    return "from one number of events to another it can change, and not on a grid of times"


def _threshold(snapshot: Snapshot, was: float, now: float) -> str:  # noqa: ARG001
    window = snapshot.settings.evaluator.window
    if window.signal == "error":
        return "an adaptive window of errors was cut by the errors at that threshold"
    return ""


def _probabilities(snapshot: Snapshot, was: bool, now: bool) -> str:  # noqa: ARG001
    odd = (state for state in snapshot.evaluators if ((state.scores < 0) | (state.scores > 1)).any())
    if now and (state := next(odd, None)) is not None:
        return f"{state.model!r} holds scores outside [0, 1]"
    return ""


def _order(snapshot: Snapshot, was: str, now: str) -> str:  # noqa: ARG001
    if was.startswith("time") and now.startswith("time"):
        return ""
    return "what was applied in one order cannot be put into another"


def _classes(snapshot: Snapshot, was: list[str] | None, now: list[str] | None) -> str:  # noqa: ARG001
    before, after = was or [], now or []
    if was is None or now is None:
        return "models with a score of each class, and models with one score, have other states"
    if gone := next((name for name in before if name not in after), None):
        return f"class {gone!r} is gone"
    if new := next((name for name in after if name not in before), None):
        return f"class {new!r} is new"
    return "give the classes in the same order"


def _slices(snapshot: Snapshot, was: list[str], now: list[str]) -> str:
    if new := [each for each in now if each not in was]:
        return f"{new[0]!r} would begin empty; slices can be left out"
    if IDLE in snapshot.settings.parts:
        return "slices that were silent have left counters behind; keep them, or leave --idle-ttl as it is"
    return ""


_CHANGES: dict[str, Change] = {
    "window": _window,
    "every": _every,
    "threshold": _threshold,
    "probabilities": _probabilities,
    "order": _order,
    "slices": _slices,
    "classes": _classes,
    **{
        name: each.change
        for settings in (EvaluatorSettings, TableSettings)
        for name, each in declared(settings).items()
        if each.change is not None
    },
}


_COLUMNS = ("scores", "labels", "predictions", "hits", "times", "weights")
"""The columns of an evaluator's state that have one value for each event in the window."""


def _in_window(state: EvaluatorState, wanted: TableSettings) -> EvaluatorState:
    """Return the state of an evaluator, cut down to the events that a shorter window holds."""
    window = wanted.evaluator.window
    first = 0
    if window.size:
        first = max(len(state.scores) - window.size, 0)
    elif window.micros and state.times is not None and len(state.times):
        now = state.greatest_time if state.course is None else max(state.course[0], state.greatest_time)
        first = int(np.searchsorted(state.times, now - window.micros, "right"))
    if not first:
        return state
    columns: dict[str, Any] = {name: getattr(state, name) for name in _COLUMNS}
    held = {name: column[first:] for name, column in columns.items() if column is not None}
    return replace(state, **held)


def _decided(state: EvaluatorState, threshold: float) -> EvaluatorState:
    """Return the state of an evaluator with new predictions, by another threshold."""
    if state.multiclass:
        return state
    return replace(state, predictions=(state.scores >= threshold).view(np.int8))
