"""How often tests reject, over runs: two forests of other seeds, and one whose predictions are disturbed.

A run deals a stream to folds anew, by its number as the seed; every (learner, fold) has its own seed. Folds
are dealt by `Folds`, predictions are disturbed by `NoisyLearner`, and tested by `significance`: as the
machines of `rocsteady prequential` do, whose p-values are the same (a test holds them against each other),
but without packets and snapshots. A fold learns the same whatever it tests, so that it learns once, predicts
everything, and counts what it would have tested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rocsteady.core.arrays import BoolArray, FloatArray, Int64Array
from rocsteady.core.compare.mcnemar import McnemarEvidence, mcnemar
from rocsteady.core.compare.significance import sign_test, wilcoxon
from rocsteady.core.ids.chances import seed_of
from rocsteady.core.prequential.folds import METHODS, Folds
from rocsteady.core.prequential.instances import Instances, Outcome, Task
from rocsteady.core.prequential.models import NoisyLearner

from .bifet2015_streams import LabelledStream, stream_of
from .online_forest import OnlineForest

ALPHA = 0.05
FOLDS = 10
PAPER_WINS = 8
"""Of 10 folds: enough for the paper's sign test to reject."""

CHANGES = (0.0, 0.05, 0.10)
"""Chances by which predictions are disturbed; 0: none are."""

TESTS = ("mcnemar", "sign", "sign of the paper", "wilcoxon")
LOOKS = 20
LOOKED = ("last", "any", "anytime")
"""McNemar's test at the last look; at any of them; and by the p-value that holds at all of them at once."""


class Place(NamedTuple):
    """What is compared where."""

    stream: str
    method: str
    prequential: bool
    change: float


class Rejections:
    """Shares of tests that rejected, run by run.

    by_test     [place, test]
    by_look     [method, prequential, kind, look]: kind "seeds" (two forests), "coin" (the same discordant
                instances, each given to one of the two by the toss of a coin)
    course      [method, prequential, kind]: bool[LOOKS] of every fold, whether McNemar's test rejects
    accuracies  [place]: of both learners, and how far they are apart in a fold
    classes     [stream]: how many there are
    """

    def __init__(self) -> None:
        self.by_test: dict[tuple[Place, str], list[float]] = defaultdict(list)
        self.by_look: dict[tuple[str, bool, str, str], list[float]] = defaultdict(list)
        self.course: dict[tuple[str, bool, str], list[BoolArray]] = defaultdict(list)
        self.accuracies: dict[Place, list[tuple[float, float, float]]] = defaultdict(list)
        self.classes: dict[str, int] = {}

    def rate(self, test: str, method: str, prequential: bool, change: float, stream: str = "") -> float:
        """Return the share of tests that rejected; of all streams, each counted alike, or of one."""
        of_streams = [
            float(np.mean(shares))
            for (place, name), shares in self.by_test.items()
            if name == test and place[1:] == (method, prequential, change) and stream in ("", place.stream)
        ]
        return float(np.mean(of_streams))

    def looked(self, method: str, prequential: bool, kind: str, look: str) -> float:
        """Return the share of folds in which McNemar's test rejected."""
        return float(np.mean(self.by_look[method, prequential, kind, look]))

    def accuracy(self, method: str, prequential: bool, change: float) -> tuple[float, float, float]:
        """Return the mean accuracy of both learners, and the mean distance of the two in a fold."""
        found = [
            np.mean(values, axis=0)
            for place, values in self.accuracies.items()
            if place[1:] == (method, prequential, change)
        ]
        a, b, apart = np.mean(found, axis=0).tolist()
        return a, b, apart

    @property
    def runs(self) -> int:
        """How many runs a stream had."""
        return len(next(iter(self.accuracies.values())))

    def apart(self, stream: str, method: str, prequential: bool) -> float:
        """Return the mean distance of the accuracies of two forests in a fold."""
        found = self.accuracies[Place(stream, method, prequential, 0.0)]
        return float(np.mean([distance for *_, distance in found]))

    def disturbed(self, stream: str, method: str, prequential: bool, change: float) -> tuple[float, float]:
        """Return the mean accuracy of learner b without noise and with it."""
        before, after = (
            float(np.mean([b for _, b, _ in self.accuracies[Place(stream, method, prequential, noise)]]))
            for noise in (0.0, change)
        )
        return before, after


