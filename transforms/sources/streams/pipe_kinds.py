"""Separates label records from the other records of one pipe.

Each group is a partition of a stream.

Invariant
    Every record is in one of the two partitions, in the order of the pipe. A partition's records do not
    depend on how the pipe's bytes were cut. One block of the pipe is in memory, and the next block is read
    when both partitions have given all their records of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....core.arrays import BoolArray, Int64Array
from ....core.process.console import logger
from ...events.columns import class_text, texts
from ...events.fields import EventFields, Role
from ..files.json_lines import JsonLines
from .pipe_partition import Given, PipeLines, PipePartition, records_in

_logger = logger("rocsteady.streams")

_TELLING = 10_000
"""If none of the first so many records is a label, a warning is printed, because the value of labels is
probably wrong.
"""

_SHOWN = 5


@dataclass(frozen=True)
class LabelRecords:
    """Which records of a pipe are labels: the records with this value in this column."""

    column: str
    value: str

    def __str__(self) -> str:
        return f"{self.column}={self.value}"


class _Kinds:
    """Deals the records of a pipe to both partitions."""

    def __init__(self, lines: PipeLines, labels: LabelRecords) -> None:
        self.lines = lines
        self._labels = labels
        self._wanted = class_text(labels.value)
        self._reader = JsonLines(lines.name, [labels.column], [labels.column])
        self._waiting: dict[bool, list[Given]] = {False: [], True: []}
        self._count = 0
        self._values: set[str] = set()
        self._is_told = False  # whether the warning was given, or is not needed

    def read(self, of_labels: bool, wait: float) -> tuple[list[Given], bool]:
        """Return the new records of a partition, and whether more may be there now.

        See `RecordLines.read`.
        """
        others = bool(self._waiting[not of_labels])
        came = bool(self._waiting[of_labels]) or others
        if not self._waiting[of_labels] and (not others or self.lines.is_stopped):
            found, came = self.lines.read(wait)
            for given in found:
                self._deal(given)
            self._tell_without_labels()
        found, self._waiting[of_labels] = self._waiting[of_labels], []
        return found, came

    def has_ended(self, of_labels: bool) -> bool:
        """Return whether a partition has given all of its records."""
        return self.lines.has_ended and not self._waiting[of_labels]

    def _deal(self, given: Given) -> None:
        lines = records_in(given.lines)
        first = int(given.long is not None)  # its kind is not known, so it counts as no label
        places = np.arange(self._count, self._count + first + len(lines))
        self._count += len(places)
        of_labels, kindless = self._kinds_of(given.lines, len(lines))
        for chosen, long in ((True, None), (False, given.long)):
            rows = np.flatnonzero(of_labels == chosen)
            if not len(rows) and long is None:
                continue
            block = b"".join([lines[row] for row in rows.tolist()])
            taken = rows + first
            lacks = kindless[rows]
            if long is not None:
                taken, lacks = np.concatenate(([0], taken)), np.concatenate(([False], lacks))
            self._waiting[chosen].append(Given(long, block, places[taken], lacks))

    def _kinds_of(self, block: bytes, number: int) -> tuple[BoolArray, BoolArray]:
        """Return for each record whether it is a label, and whether it is an object without a kind."""
        of_labels, kindless = np.zeros(number, np.bool_), np.zeros(number, np.bool_)
        if not number:
            return of_labels, kindless
        chunk = self._reader.chunk(block)
        rows = self._rows(chunk.places())
        column = chunk.batch.schema.get_field_index(self._labels.column)
        if column < 0:
            kindless[rows] = True
            return of_labels, kindless
        kinds = texts(chunk.batch.column(column), class_text)
        is_wanted = np.array([*(value == self._wanted for value in kinds.values), False], np.bool_)
        of_labels[rows], kindless[rows] = is_wanted[kinds.codes], kinds.codes < 0
        self._is_told |= bool(of_labels.any())
        if not self._is_told and len(self._values) < _SHOWN:
            self._values.update(kinds.values[:_SHOWN])
        return of_labels, kindless

    def _rows(self, places: Int64Array | None) -> Int64Array:
        if places is None:
            raise AssertionError("lines have places")
        return places

    def _tell_without_labels(self) -> None:
        """Warn once that no record is a label, if none of the first records, or of the whole pipe, is."""
        if self._is_told or not self._count or not (self.lines.has_ended or self._count >= _TELLING):
            return
        self._is_told = True
        values = ", ".join(map(repr, sorted(self._values)[:_SHOWN])) or "nothing"
        _logger.warning(
            "none of the first %s records of %s is a label: --label-records %s, and the column %r has %s",
            f"{self._count:,}", self.lines.name, self._labels, self._labels.column, values,
        )  # fmt: skip


class _OfKind:
    """The lines of label records, or of all other records; see `RecordLines`."""

    def __init__(self, kinds: _Kinds, of_labels: bool) -> None:
        self._kinds = kinds
        self._of_labels = of_labels

    @property
    def has_ended(self) -> bool:
        """Whether the last line has been given."""
        return self._kinds.has_ended(self._of_labels)

    @property
    def is_stopped(self) -> bool:
        """Whether the input ends with the bytes that are in the pipe now."""
        return self._kinds.lines.is_stopped

    def read(self, wait: float) -> tuple[list[Given], bool]:
        """Return the new records, and whether more may be there now."""
        return self._kinds.read(self._of_labels, wait)

    def stop(self) -> None:
        """End the pipe, for both kinds of records."""
        self._kinds.lines.stop()


def pipe_kinds(
    lines: PipeLines, labels: LabelRecords, fields: EventFields, label_fields: EventFields
) -> tuple[tuple[Role, PipePartition], tuple[Role, PipePartition]]:
    """Return the partitions of predictions and of labels of one pipe, with their roles.

    A record is a prediction if it has any value other than the value of labels. An object without a value
    gives a dead letter, and so does a line that is no object: both are in the partition of predictions.
    """
    kinds, name = _Kinds(lines, labels), lines.name
    more = {"pipe": name, "kind": labels.column}
    predictions = PipePartition(_OfKind(kinds, False), fields, "prediction", name, **more)
    of_labels = PipePartition(_OfKind(kinds, True), label_fields, "label", f"labels of {name}", **more)
    return ("prediction", predictions), ("label", of_labels)
