"""LearnerComparisons: the state machine that compares learners over all folds, and averages their measures.

Invariant
    Its rows are a function of the folds' records. They do not depend on order of arrival, nor on restarts. A
    checkpoint is compared when all folds have reached it, after all earlier checkpoints.

Learners are tested over folds by `compare_learners`; a measure's mean is over the folds that have a value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..encoding.fields import Reader, packed_text
from ..encoding.frames import framed, unframed
from ..encoding.json import reading
from ..errors import InputError
from ..events.records import MAGIC as WORD_MAGIC
from ..events.records import unpack_record
from ..rows.columns import MASS_COLUMNS, NUMBER_COLUMNS
from ..settings.measures import MEASURES
from .comparisons import Checkpoint, ComparisonRow, FoldMean, compare_learners
from .gathering import Gathering
from .paired_fold import PairedFold
from .settings import ComparisonSettings

MAGIC = b"RSLC"
VERSION = 1
_FEW_HUNDRED_BYTES = 500


class LearnerComparisons:
    """Compares all learners over all folds; see `ComparisonSettings`.

    It ignores the end of the input and other control records: the last checkpoint is marked as the last.
    """

    def __init__(self, settings: ComparisonSettings) -> None:
        self.settings = settings
        self._folds = Gathering(settings.folds)
        self._head_bytes = len(self.to_bytes()) - self._folds.written_bytes

    def apply(self, record: bytes) -> list[ComparisonRow | FoldMean]:
        """Take a packed `PairedFold`; return the rows of the checkpoints that are now complete.

        Raises a `WireError` for bytes that are no record, InputError for a fold of another evaluation.
        """
        if record[:4] == WORD_MAGIC:
            unpack_record(record)
            return []
        self._folds.add(*self._place_of(record), record)
        return [row for records in self._folds.complete() for row in self._compared(records)]

    def _place_of(self, record: bytes) -> tuple[int, int]:
        """Return the fold and the checkpoint of a record. Raises as `apply` does."""
        paired = PairedFold.unpack(record)
        wanted = len(self.settings.learners), len(NUMBER_COLUMNS)
        if paired.fold >= self.settings.folds or paired.measures.shape != wanted:
            raise InputError(
                f"fold {paired.fold} came with values of the shape {paired.measures.shape} to a comparison "
                f"of {wanted[0]} learners over {self.settings.folds} folds; send it its own"
            )
        return paired.fold, paired.checkpoint

    def _compared(self, records: list[bytes]) -> Iterator[ComparisonRow | FoldMean]:
        folds = [PairedFold.unpack(record) for record in records]
        at = folds[0].at
        values = np.array([fold.measures for fold in folds])  # [fold, learner, column]
        failures = np.sum([fold.failures for fold in folds], axis=0)
        learners = self.settings.learners
        if len(learners) > 1:
            for measure in self.settings.measures:
                of_measure = np.ascontiguousarray(values[:, :, NUMBER_COLUMNS.index(measure)].T)
                for row in compare_learners(
                    learners, of_measure, measure, at, self.settings.alpha, of_one_stream=True
                ):
                    yield self._with_failures(row, failures)
        yield from _means(learners, values[:, :, len(MASS_COLUMNS) :], at)

    def _with_failures(self, row: ComparisonRow, failures: Int64Array) -> ComparisonRow:
        """Return the row with a note on the number of instances at which its learners failed."""
        said = [
            f"{name} failed at {count:,} instances of its folds"
            for name, count in zip(self.settings.learners, failures.tolist(), strict=True)
            if count and (not row.learner_a or name in (row.learner_a, row.learner_b))
        ]
        return row._replace(reason="; ".join([row.reason, *said] if row.reason else said)) if said else row

    # ---- state

    def wakes_at(self) -> int | None:
        """Return None: this state machine needs no clock."""
        return None

    def to_bytes(self) -> bytes:
        """Return a snapshot: a frame with magic "RSLC" around the settings and the records that wait."""
        return framed(MAGIC, VERSION, packed_text(self.settings.to_json()) + self._folds.write())

    @classmethod
    def from_bytes(cls, data: bytes, settings: ComparisonSettings) -> LearnerComparisons:
        """Read a snapshot: the result returns the same later rows as the machine that wrote the snapshot.

        Raises OtherConfigurationError if the snapshot has other settings, a `WireError` for any other bytes.
        """
        reader = Reader(unframed(data, MAGIC, VERSION, "the state of a comparison over folds"))
        self = cls(settings)
        with reading("the state of a comparison over folds"):
            settings.check(reader.text())
            self._folds = Gathering.read(reader, settings.folds, self._place_of)
            reader.end()
        return self

    def snapshot_bytes(self) -> int:
        """Return the length of `to_bytes()` in bytes. O(1)."""
        return self._head_bytes + self._folds.written_bytes

    def counts(self) -> dict[str, int]:
        """Return no counts: its records are counted where they are made."""
        return {}

    def gauges(self) -> dict[str, int]:
        """Return how many records wait for records of other folds."""
        return {"reports_waiting": len(self._folds)}

    def live_bytes(self) -> int:
        """Estimate the memory in bytes. O(1)."""
        return _FEW_HUNDRED_BYTES * (2 + len(self._folds)) + self._folds.nbytes


def _means(learners: tuple[str, ...], values: FloatArray, at: Checkpoint) -> Iterator[FoldMean]:
    """Yield the means of values [fold, learner, measure], learner by learner."""
    known = np.isfinite(values)
    counts = known.sum(axis=0)
    divisors = np.maximum(counts, 1)
    means = np.where(known, values, 0.0).sum(axis=0) / divisors
    squares = np.where(known, (values - means) ** 2, 0.0).sum(axis=0)
    spreads = np.sqrt(squares / np.maximum(counts - 1, 1))
    least = np.where(known, values, np.inf).min(axis=0)
    greatest = np.where(known, values, -np.inf).max(axis=0)
    for row, name in enumerate(learners):
        for place in np.flatnonzero(counts[row]).tolist():
            folds = int(counts[row, place])
            yield FoldMean(
                *at, name, MEASURES[place], folds, float(means[row, place]),
                float(spreads[row, place]) if folds > 1 else None,
                float(least[row, place]), float(greatest[row, place]),
            )  # fmt: skip
