"""`EvaluateFolds` and `CompareFolds`: the core of `Prequential`.

`EvaluateFolds` takes packets of instances, and gives rows and reports of all folds of all learners. All
packets belong to one shard, because the stream has one order. Each packet goes to every fold of every
learner. The machines of the folds (`core.prequential`) have keys of their own and run in parallel.

`CompareFolds` takes the reports, and gives comparisons of the learners and means over folds. State machines
do the work in two steps. First, a machine per fold compares the fold's learners (`FoldPairs`). Then a single
machine compares over all folds (`LearnerComparisons`). The results are the same on every runner, for any
order of the reports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.coders import Coder, RowCoder, registry
from apache_beam.pvalue import TaggedOutput
from apache_beam.utils.windowed_value import WindowedValue

from ...core.compare.comparison_settings import ComparisonSettings
from ...core.compare.comparisons import ComparisonRow, FoldMean
from ...core.compare.fold_pairs import FoldPairs
from ...core.compare.fold_report import FoldReport
from ...core.compare.learners import LearnerComparisons
from ...core.encoding.fields import Reader, packed_text
from ...core.encoding.json import read_json, reading, whole
from ...core.prequential.fold import FoldOutput, PrequentialFold
from ...core.prequential.fold_settings import PrequentialSettings, all_keys, place_of
from ...core.prequential.wire import shared_record
from ...core.shard.machine import Pane
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ...core.state.compile_ahead import warm_up
from ..beam.machine import MachineOutputs, RunStateMachine, timestamp, unchanged
from ..evaluate.shards import RowsCoder
from ..events.dead_letters import RejectedLetters
from ..events.fields import EventFields


class FoldOutputCoder(Coder):
    """The coder of `FoldOutput` between the stages of a pipeline: the lengths, the rows, the reports."""

    def encode(self, output: FoldOutput) -> bytes:
        """Return the bytes of rows and reports."""
        rows = RowsCoder().encode(output.rows)
        head = json.dumps([len(rows), *map(len, output.reports)])
        return b"".join((packed_text(head), rows, *output.reports))

    def decode(self, encoded: bytes) -> FoldOutput:
        """Return the rows and reports that `encode` was given."""
        what = "reports between two stages"
        with reading(what):
            reader = Reader(memoryview(encoded))
            parts = [bytes(reader.read(whole(size, 0))) for size in read_json(reader.text(), what)]
            return FoldOutput(RowsCoder().decode(parts[0]), tuple(parts[1:]))

    def is_deterministic(self) -> bool:
        """Equal outputs have equal bytes."""
        return True

    def to_type_hint(self) -> type[FoldOutput]:
        """Return the type that the coder encodes."""
        return FoldOutput


registry.register_coder(FoldOutput, FoldOutputCoder)


@dataclass(frozen=True)
class FoldFactory:
    """Makes the machines of all folds of all learners.

    numbers     the names of the features that are numbers
    categories  the names of the features that are text
    """

    settings: PrequentialSettings
    numbers: tuple[str, ...]
    categories: tuple[str, ...]

    def warm_up(self) -> None:
        """Compile the evaluators' kernels, and make every learner once, so a faulty learner fails here."""
        warm_up(self.settings.compiled)
        self.settings.try_learners(self.numbers, self.categories)

    def new(self, pane: Pane | None, key: str) -> PrequentialFold:  # noqa: ARG002
        """Return a fold's machine without any instances."""
        return PrequentialFold(self.settings, *place_of(key))

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> PrequentialFold:  # noqa: ARG002
        """Return the machine of a snapshot, with its learner."""
        return PrequentialFold.from_bytes(snapshot, self.settings, *place_of(key))


class EvaluateFolds(beam.PTransform[beam.PCollection[tuple[str, bytes]], MachineOutputs]):
    """Trains, tests and measures all folds of all learners on packets (shard, record) of one shard.

    Outputs are `FoldOutput`s. Letters are late instances, and instances at which a learner failed.

    settings     the learners, folds, windows and rows
    fields       the user's names of an instance's columns
    cache_bytes  live machines that a process keeps between bundles
    lateness     see `RunStateMachine`
    """

    def __init__(
        self,
        settings: PrequentialSettings,
        fields: EventFields,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        lateness: int | None = None,
    ) -> None:
        super().__init__()
        self._keys = all_keys(settings.learners, settings.folds)
        letters = RejectedLetters(fields, instances=True)
        factory = FoldFactory(settings, fields.features, fields.slice_columns)
        self._machines = RunStateMachine(factory, FoldOutput, cache_bytes, letters, lateness)

    def expand(self, packets: beam.PCollection[tuple[str, bytes]]) -> MachineOutputs:
        """Apply the machines of the folds to packets; raise ConfigError for windows that merge."""
        spread = beam.FlatMap(_to_every_fold, self._keys).with_output_types(tuple[str, bytes])
        outputs: MachineOutputs = packets | "To every fold" >> spread | "Machines" >> self._machines
        return outputs


def _to_every_fold(packet: tuple[str, bytes], keys: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Return a record of the stream for every fold of every learner."""
    shared = shared_record(packet[1])
    return ((key, shared) for key in keys)


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
        """Compile nothing, because these machines have no kernels."""

    def new(self, pane: Pane | None, key: str) -> FoldPairs | LearnerComparisons:  # noqa: ARG002
        """Return a machine without any records."""
        return self.machine(self.settings, *_fold_of(key))

    def load(self, snapshot: bytes, pane: Pane | None, key: str) -> FoldPairs | LearnerComparisons:  # noqa: ARG002
        """Return the machine of a snapshot.

        Raise OtherConfigurationError for other settings, a `WireError` for damaged bytes.
        """
        return self.machine.from_bytes(snapshot, self.settings, *_fold_of(key))


def _fold_of(key: str) -> tuple[int, ...]:
    return () if key == _ALL else (int(key),)


class FoldComparisons(NamedTuple):
    """The outputs of `CompareFolds`.

    comparisons  `ComparisonRow`s. The Beam timestamp of a row is the row's time, if it has one.
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
