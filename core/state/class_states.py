"""The states of models with classes in a table's snapshot.

The module reads such states, replaces them, and carries them to other settings.

The snapshot of such a table has no evaluators; the states of models are a part of the snapshot. The state of
a model holds the snapshot of an evaluator of all decisions, and of an evaluator for each class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..classes.class_settings import ClassSettings
from ..classes.state import ClassState, packed_states, states_in
from ..classes.window import ClassWindow
from ..encoding.fields import Reader
from ..encoding.json import reading
from ..evaluator.snapshot import Snapshot
from ..evaluator.state import EvaluatorState
from ..settings.table import OF_CLASSES, TableSettings

State = EvaluatorState | ClassState
"""The state of one (model, slice)."""


def states_of(snapshot: Snapshot) -> Sequence[State]:
    """Return the state of each (model, slice) in the snapshot of a table.

    Raises a `WireError` for damaged states.
    """
    if snapshot.settings.classes is None:
        return snapshot.evaluators
    return [ClassState.unpack(state) for state in states_in(snapshot.beside[OF_CLASSES])]


def with_states(snapshot: Snapshot, states: Sequence[State]) -> Snapshot:
    """Return the snapshot of a table with other states of its (models, slices)."""
    of_classes = [state.pack() for state in states if isinstance(state, ClassState)]
    if snapshot.settings.classes is not None:
        return replace(snapshot, beside={**snapshot.beside, OF_CLASSES: packed_states(of_classes)})
    return replace(snapshot, evaluators=[state for state in states if isinstance(state, EvaluatorState)])


def models_of(snapshot: Snapshot) -> list[EvaluatorState]:
    """Return for each (model, slice) an evaluator that counts all events.

    For a model with classes, this is the evaluator of decisions.
    """
    return [
        state if isinstance(state, EvaluatorState) else _evaluator_in(state.evaluators[0])
        for state in states_of(snapshot)
    ]


def with_evaluators(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot that also has the evaluators in the states of models with classes. Do not pack it."""
    if snapshot.settings.classes is None:
        return snapshot
    of_classes = (state for state in states_of(snapshot) if isinstance(state, ClassState))
    evaluators = [_evaluator_in(data) for state in of_classes for data in state.evaluators]
    return replace(snapshot, evaluators=evaluators)


def _evaluator_in(data: bytes) -> EvaluatorState:
    return Snapshot.unpack(data).one_evaluator(None)[1]


def carried(
    state: ClassState, wanted: TableSettings, carry: Callable[[Snapshot, TableSettings], Snapshot]
) -> ClassState:
    """Return the state of a model with classes for a table with other settings.

    carry  returns the snapshot of one evaluator with other settings, or raises OtherConfigurationError
    """
    settings = ClassSettings.of_table(wanted)
    if settings is None:
        raise AssertionError("a table without classes has no states of models with classes")
    settings = replace(settings, class_rows=state.settings.class_rows)
    of_each = [settings.of_model, *(settings.of_class(name) for name in settings.evaluated)]
    evaluators = [
        carry(Snapshot.unpack(data), TableSettings(each))
        for data, each in zip(state.evaluators, of_each, strict=False)
    ]
    window = ClassWindow(state.settings)
    with reading("a snapshot of a model with classes"):
        reader = Reader(memoryview(state.window))
        window.read(reader)
        # the signal of an adaptive window; `MulticlassEvaluator.from_bytes` reads it
        signal = bytes(reader.rest())
    held = len(evaluators[0].evaluators[0].scores)
    # In a fading window an event of a silent class stays longer than in the evaluator of decisions.
    if held < len(window) and not settings.evaluator.window.ticks:
        window.keep_newest(held)
    packed = [each.pack() for each in evaluators]
    return state._replace(settings=settings, evaluators=packed, window=b"".join([*window.pack(), signal]))
