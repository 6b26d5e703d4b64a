"""Learners that look only at labels: the majority class, and the class of the instance before.

These are the classifiers inside kappa_m and kappa_per. They use the evaluator's own function for the majority
(`decisions.majority_class`, ties included). So the learner of the majority of the last k has a kappa_m of 0
in every row of a window of the last k. The persistent learner has a kappa_per of 0 in every window (Bifet et
al. 2015, section 5). For both zeros an instance counts once, however often a fold trains on it: the fold's
window also holds it once.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ..arrays import BoolArray, Int64Array
from ..encoding.fields import Reader
from ..encoding.json import reading, text_of, whole
from ..events.columns import TextColumn
from ..measures.decisions import LABELS, LAST_SEEN, majority_class
from .instances import Instances, Outcome, Task, outcome_of
from .wire import contradiction, pack_learner, unpack_learner

_ROWS = LAST_SEEN + 1


class BaselineLearner:
    """Predicts the majority class of the last `size` instances that it learnt; None = of all instances.

    `size` 1 is the persistent classifier. Before any label the learner predicts the negative class, or "". Of
    tied classes it predicts the one seen last.
    """

    def __init__(self, name: str, task: Task, size: int | None) -> None:
        self._name = name
        self._task = task
        self._size = size
        self._codes: dict[str, int] = {} if not task.is_binary else {"0": 0, "1": 1}
        self._classes = np.zeros((_ROWS, max(2, len(self._codes))), np.int64)
        self._held: deque[int] = deque()
        self._seq = 0

    def run(self, instances: Instances, weights: Int64Array, tests: BoolArray) -> Outcome:
        """See `Learner`. O(classes) an instance."""
        codes = self._codes_of(instances)
        classes, held, size = self._classes, self._held, self._size
        count = len(self._codes)
        answers: list[float | str] = [0.0, 1.0] if self._task.is_binary else [*self._codes]
        none: float | str = 0.0 if self._task.is_binary else ""
        outputs: list[float | str | None] = [None] * len(codes)
        majority = int(majority_class(classes, count))
        for row, (code, weight, is_tested) in enumerate(
            zip(codes, weights.tolist(), tests.tolist(), strict=True)
        ):
            if is_tested:
                outputs[row] = none if majority < 0 else answers[majority]
            if not weight:
                continue
            if size is not None:
                if len(held) == size:
                    classes[LABELS, held.popleft()] -= 1
                held.append(code)
            classes[LABELS, code] += 1
            classes[LAST_SEEN, code] = self._seq
            self._seq += 1
            majority = int(majority_class(classes, count))
        return outcome_of(self._task, outputs, [])

    def to_bytes(self) -> bytes:
        """See `Learner`."""
        head = self._settings() | {"seq": self._seq, "classes": list(self._codes), "held": len(self._held)}
        body = self._classes[[LABELS, LAST_SEEN], : len(self._codes)].astype("<i8").tobytes()
        return pack_learner(self._name, head, body + np.array(self._held, "<i4").tobytes())

    def restore(self, data: bytes) -> None:
        """Set the state that `to_bytes` returned."""
        head, body = unpack_learner(self._name, data, self._settings())
        with reading("the state of a learner"):
            names, held = [text_of(name) for name in head["classes"]], whole(head["held"], 0)
            reader = Reader(memoryview(body))
            masses = reader.array("<i8", 2 * len(names)).reshape(2, -1)
            codes = reader.array("<i4", held).tolist()
            reader.end()
            self._seq = whole(head["seq"], 0)
            if len(set(names)) < len(names) or (masses < 0).any():
                raise ValueError("a class is there twice, or has less than no events")
        if codes and not 0 <= min(codes) <= max(codes) < len(names):
            raise contradiction("a label of no class")
        for name in names:
            self._code(name)
        self._classes[[LABELS, LAST_SEEN], : len(names)] = masses
        self._held = deque(codes)

    def _settings(self) -> dict[str, Any]:
        return {"size": self._size, "is_binary": self._task.is_binary}

    def _codes_of(self, instances: Instances) -> list[int]:
        """Return the instances' classes as this learner's codes."""
        labels = instances.labels
        if not isinstance(labels, TextColumn):
            return labels.tolist()  # type: ignore[no-any-return]
        table = [self._code(name) for name in labels.values]
        return [table[code] for code in labels.codes.tolist()]

    def _code(self, name: str) -> int:
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self._codes)
            if code >= self._classes.shape[1]:
                self._classes = np.concatenate([self._classes, np.zeros_like(self._classes)], axis=1)
        return code
