"""FoldPairs: the state machine that tests all pairs of learners of one fold, from their reports.

Invariant
    Its output is a function of the learners' reports. It does not depend on their order of arrival, nor on
    restarts. A checkpoint is compared when all learners have reported it, after all earlier checkpoints.

All learners of a fold test the same instances, so every pair is compared instance by instance. McNemar's test
is over all instances since the beginning of the stream, and `p_anytime` covers all checkpoints so far.
DeLong's test is over the window of the evaluation: the last k instances that the fold tested, or the
instances of a duration up to the grid point or the greatest time. Instances at which a learner of the pair
failed are left out.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from ..arrays import BoolArray, FloatArray, Int8Array, Int64Array
from ..encoding.fields import Reader
from ..errors import InputError
from ..events.times import NO_TIME
from ..rows.reasons import ONE_CLASS, REASONS, TOO_FEW
from .comparison_settings import MOST_INSTANCES, TOO_MANY_INSTANCES, ComparisonSettings
from .comparisons import Checkpoint, ComparisonRow, adjusted_of, blank_row, corrected, leader, noted
from .fold_report import FoldReport, GatheringMachine, PairedFold
from .mcnemar import McnemarEvidence, mcnemar
from .significance import DelongTest, Placements

MAGIC = b"RSFP"
_HEAD = struct.Struct("<I")
_PAIR = struct.Struct("<QQQQd")
_WINDOW = struct.Struct("<QqqB")
_FEW_HUNDRED_BYTES = 500

_ONE_LOOK = "significant for one look only: p_anytime, corrected for the pairs, is above alpha"


class FoldPairs(GatheringMachine[bytes | ComparisonRow]):
    """The state machine that compares the learners of fold number `fold` by their `FoldReport`s.

    See `ComparisonSettings`.
    """

    _magic, _what = MAGIC, "the state of a fold's comparisons"

    def __init__(self, settings: ComparisonSettings, fold: int) -> None:
        self.fold = fold
        self._pairs = [_Pair() for _ in combinations(settings.learners, 2)]
        self._window = _ScoreWindow(settings) if settings.needs_scores else None
        super().__init__(settings, len(settings.learners))

    def _place_of(self, record: bytes) -> tuple[int, int]:
        """Return the learner and the checkpoint of a report. Raises the errors of `apply`."""
        report = FoldReport.unpack(record)
        learners = len(self.settings.learners)
        if report.fold != self.fold or report.learner >= learners:
            raise InputError(
                f"a report of learner {report.learner} in fold {report.fold} came to fold {self.fold} of "
                f"{learners} learners; send every fold its own"
            )
        if len(report.measures) not in (0, columns := len(self.settings.columns)):
            raise InputError(
                f"a report has {len(report.measures)} measures where rows have {columns}; the "
                "workers of a job must all run one version of rocsteady"
            )
        lengths = {len(report.labels), len(report.scores)} if self._window is not None else {len(report)}
        if self.settings.needs_times:
            lengths.add(len(report.times))
        if lengths != {len(report)}:
            raise InputError(
                f"a report of {len(report)} instances has {len(report.labels)} labels, {len(report.scores)} "
                f"scores and {len(report.times)} times; comparing AUCs in window {self.settings.window} "
                "needs one of each"
            )
        return report.learner, report.checkpoint

    def _check_all(self, reports: Sequence[FoldReport]) -> None:
        """Raise InputError unless all learners tested the same instances."""
        first = reports[0]
        for report in reports[1:]:
            alike = len(report) == len(first) and report.digest == first.digest
            if not alike or not np.array_equal(report.labels, first.labels):
                names = [self.settings.learners[each.learner] for each in (first, report)]
                raise InputError(
                    f"{names[0]!r} and {names[1]!r} tested other instances in fold {self.fold} up to "
                    f"checkpoint {first.checkpoint}, or in another order; give them the same stream in one "
                    "order, by time with clock='runner' where a runner delivers as it likes"
                )

    def _compared(self, records: list[bytes]) -> Iterator[bytes | ComparisonRow]:
        """Yield the tests of a checkpoint, then a packed `PairedFold` for `LearnerComparisons`."""
        reports = [FoldReport.unpack(each) for each in records]
        self._check_all(reports)
        paired = PairedFold.of(reports, len(self.settings.columns))
        if self._pairs:
            yield from self._mcnemar(reports, paired.at)
            if self._window is not None:
                self._window.add(reports)
            if self.settings.compares_aucs:
                yield from self._delong(paired.at)
        yield paired.pack()

    def _mcnemar(self, reports: Sequence[FoldReport], at: Checkpoint) -> Iterator[ComparisonRow]:
        answered = np.array([report.answered for report in reports])
        wrong = np.array([report.wrong for report in reports]) & answered
        right = answered & ~wrong
        rows = []
        for pair, (a, b) in zip(self._pairs, combinations(range(len(reports)), 2), strict=True):
            pair.add(wrong[a] & right[b], right[a] & wrong[b], ~(answered[a] & answered[b]))
            rows.append(self._mcnemar_row(pair, self._blank(at, "accuracy", "mcnemar", a, b)))
        rows = corrected(rows)
        # The test is repeated at every checkpoint, so significance at one checkpoint does not hold for all.
        for row, p in zip(rows, adjusted_of([row.p_anytime for row in rows]), strict=True):
            is_of_one_look = row.better and p is not None and p > self.settings.alpha
            yield noted(row, _ONE_LOOK) if is_of_one_look else row

    def _mcnemar_row(self, pair: _Pair, blank: ComparisonRow) -> ComparisonRow:
        """Return the row of McNemar's test of a pair; `better` is the leading learner."""
        blank = _left_out(blank, pair.left_out)
        if pair.tested == pair.left_out:
            return noted(blank, "no instance so far has an answer of both")
        only_a, only_b = pair.evidence.only_a_wrong, pair.evidence.only_b_wrong
        found = mcnemar(only_a, only_b)
        return blank._replace(
            statistic=found.statistic,
            p_value=found.p_value,
            p_anytime=pair.evidence.p_value,
            wins_a=only_b,
            wins_b=only_a,
            better=leader(blank, only_b - only_a),
        )

    def _delong(self, at: Checkpoint) -> Iterator[ComparisonRow]:
        """Yield the rows of DeLong's test of all pairs.

        Scores are ranked once for pairs that answered the same instances.
        """
        window = self._window
        refusal = self.settings.auc_refusal if window is None else window.refusal
        pairs = combinations(range(len(self.settings.learners)), 2)
        rows = {pair: self._blank(at, "auc", "delong", *pair) for pair in pairs}
        if window is None or refusal is not None:
            yield from (noted(row, refusal or "") for row in rows.values())
            return
        answered = ~np.isnan(window.scores)
        alike: dict[bytes, list[tuple[int, int]]] = {}
        for a, b in rows:
            alike.setdefault((answered[a] & answered[b]).tobytes(), []).append((a, b))
        for mask, group in alike.items():
            both = np.frombuffer(mask, np.bool_)
            labels, left_out = window.labels[both], int(len(both) - both.sum())
            members = sorted({place for pair in group for place in pair})
            why = _cannot_rank(labels)
            placements = None if why else Placements.of(labels, window.scores[members][:, both])
            for a, b in group:
                row = _left_out(rows[a, b], left_out)
                if placements is None:
                    rows[a, b] = noted(row, why or "")
                else:
                    rows[a, b] = _delong_row(placements.test(members.index(a), members.index(b)), row)
        yield from corrected(list(rows.values()))

    def _blank(self, at: Checkpoint, measure: str, test: str, a: int, b: int) -> ComparisonRow:
        names = self.settings.learners
        return blank_row(
            at, f"fold={self.fold}", measure, test, names[a], names[b], 1, self.settings.alpha, None
        )

    # ---- state

    def _write(self) -> list[bytes]:
        """Return fold (u32, little-endian), the counts of each pair, the waiting reports and the window."""
        pairs = [pair.write() for pair in self._pairs]
        window = [] if self._window is None else self._window.write()
        return [_HEAD.pack(self.fold), *pairs, *super()._write(), *window]

    def _read(self, reader: Reader) -> None:
        """Load the state that `_write` returned. Raises ValueError for other bytes."""
        if (stored := reader.number(_HEAD.format)) != self.fold:
            raise ValueError(f"it is of fold {stored} and not of fold {self.fold}")
        self._pairs = [_Pair.read(reader) for _ in self._pairs]
        super()._read(reader)
        if self._window is not None:
            self._window.read(reader)

    @classmethod
    def from_bytes(cls, data: bytes, settings: ComparisonSettings, fold: int) -> FoldPairs:
        """Read a snapshot: the result returns the same later rows as the machine that wrote the snapshot.

        Raises OtherConfigurationError if the snapshot has other settings, a `WireError` for any other bytes.
        """
        return cls(settings, fold)._loaded(data)

    def live_bytes(self) -> int:
        """Estimate the memory in bytes. O(1)."""
        return super().live_bytes() + _FEW_HUNDRED_BYTES * len(self._pairs)

    @property
    def _held_bytes(self) -> int:
        return 0 if self._window is None else self._window.nbytes


