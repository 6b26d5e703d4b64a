"""Labels matched with predictions by looking at all pairs of them: the oracle of LabelMatcher."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from rocsteady.core.join.matching_steps import ORPHAN, SECOND, USED


class Prediction(NamedTuple):
    id: str
    time: int
    handle: int


class Label(NamedTuple):
    id: str
    time: int
    tie: int
    handle: int


What = tuple[str, int, int]
"""What a label is: id, time and tie. Labels that agree in it are one and its repeats."""


@dataclass(frozen=True)
class Truth:
    """label_of: by prediction, None where it is unmatched; fate_of: of labels but for their repeats."""

    label_of: dict[int, What | None]
    fate_of: dict[What, int]


def matched(predictions: list[Prediction], labels: list[Label], ttl: int, lead: int, second: str) -> Truth:
    every = {(label.id, label.time, label.tie) for label in labels}
    label_of: dict[int, What | None] = {}
    candidate_of = defaultdict(set)
    for prediction in predictions:
        candidates = [
            what for what in every if what[0] == prediction.id and -lead <= what[1] - prediction.time <= ttl
        ]
        choose = max if second == "last" else min
        label_of[prediction.handle] = choose(candidates, key=lambda what: what[1:], default=None)
        for what in candidates:
            candidate_of[what].add(prediction.handle)
    used = set(label_of.values())
    return Truth(
        label_of,
        {what: USED if what in used else SECOND if candidate_of[what] else ORPHAN for what in every},
    )
