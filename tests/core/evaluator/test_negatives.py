"""The classes -1 and 0 of an evaluator: one class beside 1 until a side has both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rocsteady import CorruptBytesError, EveryEvents, MeasureRow, ModelEvaluator
from rocsteady.core.evaluator.state import write_evaluator

SETTINGS = {"every": EveryEvents(1), "measures": "all"}


def are_one(labels: list[int], predicted: list[int]) -> bool:
    """Tell by the definition whether -1 and 0 are one class in these events."""
    sides = [[*{-1, 0}.intersection(side)] for side in (labels, predicted)]
    return {*labels, *predicted} <= {-1, 0, 1} and sorted(sides) == [[-1], [0]]


def oracle(labels: list[int], predicted: list[int], scores: list[float], **settings: object) -> MeasureRow:
    """Return the last row of the events, with words as classes that say what is one class."""
    words = {-1: "minus", 0: "zero", 1: "one"}
    if are_one(labels, predicted):
        words[-1] = "zero"
    evaluator = ModelEvaluator(**SETTINGS | settings)
    rows = evaluator.update(
        [words.get(each, "other") for each in labels], scores,
        predicted=[words.get(each, "other") for each in predicted],
    )  # fmt: skip
    return comparable(rows[-1])


def comparable(row: MeasureRow) -> MeasureRow:
    """Return a row without the hash of its settings, which name the positive class by another word."""
    return row._replace(config="")


def streams() -> list[tuple[list[int], list[int]]]:
    """Return labels and predictions: binary in both forms, three classes, others, each also late."""
    rng = np.random.default_rng(20)
    found = []
    for label, pred, late in [
        ([-1, 1], [0, 1], []), ([0, 1], [-1, 1], []), ([-1, 1], [-1, 1], []), ([-1, 0, 1], [-1, 0, 1], []),
        ([-1, 1], [0, 1], [0]), ([0, 1], [-1, 1], [2]), ([-1, 1], [0, 1], [-1]), ([0, 1], [0, 1], [-1]),
        ([-1, 2], [0, 2], []), ([1], [0, 1], [-1]),
    ]:  # fmt: skip
        labels = rng.choice(label, 24).tolist() + rng.choice([*label, *late], 10).tolist()
        predicted = rng.choice(pred, 24).tolist() + rng.choice([*pred, *late], 10).tolist()
        found.append((labels, predicted))
    return found


@pytest.mark.parametrize(("window", "positive"), [("all", 1), ("last:6", None)])
@pytest.mark.parametrize("number", range(len(streams())))
def test_minus_one_is_zero_until_a_side_has_both(window: str, positive: int | None, number: int) -> None:
    labels, predicted = streams()[number]
    scores = np.random.default_rng(3).random(len(labels)).tolist()
    word = None if positive is None else "one"
    expected = [
        oracle(labels[:end], predicted[:end], scores[:end], window=window, positive=word)
        for end in range(1, len(labels) + 1)
    ]
    for cut in (1, 7, len(labels)):
        evaluator = ModelEvaluator(**SETTINGS, window=window, positive=positive)
        found = []
        for start in range(0, len(labels), cut):
            part = slice(start, start + cut)
            rows = evaluator.update(labels[part], scores[part], predicted=predicted[part])
            found += [comparable(row) for row in rows]
            parts: list[bytes] = []
            write_evaluator(evaluator.state(), parts)
            assert evaluator.snapshot_bytes() == len(b"".join(parts))
            evaluator = ModelEvaluator.from_bytes(evaluator.to_bytes())
        assert found == expected


@pytest.mark.parametrize("weights", [False, True])
def test_events_held_are_told_apart_with_weights_too(weights: bool) -> None:
    labels, predicted = [-1, 1, -1, 1, 0], [0, 1, 0, 0, 1]
    given = {"weights": [1.5, 1, 2, 1, 3]} if weights else {}
    evaluator = ModelEvaluator(positive=1, measures="all")
    evaluator.update(labels[:4], [0.1] * 4, predicted=predicted[:4], **{k: v[:4] for k, v in given.items()})
    assert evaluator.measures().accuracy == (4.5 / 5.5 if weights else 0.75)
    evaluator.update(labels[4:], [0.1], predicted=predicted[4:], **{k: v[4:] for k, v in given.items()})
    assert evaluator.measures().accuracy == (1 / 8.5 if weights else 0.2)
    assert sorted(evaluator.state().class_names) == ["-1", "0", "1"]


def test_a_state_whose_classes_contradict_each_other_is_refused() -> None:
    evaluator = ModelEvaluator(positive=1)
    evaluator.update([-1, 1], [0.1, 0.2], predicted=[0, 1])
    state = evaluator.state()
    assert state.class_names == ("1", " -1|0")
    names = (*state.class_names, "0")
    wrong = replace(state, class_names=names, last_seen=np.zeros(3, np.int64))
    with pytest.raises(CorruptBytesError, match=r"named ' -1\|0' beside the classes"):
        ModelEvaluator.from_state(evaluator.settings, wrong)


@pytest.mark.parametrize("positive", [0, -1])
def test_where_minus_one_or_zero_is_positive_they_are_two_classes(positive: int) -> None:
    evaluator = ModelEvaluator(positive=positive)
    evaluator.update([-1, 1, -1], [0.1, 0.2, 0.3], predicted=[0, 1, 0])
    assert evaluator.measures().accuracy == pytest.approx(1 / 3)
