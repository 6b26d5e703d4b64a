"""CompareFolds: reports of the folds of learners in, comparisons of the learners and means over folds out.

State machines do the work in two steps. First, a machine per fold compares the fold's learners (`FoldPairs`).
Then a single machine compares over all folds (`LearnerComparisons`). The results are the same on every
runner, for any order of the reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.coders import RowCoder, registry
from apache_beam.pvalue import TaggedOutput
from apache_beam.utils.windowed_value import WindowedValue

from ...core.compare.comparisons import ComparisonRow, FoldMean
from ...core.compare.fold_pairs import FoldPairs
from ...core.compare.fold_report import FoldReport
from ...core.compare.learners import LearnerComparisons
from ...core.compare.settings import ComparisonSettings
from ...core.shard.machine import Pane
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ..beam.machine import RunStateMachine, timestamp, unchanged

registry.register_coder(ComparisonRow, RowCoder)
registry.register_coder(FoldMean, RowCoder)

_COMPARISONS, _MEANS, _FOLDS = "comparisons", "means", "folds"
_ALL = "all folds"
"""The key of the second step's only machine. The key never changes, because it identifies the state."""


@dataclass(frozen=True)
class ComparisonFactory:
    """Makes the machines of a step: `FoldPairs`, keyed by their folds' numbers, or `LearnerComparisons`."""

    machine: type[FoldPairs | LearnerComparisons]
    settings: ComparisonSettings

    def warm_up(self) -> None:
        """Nothing is compiled."""

    def new(self, pane: Pane | None, key: str) -> FoldPairs | LearnerComparisons:  # noqa: ARG002
        """Return a machine without any records."""
        return self.machine(self.settings, *_fold_of(key))

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> FoldPairs | LearnerComparisons:  # noqa: ARG002
        """Return the machine of a snapshot; raises OtherConfigurationError, or a `WireError`."""
        return self.machine.from_bytes(snapshot, self.settings, *_fold_of(key))


def _fold_of(key: str) -> tuple[int, ...]:
    return () if key == _ALL else (int(key),)


class FoldComparisons(NamedTuple):
    """The outputs of `CompareFolds`.

    comparisons  `ComparisonRow`s. A row's Beam timestamp is the row's time, if the row has a time.
    means        `FoldMean`s, with Beam timestamps as those of `comparisons`.
    """

    comparisons: beam.PCollection[ComparisonRow]
    means: beam.PCollection[FoldMean]


class CompareFolds(beam.PTransform[beam.PCollection[bytes], FoldComparisons]):
    """Compares learners by packed `FoldReport`s, in any order; repeated reports have no effect.

    cache_bytes  bytes of live machines that a process keeps between bundles
    """

    def __init__(self, settings: ComparisonSettings, cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        super().__init__()
        self._pairs = RunStateMachine(ComparisonFactory(FoldPairs, settings), Any, cache_bytes)
        self._learners = RunStateMachine(ComparisonFactory(LearnerComparisons, settings), Any, cache_bytes)

    def expand(self, reports: beam.PCollection[bytes]) -> FoldComparisons:
        """Compare the learners in each fold, then over all folds."""
        pairs, _, _ = (
            reports
            | "By fold" >> beam.Map(_by_fold).with_output_types(tuple[str, bytes])
            | "Pairs" >> self._pairs
        )
        in_folds = pairs | "Parts of folds" >> beam.ParDo(_parted).with_outputs()
        outputs, _, _ = (
            in_folds[_FOLDS]
            | "All folds" >> beam.Map(_to_all).with_output_types(tuple[str, bytes])
            | "Learners" >> self._learners
        )
        over_folds = outputs | "Parts" >> beam.ParDo(_parted).with_outputs()
        comparisons = (in_folds[_COMPARISONS], over_folds[_COMPARISONS]) | "Comparisons" >> beam.Flatten()
        return FoldComparisons(
            comparisons | "Rows" >> beam.Map(unchanged).with_output_types(ComparisonRow),
            over_folds[_MEANS] | "Means" >> beam.Map(unchanged).with_output_types(FoldMean),
        )


def _by_fold(report: bytes) -> tuple[str, bytes]:
    return str(FoldReport.unpack(report).fold), report


def _to_all(paired: bytes) -> tuple[str, bytes]:
    return _ALL, paired


def _parted(
    output: bytes | ComparisonRow | FoldMean,
    time: Any = beam.DoFn.TimestampParam,
    window: Any = beam.DoFn.WindowParam,
) -> Iterator[Any]:
    """Put records, comparisons and means into separate outputs; rows get their own times as timestamps."""
    if isinstance(output, bytes):
        yield TaggedOutput(_FOLDS, output)
        return
    moment = time if output.time is None else timestamp(output.time)
    tag = _MEANS if isinstance(output, FoldMean) else _COMPARISONS
    yield TaggedOutput(tag, WindowedValue(output, moment, (window,)))
