"""Makes learners from the names that a user writes.

majority, majority:1000, majority:all   the majority class: of the evaluation window, of the last 1,000
                                        instances learnt, of all instances
persistent                              the class of the instance before
logistic, naive-bayes, hoeffding, adaptive-forest    river's learners (`named`)
aum, polynomial-auc                     our own (`learning.aum.learner`, `learning.polynomial.learner`)
module:factory                          the object that a function or class returns, with learn_one (river)
                                        or partial_fit (scikit-learn)
model.pickle                            a pickled learner, only if the user trusts the file
NAME=any of these                       the learner of any line above, under another name

`BaselineLearner` looks only at labels: the majority class, or the class of the instance before. These are the
classifiers inside kappa_m and kappa_per. They use the evaluator's own function for the majority
(`decisions.majority_class`, ties included). So the majority learner of the last k instances has a kappa_m of
0 in every row of a window of the last k. The persistent learner has a kappa_per of 0 in every window (Bifet
et al. 2015, section 5). Both are 0 only if an instance counts once, however many times a fold trains on it:
the window of a fold also holds an instance once.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import BoolArray, Int64Array
from ..encoding.fields import Reader
from ..encoding.json import reading, text_of, whole
from ..errors import ConfigError
from ..events.columns import TextColumn
from ..ids.chances import seed_of
from ..measures.decisions import LABELS, LAST_SEEN, majority_class
from .calls import readers
from .instances import Instances, Learner, Outcome, Output, Task, outcome_of
from .models import BySteps, Make, NoisyLearner, OneByOne
from .named import NAMED, named_learner
from .wire import MAX_BYTES, contradiction, pack_learner, told_as, unpack_learner, unpickled

_ROWS = LAST_SEEN + 1


class BaselineLearner:
    """Predicts the majority class of the last `size` instances that it learnt; None = of all instances.

    `size` 1 is the persistent classifier. Before any label the learner predicts the negative class, or "". Of
    tied classes it predicts the class that it saw last.
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
        answers: list[Output] = [0.0, 1.0] if self._task.is_binary else [*self._codes]
        none: Output = 0.0 if self._task.is_binary else ""
        if self._task.scores:
            read, read_label = readers(self._task)
            answers, none = [read_label(name) for name in self._codes], read({})
        outputs: list[Output | None] = [None] * len(codes)
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
        """See `Learner`."""
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
        """Return the classes of the instances as codes of this learner."""
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


__all__ = ["NAMED", "Instances", "Learner", "LearnerSpec", "Outcome", "Task", "seed_of"]

_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_BASELINE = re.compile(r"persistent|majority(:(all|[1-9]\d{0,11}))?")
_PICKLE = re.compile(r".*\.(pickle|pkl)", re.DOTALL)
_MAX_STEP = 1_000_000