class _Said:
    """A learner that says what was said before: what the noise filter is put around."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def run(self, instances: Instances, weights: Int64Array, tests: BoolArray) -> Outcome:
        assert len(instances) == len(weights) == len(tests) == len(self._outcome.scores)
        return self._outcome

    def to_bytes(self) -> bytes:
        return b""

    def restore(self, data: bytes) -> None:
        assert not data


def run_all(names: Sequence[str], count: int, runs: int, note: Callable[[str], None]) -> Rejections:
    """Return what all streams, methods and tests come to."""
    rejections = Rejections()
    for name in names:
        for run in range(1, runs + 1):
            run_once(stream_of(name, count, run), run, rejections)
        note(f"{name}: {runs} runs")
    return rejections


def run_once(stream: LabelledStream, run: int, rejections: Rejections) -> None:
    """Deal a stream to folds by every method, and add what tests say of it."""
    coins = np.random.default_rng(run)
    rejections.classes[stream.name] = len(stream.classes)
    for method in METHODS:
        folds = Folds(method, FOLDS, seed=run)
        wrong = wrong_of_folds(stream, folds)
        for prequential in (False, True):
            dealt = Folds(method, FOLDS, seed=run, prequential=prequential)
            tests = [dealt.assign(stream.ids, fold).tests for fold in range(FOLDS)]
            for place, change in enumerate(CHANGES):
                where = Place(stream.name, method, prequential, change)
                _compare(wrong[0], wrong[1 + place], tests, where, rejections)
            _look(wrong[0], wrong[1], tests, (method, prequential), rejections, coins)


def wrong_of_folds(stream: LabelledStream, folds: Folds) -> list[list[BoolArray]]:
    """Return what each learner gets wrong in each fold, bool[n]: learner a; b, and b under each noise."""
    wrong: list[list[BoolArray]] = [[] for _ in range(1 + len(CHANGES))]
    task = Task(is_binary=False, classes=stream.classes)
    instances, n = stream.instances, len(stream)
    names = np.array([*stream.classes, ""], object)
    truth = names[stream.codes]
    everything = np.ones(n, np.bool_)
    for fold in range(folds.count):
        weights = folds.assign(stream.ids, fold).weights
        said = []
        for learner in ("a", "b"):
            forest = OnlineForest(seed_of(folds.seed, learner, fold))
            codes = forest.test_then_train(
                instances.matrix(), stream.codes, len(stream.classes), weights, everything
            )
            said.append(codes)
            wrong[len(said) - 1].append(codes != stream.codes)
        outcome = Outcome(np.zeros(n), names[said[1]].tolist(), [])
        for place, noise in enumerate(CHANGES[1:], start=2):
            seed = seed_of(folds.seed, f"b, noise {noise}", fold)
            noisy = NoisyLearner("b", _Said(outcome), task, noise, seed)
            predicted = np.array(noisy.run(instances, weights, everything).predicted, object)
            wrong[place].append(np.asarray(predicted != truth, np.bool_))
    return wrong


def _compare(
    wrong_a: list[BoolArray],
    wrong_b: list[BoolArray],
    tests: list[BoolArray],
    where: Place,
    rejections: Rejections,
) -> None:
    """Test two learners over folds, and by the instances of each fold."""
    a = np.array([1 - wrong[tested].mean() for wrong, tested in zip(wrong_a, tests, strict=True)])
    b = np.array([1 - wrong[tested].mean() for wrong, tested in zip(wrong_b, tests, strict=True)])
    by_instances = [
        mcnemar(float((x & ~y & tested).sum()), float((y & ~x & tested).sum())).p_value
        for x, y, tested in zip(wrong_a, wrong_b, tests, strict=True)
    ]
    signs = sign_test(a, b)
    shares = {
        "mcnemar": float((np.array(by_instances) < ALPHA).mean()),
        "sign": float(signs.p_value < ALPHA),
        "sign of the paper": float(max(signs.wins_a, signs.wins_b) >= PAPER_WINS),
        "wilcoxon": float(wilcoxon(a, b).p_value < ALPHA),
    }
    for test, share in shares.items():
        rejections.by_test[where, test].append(share)
    rejections.accuracies[where].append((float(a.mean()), float(b.mean()), float(np.abs(a - b).mean())))


def _look(
    wrong_a: list[BoolArray], wrong_b: list[BoolArray], tests: list[BoolArray], where: tuple[str, bool],
    rejections: Rejections, coins: np.random.Generator,
) -> None:  # fmt: skip
    """Test by instances at LOOKS moments of the stream; and again where a coin says who was wrong."""
    for x, y, tested in zip(wrong_a, wrong_b, tests, strict=True):
        parts = [
            np.add.reduceat((only & tested).astype(np.int64), _starts(len(tested)))
            for only in (x & ~y, y & ~x)
        ]
        heads = coins.binomial(parts[0] + parts[1], 0.5)
        for kind, (a, b) in (("seeds", parts), ("coin", (heads, parts[0] + parts[1] - heads))):
            p_values, anytime = p_values_of_looks(a.tolist(), b.tolist())
            rejected = p_values < ALPHA
            rejections.course[*where, kind].append(rejected)
            shares = (rejected[-1], rejected.any(), anytime < ALPHA)
            for look, share in zip(LOOKED, shares, strict=True):
                rejections.by_look[*where, kind, look].append(float(share))


def _starts(n: int) -> np.ndarray:
    return np.linspace(0, n, LOOKS, endpoint=False).astype(np.int64)


def p_values_of_looks(a: Sequence[int], b: Sequence[int]) -> tuple[FloatArray, float]:
    """Return McNemar's p-value at every look, and the anytime-valid one at the last, of further counts."""
    evidence = McnemarEvidence()
    p_values = []
    for only_a, only_b in zip(a, b, strict=True):
        evidence.update(only_a, only_b)
        p_values.append(mcnemar(evidence.only_a_wrong, evidence.only_b_wrong).p_value)
    return np.array(p_values), evidence.p_value