class _Pair:
    """Counts of a pair of learners of a fold since the beginning of the stream.

    tested    instances that the fold tested
    left_out  tested instances at which one learner or both failed
    """

    def __init__(self) -> None:
        self.tested = 0
        self.left_out = 0
        self.evidence = McnemarEvidence()

    def add(self, only_a_wrong: BoolArray, only_b_wrong: BoolArray, left_out: BoolArray) -> None:
        """Add the counts of later instances."""
        self.tested += len(left_out)
        self.left_out += int(left_out.sum())
        self.evidence.update(int(only_a_wrong.sum()), int(only_b_wrong.sum()))

    def write(self) -> bytes:
        evidence = self.evidence
        return _PAIR.pack(
            self.tested, self.left_out, evidence.only_a_wrong, evidence.only_b_wrong, evidence.greatest
        )

    @classmethod
    def read(cls, reader: Reader) -> _Pair:
        self = cls()
        self.tested, self.left_out, a, b, greatest = reader.numbers(_PAIR.format)
        if self.left_out + a + b > self.tested or not greatest >= 0:
            raise ValueError(f"{self.tested} instances, {a} and {b} of them discordant")
        self.evidence = McnemarEvidence(a, b, greatest)
        return self


class _ScoreWindow:
    """Labels and scores of the instances in the window of a fold.

    labels   int8[n]
    scores   [learners, n], NaN where a learner failed
    times    int64[n] if the window is by time, else empty
    refusal  why AUCs cannot be compared now; no instance is held then
    """

    def __init__(self, settings: ComparisonSettings) -> None:
        self._window = settings.window
        self._most = settings.window.size or MOST_INSTANCES
        self._moment = NO_TIME
        # the greatest time of the instances that were dropped because there were too many
        self._lost = NO_TIME
        self._has_lost = False
        self.labels: Int8Array = np.zeros(0, np.int8)
        self.scores: FloatArray = np.zeros((len(settings.learners), 0))
        self.times: Int64Array = np.zeros(0, np.int64)

    @property
    def refusal(self) -> str | None:
        return TOO_MANY_INSTANCES if self._has_lost else None

    def add(self, reports: Sequence[FoldReport]) -> None:
        """Add the instances tested up to a checkpoint; drop instances that have left the window. O(held)."""
        first = reports[0]
        scores = np.array(
            [np.where(each.answered & np.isfinite(each.scores), each.scores, np.nan) for each in reports]
        )
        self.labels = np.concatenate((self.labels, first.labels))
        self.scores = np.concatenate((self.scores, scores), axis=1)
        if self._window.micros:
            self.times = np.concatenate((self.times, first.times))
            self._moment = max(self._moment, first.due, int(first.times.max(initial=NO_TIME)))
            start = self._moment - self._window.micros  # Python's whole numbers do not overflow
            self._keep(self.times > max(start, NO_TIME))
            self._has_lost = self._has_lost and self._lost > start
        elif self._window.size:
            self._keep(slice(max(len(self.labels) - self._most, 0), None))
        if len(self.labels) > self._most or (self._has_lost and not self._window.has_end):
            self._lost = max(self._lost, int(self.times.max(initial=NO_TIME)))
            self._has_lost = True
            self._keep(slice(0))

    def _keep(self, which: slice | BoolArray) -> None:
        self.labels = self.labels[which].copy()
        self.scores = self.scores[:, which].copy()
        self.times = self.times[which].copy() if len(self.times) else self.times

    def write(self) -> list[bytes]:
        head = _WINDOW.pack(len(self.labels), self._moment, self._lost, self._has_lost)
        arrays = self.labels, self.scores.astype("<f8"), self.times.astype("<i8")
        return [head, *(array.tobytes() for array in arrays)]

    def read(self, reader: Reader) -> None:
        """Load the wire form of a window; ValueError if the wire form contradicts itself."""
        held, self._moment, self._lost, has_lost = reader.numbers(_WINDOW.format)
        self._has_lost = bool(has_lost)
        self.labels = reader.array("<i1", held)
        learners = len(self.scores)
        self.scores = reader.array("<f8", held * learners).reshape(learners, held)
        self.times = reader.array("<i8", held if self._window.micros else 0)
        if held > self._most or not np.isin(self.labels, (0, 1)).all():
            raise ValueError(f"{held} instances in a window of {self._most}, or their labels")

    @property
    def nbytes(self) -> int:
        """Length of the wire form in bytes; the window takes about as much memory."""
        return _WINDOW.size + self.labels.nbytes + self.scores.nbytes + self.times.nbytes


def _cannot_rank(labels: Int8Array) -> str | None:
    """Return why AUCs over instances of these labels cannot be compared; None if AUCs can be compared."""
    fewer = min(int(labels.sum()), int(len(labels) - labels.sum()))
    if not len(labels):
        return "no instance in window has an answer of both"
    return (REASONS[ONE_CLASS], REASONS[TOO_FEW], None)[min(fewer, 2)]


def _delong_row(found: DelongTest, blank: ComparisonRow) -> ComparisonRow:
    """Return the row of DeLong's test of a pair; `better` is the leading learner."""
    better = leader(blank, found.auc_a - found.auc_b)
    row = blank._replace(p_value=found.p_value, better=better)
    if math.isfinite(found.statistic):
        return row._replace(statistic=found.statistic)
    return noted(row, "degenerate: their difference has no variance in window")


def _left_out(row: ComparisonRow, count: int) -> ComparisonRow:
    return noted(row, f"{count:,} instances without an answer of both are left out") if count else row