@dataclass(frozen=True)
class LearnerSpec:
    """A learner as the user names it.

    name     the model's name in rows
    factory  see the module
    noise    probability with which a prediction is flipped to another class
    batch    instances of a step: the model predicts them as it was before the step, and learns them at the
             end of the step. 1: one by one, as the majority and the persistent learner always work
    pickled  the bytes of a pickled model; the user trusts them

    >>> LearnerSpec.parse("tree=hoeffding")
    LearnerSpec(name='tree', factory='hoeffding', noise=0.0, batch=1)
    """

    name: str
    factory: str
    noise: float = 0.0
    batch: int = 1
    pickled: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.factory:
            raise ConfigError(f"the learner {self.name!r}={self.factory!r} has no name: give NAME=FACTORY")
        if isinstance(self.noise, bool) or not 0.0 <= self.noise < 1.0:
            raise ConfigError(
                f"learner {self.name!r}: noise={self.noise!r} is no probability from 0 to below 1"
            )
        if not isinstance(self.batch, int) or not 1 <= self.batch <= _MAX_STEP:
            raise ConfigError(
                f"learner {self.name!r}: batch={self.batch!r}; a step has from 1 to {_MAX_STEP:,} instances"
            )
        if _PICKLE.fullmatch(self.factory):
            if self.pickled is None:
                raise ConfigError(
                    f"learner {self.name!r}: {self.factory} is a pickle, and reading one runs whatever code "
                    "is in it; where you trust its author, say --trust-learners, or name a factory "
                    "(module:factory)"
                )
        elif self.factory not in NAMED and not _BASELINE.fullmatch(self.factory):
            if not _FACTORY.fullmatch(self.factory):
                raise ConfigError(
                    f"learner {self.factory!r} is none: there are majority, majority:N, majority:all, "
                    f"persistent, {', '.join(NAMED)}, or a factory of your own as module:factory"
                )
            if self.factory.startswith("majority:"):
                raise ConfigError(
                    f"learner {self.factory!r}: the majority of how many? Give a whole number from 1, or all"
                )
            if (word := self.factory.partition(":")[0]) in (*NAMED, "persistent"):
                raise ConfigError(f"learner {self.factory!r}: {word} takes nothing behind it; leave it away")

    @classmethod
    def parse(cls, text: str, noise: float = 0.0, batch: int = 1, *, trust: bool = False) -> LearnerSpec:
        """Read the text by which a user names a learner. Raises ConfigError for a text that names none.

        trust  whether pickle files may be read. `parse` reads them, so that workers need no file
        """
        name, equals, factory = (word.strip() for word in text.partition("="))
        if not equals:
            factory = name
            if _FACTORY.fullmatch(factory) and not factory.startswith("majority:"):
                name = factory.partition(":")[2]
            elif _PICKLE.fullmatch(factory):
                name = Path(factory).stem
        pickled = _file_bytes(name, factory) if trust and _PICKLE.fullmatch(factory) else None
        return cls(name, factory, noise, batch, pickled)

    def make(self, task: Task, seed: int, window: int | None, state: bytes | None = None) -> Learner:
        """Return a new learner, or the learner whose state is given.

        A pickled learner keeps what it learnt before it was pickled.

        seed    see `ids.chances.seed_of`
        window  events of the evaluation window last:N, which `majority` follows; None: `majority` uses all
                events
        state   bytes that `Learner.to_bytes` gave. Reading them may run code: only a job's own state may be
                read. None: the learner is new

        Raises ConfigError or MissingPackageError if the learner cannot be made, and a `WireError` or
        OtherConfigurationError for a state that cannot be read.
        """
        if task.is_binary and not 0.0 < task.threshold <= 1.0:
            raise ConfigError(
                f"threshold={task.threshold!r}: scores of learners are probabilities; give a number above 0, "
                "up to 1"
            )
        learner: Learner
        if _BASELINE.fullmatch(self.factory):
            learner = BaselineLearner(self.name, task, self._size(window))
        elif self.batch > 1:
            learner = BySteps(self.name, task, self.batch, self._model_maker(task, seed))
        else:
            learner = OneByOne(self.name, task, self._model_maker(task, seed))
        if self.noise:
            learner = NoisyLearner(self.name, learner, task, self.noise, seed)
        if state is not None:
            learner.restore(state)
        return learner

    def _size(self, window: int | None) -> int | None:
        if self.factory == "persistent":
            return 1
        words = self.factory.partition(":")[2]
        if not words:
            return window
        return None if words == "all" else int(words)

    def _model_maker(self, task: Task, seed: int) -> Make:
        if self.pickled is not None:
            model = unpickled(self.name, self.factory, self.pickled)
        elif self.factory in NAMED:
            return named_learner(self.name, self.factory, task, seed, self.batch)
        else:
            model = self._call(self._imported(), seed)
        return lambda _: model

    def _imported(self) -> Callable[..., Any]:
        """Import the factory of the learner and return it. Raises ConfigError if it cannot be imported."""
        module, _, path = self.factory.partition(":")
        with told_as(
            ConfigError,
            f"learner {self.name!r}: the module {module!r} cannot be imported: ",
            "a factory must be importable wherever the job runs, on its workers too (install it there, or "
            "set PYTHONPATH)",
        ):
            found: Any = importlib.import_module(module)
        for word in path.split("."):
            if not hasattr(found, word):
                raise ConfigError(
                    f"learner {self.name!r}: {module} has no {path!r}; name a function or class of it"
                )
            found = getattr(found, word)
        if not callable(found):
            raise ConfigError(
                f"learner {self.name!r}: {self.factory} is of type {type(found).__name__} and cannot be "
                "called; name a function or class that makes a learner"
            )
        return found  # type: ignore[no-any-return]

    def _call(self, factory: Callable[..., Any], seed: int) -> Any:
        """Call the factory and return the model; the factory gets the seed if it takes a seed.

        Raises ConfigError if the call fails.
        """
        choices = {}
        with suppress(TypeError, ValueError):  # extension types have no signature
            names = inspect.signature(factory).parameters
            choices = {name: seed for name in ("seed", "random_state") if name in names}
        with told_as(
            ConfigError,
            f"learner {self.name!r}: {self.factory} raised ",
            "a factory is called without arguments (but for seed or random_state, where it has one) and "
            "returns a learner",
        ):
            return factory(**choices)


def _file_bytes(name: str, file: str) -> bytes:
    try:
        data = Path(file).read_bytes()
    except OSError as problem:
        raise ConfigError(
            f"learner {name!r}: {file} cannot be read ({problem.strerror or problem}); give the path of "
            "a pickle"
        ) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"learner {name!r}: {file} has {len(data) >> 20:,} MB, more than the {MAX_BYTES >> 20} that a "
            "learner may hold; train a smaller one"
        )
    return data
