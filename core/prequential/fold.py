"""The state machine of one fold of one learner: it tests, trains and measures, instance by instance.

Invariant
    The outputs depend on the stream and the settings only: not on how the stream was cut into packets, nor on
    restarts. At a checkpoint of the stream, after a fixed number of instances or at a grid point, every fold
    of every learner reports once, even if it tested nothing. So the reports of one checkpoint can be
    compared.

An instance of the stream first goes through `folds`, which decides whether this fold tests it and trains on
it. Then the learner predicts it and learns it. A `ModelEvaluator`, as for production models, measures the
predictions, or a `MulticlassEvaluator` where learners give a score of each class. In its rows the model is
the learner, and the slice is fold=3. The snapshot holds the learner's state as bytes that the learner itself
made.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..arrays import NO_INT64, BoolArray, FloatArray, Int8Array, Int64Array, UInt64Array
from ..classes.evaluator import MulticlassEvaluator
from ..classes.events import ClassEvents
from ..compare.fold_report import FoldReport
from ..encoding.fields import Reader, framed, packed_bytes, packed_text, unframed
from ..encoding.json import read_json, read_object, reading, whole
from ..errors import InputError, check_settings
from ..evaluator.evaluator import ModelEvaluator
from ..events.batch import EventBatch, LabelBatch, PredictionBatch
from ..events.columns import TextColumn
from ..events.records import Record, unpack_record
from ..events.rejected import Reason, Rejected
from ..events.times import NO_TIME
from ..ids.chances import seed_of
from ..ids.index import hash64_of_ids
from ..rows.class_rows import ClassRows
from ..rows.rows import Rows
from ..shard.orders import order_of
from .fold_settings import PrequentialSettings
from .instances import Instances
from .wire import own_record

MAGIC = b"RSLF"
VERSION = 1
_STATE = "the state of a fold"

COUNTED = ("instances_tested", "instances_learnt", "learner_failures", "late")
"""The names of the counts that `PrequentialFold.counts` returns."""


class FoldOutput(NamedTuple):
    """The rows that fell due, and the packed `FoldReport`s, both in their order."""

    rows: Rows
    reports: tuple[bytes, ...]


class _Tested(NamedTuple):
    """The instances that were tested since the last report; see `FoldReport`."""

    wrong: BoolArray
    missing: BoolArray
    labels: Int8Array = np.empty(0, np.int8)
    scores: FloatArray = np.empty(0)
    times: Int64Array = np.empty(0, np.int64)


_NOTHING = _Tested(np.empty(0, np.bool_), np.empty(0, np.bool_))


class PrequentialFold:
    """The state machine of one fold of one learner; `learner` is the learner's place among all learners.

    >>> from rocsteady.core.events.columns import IdColumn
    >>> from rocsteady.core.prequential.learners import LearnerSpec
    >>> settings = PrequentialSettings((LearnerSpec.parse("majority"),))
    >>> fold = PrequentialFold(settings, learner=0, fold=3)
    >>> ids = IdColumn.of([str(number) for number in range(100)])
    >>> batch = EventBatch(TextColumn.of([""] * 100), np.zeros(100), np.arange(100) % 4 // 3, ids=ids)
    >>> [(row.seq, row.kappa_m) for output in fold.apply(batch.pack()) for row in output.rows]
    [(70, 0.0)]
    """

    def __init__(self, settings: PrequentialSettings, learner: int, fold: int) -> None:
        self.settings = settings
        self._place = learner, fold
        self._spec = settings.learners[learner]
        self._order = order_of(settings.evaluator.order)
        self._seed = seed_of(settings.folds.seed, self._spec.name, fold)
        self._learner = self._spec.make(settings.task, self._seed, settings.evaluator.window.size)
        name, label = self._spec.name, f"fold={fold}"
        of_classes, self._of_classes = settings.rows_of_classes, settings.fold_of_classes
        self._evaluator: ModelEvaluator | MulticlassEvaluator
        if self._of_classes is None:
            self._evaluator = ModelEvaluator(settings.of_folds, model=name, slice=label)
        else:
            self._evaluator = MulticlassEvaluator(self._of_classes, model=name, slice=label)
        self._every = settings.evaluator.every
        self._comparison = settings.comparison
        self._config = settings.evaluator.config_hash() if of_classes is None else of_classes.config
        self._seq = self._checked = self._checkpoint = self._reported = self._failures = self._digest = 0
        self._greatest = NO_TIME
        self._is_done = False
        self._tested: list[_Tested] = []
        self._measures: FloatArray = np.empty(0)
        self._learner_bytes = len(self._learner.to_bytes())
        self._counts = Counter(dict.fromkeys(COUNTED, 0))

    def apply(self, record: bytes) -> list[FoldOutput | Rejected]:
        """Apply one record; return the rows and reports that fell due, as one output, and refused instances.

        Raises a `WireError` for bytes that are no record, InputError for a record that contradicts earlier
        records, or an error of the learner that no single instance caused.
        """
        record = own_record(record)
        content = unpack_record(record)
        rows: list[Rows] = []
        reports: list[bytes] = []
        refused: list[FoldOutput | Rejected] = []
        for output in self._outputs(content, record):
            if isinstance(output, Rows):
                rows.append(output)
            elif isinstance(output, FoldReport):
                reports.append(output.pack())
            else:
                self._counts["late"] += len(output) if output.kind == "late" else 0
                refused.append(output)
        if not rows and not reports:
            return refused
        return [FoldOutput(Rows.concat(rows), tuple(reports)), *refused]

    def _outputs(self, content: Record, record: bytes) -> Iterator[Rows | FoldReport | Rejected]:
        if isinstance(content, PredictionBatch | LabelBatch):
            raise InputError(f"a packet of {content.source!r} holds no instances")
        for given in self._order.receive(content, record):
            if isinstance(given, Rejected):
                yield given
            elif len(given):
                yield from self._take(given)
        if self._order.is_finished and not self._is_done:
            self._is_done = True
            yield from self._end()

    # ---- the course of the stream

    def _take(self, batch: EventBatch) -> Iterator[Rows | FoldReport | Rejected]:
        """Test and train on the instances of a batch, and report at each checkpoint that falls due."""
        start = 0
        for end, due in self._cuts(batch):
            yield from self._work_on(batch.part(start, end))
            yield from self._check(due)
            start = end
        yield from self._work_on(batch.part(start, len(batch)))

    def _cuts(self, batch: EventBatch) -> list[tuple[int, int]]:
        """Return the checkpoints in a batch: (row before which the checkpoint is due, its grid point)."""
        n = len(batch)
        if size := self._every.events:
            return [(end, NO_TIME) for end in range(size - self._seq % size, n + 1, size)]
        if batch.times is None:
            raise InputError(f"every {self._every} needs times; name their column with --time")
        grid = self._every.micros
        before = np.maximum.accumulate(np.concatenate(([self._greatest], batch.times)))[:n]
        due = np.where(before == NO_TIME, 0, -(-before // grid) * grid)
        cuts = np.flatnonzero((before != NO_TIME) & (batch.times > due))
        return list(zip(cuts.tolist(), due[cuts].tolist(), strict=True))

    def _work_on(self, batch: EventBatch) -> Iterator[Rows | Rejected]:
        """Test and train on the instances of the batch that belong to this fold."""
        if not len(batch):
            return
        self._seq += len(batch)
        if batch.times is not None:
            self._greatest = max(self._greatest, int(batch.times.max()))
        if batch.ids is None:
            raise InputError("instances have no ids, by which they are dealt to folds; name them with id=")
        hashes = hash64_of_ids(batch.ids)
        weights, tests = self.settings.folds.deal(hashes, self._place[1])
        used = np.flatnonzero((weights > 0) | tests)
        if len(used) < len(batch):
            if not len(used):
                return
            batch = batch.take(used)
            hashes, weights, tests = hashes[used], weights[used], tests[used]
        yield from self._run(batch, hashes, weights, tests)

    def _run(
        self, batch: EventBatch, hashes: UInt64Array, weights: Int64Array, tests: BoolArray
    ) -> Iterator[Rows | Rejected]:
        """Let the learner predict and learn the instances, and let the evaluator measure the predictions."""
        task = self.settings.task
        labels = batch.labels if task.is_binary else batch.label_classes
        if labels is None:
            raise InputError(
                "instances have labels of 1 and 0 where classes are learnt; read them as classes"
            )
        numbers = self._numbers_of(labels)
        instances = Instances(batch.features, batch.slices, labels, hashes)
        outcome = self._learner.run(instances, weights, tests)
        self._counts["instances_learnt"] += int((weights > 0).sum())
        if outcome.failures:
            yield self._refused(batch, outcome.failures)
        tested = np.flatnonzero(tests)
        self._counts["instances_tested"] += len(tested)
        missing = np.isnan(outcome.scores[tested])
        answered = tested[~missing]
        if isinstance(labels, TextColumn):
            predicted = TextColumn.of([outcome.predicted[row] or "" for row in answered.tolist()])
            truth = labels.take(answered)
            wrong = np.array(truth.to_list(), object) != np.array(predicted.to_list(), object)
            scores = np.zeros(len(answered))
        else:
            predicted, truth = None, None
            decided = np.asarray(outcome.predicted, np.int8)[answered]
            wrong = decided != labels[answered]
            scores = outcome.scores[answered]
        times = None if batch.times is None else batch.times[answered]
        if isinstance(self._evaluator, ModelEvaluator):
            rows = self._evaluator.apply(scores, batch.labels[answered], times, truth, predicted)
        else:
            assert outcome.class_scores is not None  # the task asks for scores of classes
            events = ClassEvents(numbers[answered], outcome.class_scores[answered])
            rows = self._evaluator.apply(events, times, self._numbers_of(predicted)).rows
        yield from self._noted(rows)
        self._digest = zlib.crc32(hashes[tested].tobytes(), self._digest)
        note = _Tested(np.zeros(len(tested), np.bool_), missing)
        note.wrong[~missing] = wrong
        if self._comparison.needs_scores:
            note = note._replace(labels=batch.labels[tested], scores=np.zeros(len(tested)))
            note.scores[~missing] = scores
        if self._comparison.needs_times and batch.times is not None:
            note = note._replace(times=batch.times[tested])
        if len(tested):
            self._tested.append(note)

    def _numbers_of(self, classes: Int8Array | TextColumn | None) -> Int64Array:
        """Return the numbers of classes if learners give a score of each class, otherwise no numbers."""
        if self._of_classes is None or not isinstance(classes, TextColumn):
            return NO_INT64
        return self._of_classes.numbers_of(classes)

    def _refused(self, batch: EventBatch, failures: list[tuple[int, str]]) -> Rejected:
        """Return the instances at which the learner failed, each once. Their model is the learner's name."""
        rows = np.array([row for row, _ in failures], np.int64)
        self._failures += len(rows)
        self._counts["learner_failures"] += len(rows)
        name = TextColumn.repeated(self._spec.name, len(rows))
        fold = self._place[1]
        details = TextColumn.of([f"fold {fold} of the learner: {sentence}" for _, sentence in failures])
        return Rejected("invalid", batch.take(rows, models=name), Reason.LEARNER_FAILED, details)

    def _check(self, due: int) -> Iterator[Rows | FoldReport | Rejected]:
        """Yield the row and the report of a checkpoint."""
        if due != NO_TIME:
            yield from self._noted(_plain(self._evaluator.advance_to(due + 1)))
        elif self._evaluator.seq != self._reported:
            yield from self._noted(_plain(self._evaluator.finish()))
        yield self._report(due)
        self._tested = []
        self._checkpoint += 1
        self._checked = self._seq

    def _end(self) -> Iterator[Rows | FoldReport | Rejected]:
        """Yield the last row and report, unless the stream ended at a checkpoint."""
        if self._every.micros and self._order.greatest != NO_TIME:
            yield from self._noted(_plain(self._evaluator.advance_to(self._order.greatest)))
        if self._seq != self._checked:
            yield from self._check(NO_TIME)

    def _noted(self, rows: Rows) -> Iterator[Rows]:
        """Yield rows, if there are any, with the hash of the user's settings and the number of failures."""
        if not len(rows):
            return
        self._reported = int(rows.integer("seq")[-1])
        if rows.classes is None:
            self._measures = rows.numbers[-1].copy()
        else:
            last = int(np.flatnonzero(rows.classes.codes < 0)[-1])
            self._measures = np.concatenate([rows.numbers[last], rows.classes.numbers(last)])
        rows.config = self._config
        rows.failures = np.full(len(rows), self._failures)
        yield rows

    def _report(self, due: int) -> FoldReport:
        columns: list[Any] = [np.concatenate(parts) for parts in zip(_NOTHING, *self._tested, strict=True)]
        wrong, missing, labels, scores, times = columns
        return FoldReport(
            *self._place, self._checkpoint, self._seq, self._greatest, due, self._failures,
            self._digest, self._measures, wrong, missing if missing.any() else missing[:0], labels, scores,
            times,
        )  # fmt: skip

    # ---- the protocol of a machine

    def wakes_at(self) -> int | None:
        """Return the moment at which the fold needs a `Clock`; None if it waits for none."""
        return None if self._order.is_finished else self._order.wakes_at()

    def counts(self) -> dict[str, int]:
        """Return how many instances had each fate in `COUNTED` since the machine was made or loaded."""
        return dict(self._counts)

    def gauges(self) -> dict[str, int]:
        """Return the gauge `folds`, which counts this fold as 1."""
        return {"folds": 1}

    def snapshot_bytes(self) -> int:
        """Return about how many bytes `to_bytes` would give, with the learner as in the last snapshot.

        O(1).
        """
        tested = sum(20 * len(part.wrong) for part in self._tested)
        size = self._learner_bytes + self._evaluator.snapshot_bytes() + self._order.snapshot_bytes()
        return size + tested + 1_000

    def live_bytes(self) -> int:
        """Return about how much memory the fold takes; the learner counts with three times its bytes.

        Takes O(1).
        """
        return 3 * self._learner_bytes + self._evaluator.live_bytes() + self._order.live_bytes() + 10_000

    def to_bytes(self) -> bytes:
        """Return a snapshot. Raises InputError if the learner cannot be written as bytes."""
        learner = self._learner.to_bytes()
        self._learner_bytes = len(learner)
        head = [
            *self._place, self._seq, self._checked, self._checkpoint, self._reported, self._failures,
            self._digest, self._greatest, int(self._is_done),
        ]  # fmt: skip
        held = self._order.held()
        tested = self._report(NO_TIME).pack()
        texts = json.dumps(self.settings.meaning()), json.dumps(head), json.dumps(self._order.progress())
        parts = [*map(packed_text, texts), struct.pack("<I", len(held))]
        for partition, sequence, packet in held:
            parts += [struct.pack("<iq", partition, sequence), packed_bytes(packet)]
        parts += map(packed_bytes, (learner, self._evaluator.to_bytes(), tested))
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def from_bytes(
        cls, data: bytes, settings: PrequentialSettings, learner: int, fold: int
    ) -> PrequentialFold:
        """Rebuild the machine that wrote the bytes, its learner included; it behaves exactly as that machine.

        Give it only bytes of a job's own state, because a learner is unpickled. Raises
        OtherConfigurationError if the settings differ, a `WireError` for other bytes.
        """
        reader = Reader(unframed(data, MAGIC, VERSION, _STATE))
        self = cls(settings, learner, fold)
        with reading(_STATE):
            check_settings(settings.meaning(), read_object(reader.text(), "the settings of a fold"))
            learner_state = self._load(reader)
        window = settings.evaluator.window.size
        self._learner = self._spec.make(settings.task, self._seed, window, learner_state)
        self._learner_bytes = len(learner_state)
        return self

    def _load(self, reader: Reader) -> bytes:
        """Load all of the state but the learner; return the learner's bytes, to be unpickled at the end."""
        learner, fold, *numbers = map(whole, read_json(reader.text(), _STATE))
        if (learner, fold) != self._place:
            raise ValueError(f"it is of fold {fold} of learner {learner}")
        self._seq, self._checked, self._checkpoint, self._reported, *numbers = numbers
        self._failures, self._digest, self._greatest, is_done = numbers
        _ = whole(self._seq, 0), whole(self._checkpoint, 0, 2**31), whole(self._failures, 0)
        _ = whole(self._digest, 0, 2**32 - 1)
        self._is_done = bool(is_done)
        progress = read_object(reader.text(), "the progress of a fold")
        held = []
        for _ in range(reader.number("<I")):
            partition, sequence = reader.numbers("<iq")
            held.append((partition, sequence, reader.sized()))
        if progress or held:
            self._order.go_on_from(progress, held)
        state, evaluator, tested = (reader.sized() for _ in range(3))
        reader.end()
        if self._of_classes is None:
            self._evaluator = ModelEvaluator.from_bytes(evaluator, self.settings.of_folds)
        else:
            self._evaluator = MulticlassEvaluator.from_bytes(evaluator, self._of_classes)
        report = FoldReport.unpack(tested)
        self._measures = report.measures
        if len(report):
            missing = ~report.answered
            self._tested = [_Tested(report.wrong, missing, report.labels, report.scores, report.times)]
        return state


def _plain(rows: Rows | ClassRows) -> Rows:
    """Return rows in columns, also for rows of classes."""
    return rows.rows if isinstance(rows, ClassRows) else rows
