"""The streams of Bifet et al. 2015, shorter: three data sets and ten made by generators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from rocsteady.core.arrays import Int64Array
from rocsteady.core.errors import InputError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.ids.index import hash64_of_ids
from rocsteady.core.prequential.generators import GeneratedStream
from rocsteady.core.prequential.instances import Instances

from .data import data_file, read_csv

PAPER_LENGTH = 1_000_000
"""Instances of a generated stream of the paper, as its figure 4 has them."""

_REAL = {
    "CovType": ("covtype.csv.gz", "Cover_Type"),
    "Electricity": ("electricity.csv.gz", "class"),
    "Poker": ("poker.csv.gz", "class"),
}
_GENERATED = {
    "LED(50000)": ("led", 50_000),
    "SEA(50)": ("sea", 50),
    "SEA(50000)": ("sea", 50_000),
    "HYP(10,0.001)": ("hyperplane:10:0.001", 0),
    "HYP(10,0.0001)": ("hyperplane:10:0.0001", 0),
    "RBF(0,0)": ("rbf", 0),
    "RBF(50,0.001)": ("rbf:50:0.001", 0),
    "RBF(10,0.001)": ("rbf:10:0.001", 0),
    "RBF(50,0.0001)": ("rbf:50:0.0001", 0),
    "RBF(10,0.0001)": ("rbf:10:0.0001", 0),
}
STREAMS = (*_REAL, *_GENERATED)
"""By the paper's names, in the order of its tables 3 and 4."""


@dataclass(frozen=True, eq=False)
class LabelledStream:
    """Instances whose labels are classes.

    codes  int64[n] of classes, by their places in `classes`
    """

    name: str
    ids: IdColumn
    instances: Instances
    codes: Int64Array
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, positive: str | None = None) -> EventBatch:
        """Return the instances as they travel; with labels of 1 and 0 where a class is positive."""
        blank = TextColumn(np.zeros(len(self), np.int32), ("",))
        assert isinstance(self.instances.labels, TextColumn)
        labels = self.labels_of(positive) if positive is not None else np.full(len(self), -1, np.int8)
        return EventBatch(
            models=blank,
            scores=np.zeros(len(self)),
            labels=labels,
            ids=self.ids,
            label_classes=self.instances.labels if positive is None else None,
            predicted=blank if positive is None else None,
            features=self.instances.numbers,
        )

    def binary(self, positive: str) -> Instances:
        """Return the instances with labels of 1 and 0."""
        given = self.instances
        return Instances(given.numbers, given.categories, self.labels_of(positive), given.hashes)

    def labels_of(self, positive: str) -> np.ndarray:
        """Return int8[n]: 1 for the class that counts as positive."""
        return (self.codes == self.classes.index(positive)).astype(np.int8)


def stream_of(name: str, count: int, seed: int) -> LabelledStream:
    """Return the first instances of one of STREAMS; another seed makes another of a generator's.

    Raises ConfigError, InputError as `data.data_file` does.
    """
    return _real(name, count) if name in _REAL else _made(name, _generator(name, count, seed))


def width_of(width: int, count: int) -> int:
    """Return the width of a drift in a stream of `count` instances: the same share as in the paper's."""
    return max(1, round(width * count / PAPER_LENGTH)) if width else 0


def drifting(count: int, seed: int) -> LabelledStream:
    """Return hyperplanes that give way to others at each quarter, at once (figure 4)."""
    drifts = tuple(count * quarter // 4 for quarter in (1, 2, 3))
    return _made("hyperplanes", GeneratedStream("hyperplane", count, seed, drifts))


def _generator(name: str, count: int, seed: int) -> GeneratedStream:
    kind, width = _GENERATED[name]
    drifts = [count * quarter // 4 for quarter in (1, 2, 3)] if width else []
    return GeneratedStream.parse(kind, count, seed, drifts, width=width_of(width, count))


def _made(name: str, stream: GeneratedStream) -> LabelledStream:
    made = list(stream.instances())
    numbers = tuple((key, np.array([each[key] for each in made], np.float64)) for key in stream.numbers)
    labels = [str(each["label"]) for each in made]
    return _stream(name, numbers, labels, stream.classes, [each["id"] for each in made])


@cache
def _real(name: str, count: int) -> LabelledStream:
    file, label = _REAL[name]
    table = read_csv(data_file(file), lines=count + 1)
    if label not in table.column_names:
        raise InputError(f"{data_file(file)} has no column {label!r}")
    numbers = tuple(
        (key, table[key].cast(pa.float64()).to_numpy()) for key in table.column_names if key != label
    )
    labels = [str(value) for value in table[label].to_pylist()]
    ids = [f"{name}-{number}" for number in range(len(labels))]
    return _stream(name, numbers, labels, tuple(sorted(set(labels))), ids)


def _stream(
    name: str, numbers: tuple[tuple[str, np.ndarray], ...], labels: list[str], classes: tuple[str, ...],
    ids: list[str],
) -> LabelledStream:  # fmt: skip
    column = IdColumn.of(list(ids))
    places = {each: place for place, each in enumerate(classes)}
    codes = np.array([places[label] for label in labels], np.int64)
    instances = Instances(numbers, (), TextColumn(codes.astype(np.int32), classes), hash64_of_ids(column))
    return LabelledStream(name, column, instances, codes, classes)
