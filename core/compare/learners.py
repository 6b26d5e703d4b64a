"""LearnerComparisons: the state machine that compares learners over all folds, and averages their measures.

Invariant
    Its rows are a function of the folds' records, whatever the order of arrival and the restarts. A
    checkpoint is compared when all folds have reached it, after all earlier checkpoints.

Learners are tested over folds by `compare_learners`; a measure's mean is over the folds that have a value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import FloatArray, Int64Array
from ..errors import InputError
from ..rows.columns import MASS_COLUMNS
from .comparison_settings import ComparisonSettings
from .comparisons import Checkpoint, ComparisonRow, FoldMean, compare_learners, noted
from .fold_report import GatheringMachine, PairedFold

MAGIC = b"RSLC"


class LearnerComparisons(GatheringMachine[ComparisonRow | FoldMean]):
    """The state machine that compares all learners over all folds by their `PairedFold`s.

    See `ComparisonSettings`.
    """

    _magic, _what = MAGIC, "the state of a comparison over folds"

    def __init__(self, settings: ComparisonSettings) -> None:
        super().__init__(settings, settings.folds)

    def _place_of(self, record: bytes) -> tuple[int, int]:
        """Return the fold and the checkpoint of a record. Raises the errors of `apply`."""
        paired = PairedFold.unpack(record)
        wanted = len(self.settings.learners), len(self.settings.columns)
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
                of_measure = np.ascontiguousarray(values[:, :, self.settings.columns.index(measure)].T)
                for row in compare_learners(
                    learners, of_measure, measure, at, self.settings.alpha, of_one_stream=True
                ):
                    yield self._with_failures(row, failures)
        first = len(MASS_COLUMNS)
        yield from _means(learners, self.settings.columns[first:], values[:, :, first:], at)

    def _with_failures(self, row: ComparisonRow, failures: Int64Array) -> ComparisonRow:
        """Return the row with a note on the number of instances at which its learners failed."""
        said = [
            f"{name} failed at {count:,} instances of its folds"
            for name, count in zip(self.settings.learners, failures.tolist(), strict=True)
            if count and (not row.learner_a or name in (row.learner_a, row.learner_b))
        ]
        return noted(row, "; ".join(said)) if said else row

    @classmethod
    def from_bytes(cls, data: bytes, settings: ComparisonSettings) -> LearnerComparisons:
        """Read a snapshot: the result returns the same later rows as the machine that wrote the snapshot.

        Raises OtherConfigurationError if the snapshot has other settings, a `WireError` for any other bytes.
        """
        return cls(settings)._loaded(data)


def _means(
    learners: tuple[str, ...], measures: tuple[str, ...], values: FloatArray, at: Checkpoint
) -> Iterator[FoldMean]:
    """Yield the means of values [fold, learner, measure], learner by learner."""
    for row, name in enumerate(learners):
        for place, measure in enumerate(measures):
            of_folds = values[:, row, place]
            known = of_folds[np.isfinite(of_folds)]
            if known.size:
                yield FoldMean(
                    *at, name, measure, known.size, float(known.mean()),
                    float(known.std(ddof=1)) if known.size > 1 else None,
                    float(known.min()), float(known.max()),
                )  # fmt: skip
