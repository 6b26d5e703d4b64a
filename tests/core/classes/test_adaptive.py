"""Adaptive windows of models with classes: the events held are those of a slow ADWIN over their signal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import rocsteady as rs

from tests.support.oracles.adaptive import AdaptiveOracle
from tests.support.thorough import others_slow

NAMES = ("a", "b", "c", "d")
SIGNALS = ("placement", "error", "brier")


def stream(classes, seed, events=700, ties=False, rare=False):
    """Scores that say much of the class up to the middle of the stream, and little behind it."""
    rng = np.random.default_rng(seed)
    shares = np.full(classes, 1.0)
    if rare:
        shares[0] = 0.1
    labels = rng.choice(classes, events, p=shares / shares.sum())
    scores = rng.random((events, classes))
    scores[np.arange(events), labels] += np.where(np.arange(events) < events // 2, 1.0, 0.0)
    scores /= scores.sum(axis=1, keepdims=True)
    return labels, scores.round(1) if ties else scores


class ClassOracle(AdaptiveOracle):
    """The window as a list of (label, scores, weight, index of arrival), oldest first."""

    def __init__(self, delta, signal, classes):
        super().__init__(delta, signal)
        self.classes = classes

    def add(self, label, score, *more):
        """Apply an event, with its weight if that is not 1; whether the window shrank."""
        return super().add(label, score, *(more or (1.0,)))

    def value(self, label, scores):
        if self.signal == "error":
            return float(int(np.argmax(scores)) != label)
        if self.signal == "brier":
            return float(((scores - np.eye(self.classes)[label]) ** 2).sum() / 2)
        own = sum(event[2] for event in self.window if event[0] == label)
        others = [(event[1][label], event[2]) for event in self.window if event[0] != label]
        rest = sum(weight for _, weight in others)
        if own > rest or (own == rest and self.classes == 2 and label == 0):
            return None
        if not others:
            return 0.5
        right = sum(
            weight * ((score < scores[label]) + (score == scores[label]) / 2) for score, weight in others
        )
        return right / rest


@pytest.mark.parametrize(
    ("signal", "classes", "choices", "weighted"),
    others_slow(
        (signal, classes, choices, weighted)
        for weighted in (False, True)
        for classes, choices in ((3, {}), (4, {"ties": True}), (3, {"rare": True}), (2, {}))
        for signal in SIGNALS
    ),
)
def test_the_events_held_are_those_of_a_slow_adwin(signal, classes, choices, weighted):
    labels, scores = stream(classes, 3 + classes, **choices)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(labels)) if weighted else None
    names = NAMES[:classes]
    ev = rs.MulticlassEvaluator(
        names, window=rs.Adaptive(0.05, signal), every=rs.EveryEvents(1), probabilities=True
    )
    given = np.array(names)[labels]
    rows = list(ev.update(given, scores, weights=weights))
    oracle, drifts = ClassOracle(0.05, signal, classes), 0
    for at in range(len(labels)):
        shrank = oracle.add(labels[at], scores[at], 1.0 if weights is None else weights[at])
        here = rows[at * (classes + 1) : (at + 1) * (classes + 1)]
        assert {(row.window_events, row.drift) for row in here} == {(len(oracle.window), shrank)}
        drifts += shrank
        if at % 100 == 99:  # all measures are of these events
            held = slice(at + 1 - len(oracle.window), at + 1)
            plain = rs.MulticlassEvaluator(names, window=rs.AllEvents(), probabilities=True)
            plain.update(given[held], scores[held], weights=None if weights is None else weights[held])
            expected = plain.means()
            for name in ("auc_macro", "auc_weighted", "auc_m", "auc_m_low", "worst_pair_auc"):
                assert getattr(here[0], name) == pytest.approx(getattr(expected, name), abs=1e-12)
            for row in here[1:]:
                assert row.auc == pytest.approx(plain.measures(row.class_).auc, abs=1e-12)
    assert drifts >= 1


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_are_the_binary_window(signal, weighted):
    labels, scores = stream(2, 8, 1_500)
    score = (scores[:, 1] * 1024).round() / 1024  # so that 1 - p is exact
    weights = np.random.default_rng(2).random(len(labels)) + 0.5 if weighted else None
    choices = {
        "window": rs.Adaptive(0.05, signal), "every": rs.EveryEvents(10), "probabilities": True,
        "threshold": 0.5 + 2**-30,  # a tie is the first class
    }  # fmt: skip
    binary = list(rs.ModelEvaluator(**choices).update(labels, score, weights=weights))
    ev = rs.MulticlassEvaluator(["no", "yes"], **choices)
    both = np.column_stack([1 - score, score])
    found = list(ev.update(np.array(["no", "yes"])[labels], both, weights=weights).of_class("yes"))
    assert [(row.window_events, row.drift) for row in found] == [
        (row.window_events, row.drift) for row in binary
    ]
    assert any(row.drift for row in found)
    for row, other in zip(found, binary, strict=True):
        assert row.auc == (pytest.approx(other.auc, abs=1e-14) if weighted else other.auc)
        assert row.brier == (pytest.approx(other.brier, abs=1e-14) if weighted else other.brier)


@pytest.mark.parametrize(
    ("signal", "class_rows", "weighted"),
    others_slow(itertools.product(SIGNALS, [True, False], [True, False])),
)
def test_rows_do_not_depend_on_cuts_and_snapshots(signal, class_rows, weighted):
    labels, scores = stream(3, 5, 600)
    weights = np.random.default_rng(2).random(600) + 0.5 if weighted else np.ones(600)
    times = np.arange(600) * 2.0
    choices = {"class_rows": class_rows, "window": rs.Adaptive(0.05, signal), "every": rs.EverySeconds(9)}
    choices["probabilities"] = True
    given = np.array(NAMES[:3])[labels]

    def run(pieces, restart):
        ev, rows = rs.MulticlassEvaluator(NAMES[:3], **choices), []
        for start, end in itertools.pairwise(pieces):
            some = {"weights": weights[start:end]} if weighted else {}
            rows += ev.update(given[start:end], scores[start:end], times=times[start:end], **some)
            if restart:
                data = ev.to_bytes()
                assert abs(len(data) - ev.snapshot_bytes()) < 1_000
                ev = rs.MulticlassEvaluator.from_bytes(data, ev.settings)
                assert ev.to_bytes() == data
        return [*rows, *ev.advance(1_300.0), *ev.finish()]

    whole = run([0, 600], False)
    assert any(row.drift for row in whole)
    assert len({row.class_ for row in whole}) == (4 if class_rows else 1)
    cuts = np.sort(np.random.default_rng(7).choice(np.arange(1, 600), 12, replace=False)).tolist()
    assert run([0, *cuts, 600], False) == whole
    again = run([0, *cuts, 600], True)
    if not weighted:
        assert again == whole
        return
    for row, other in zip(again, whole, strict=True):  # sums of weights are taken anew from a snapshot
        assert (row.class_, row.window_events, row.drift) == (other.class_, other.window_events, other.drift)
        for value, known in ((row.auc, other.auc), (row.auc_m, other.auc_m), (row.kappa, other.kappa)):
            assert value == pytest.approx(known, abs=1e-12)


def test_rows_of_the_model_alone_hold_the_same_events():
    labels, scores = stream(3, 6)
    given = np.array(NAMES[:3])[labels]
    choices = {"window": rs.Adaptive(0.05), "every": rs.EveryEvents(20)}
    full = rs.MulticlassEvaluator(NAMES[:3], **choices).update(given, scores).of_model()
    ev = rs.MulticlassEvaluator(NAMES[:3], class_rows=False, intervals=False, **choices)
    alone = ev.update(given, scores)
    assert len(alone) == len(full)
    for row, other in zip(alone, full, strict=True):
        assert (row.window_events, row.drift, row.auc_m) == (other.window_events, other.drift, other.auc_m)
    with pytest.raises(rs.InputError, match="class_rows=False"):
        ev.measures("a")


def test_one_class_and_a_class_that_comes_late():
    ev = rs.MulticlassEvaluator(["a", "b"], window=rs.Adaptive(), every=rs.EveryEvents(50))
    rows = ev.update(["a"] * 200, np.tile([0.6, 0.4], (200, 1)))
    assert not any(row.drift for row in rows)
    assert rows[-1].window_events == 200
    rows = ev.update(["b"] * 50, np.tile([0.4, 0.6], (50, 1)))
    assert rows[0].auc_m == 1.0


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"multi_label": True}, "an event of several labels has one of each class"),
        ({"window": rs.Adaptive(signal="brier")}, "the signal brier is the squared error of a probability"),
    ],
)
def test_what_has_no_signal_is_refused(choices, said):
    with pytest.raises(rs.ConfigError, match=said):
        rs.MulticlassEvaluator(["a", "b"], **{"window": rs.Adaptive(), **choices})


def test_what_cannot_be_applied_changes_nothing():
    ev = rs.MulticlassEvaluator(["a", "b"], window=rs.Adaptive(), evidence_below=0.6)
    ev.update(["a", "b"], [[0.6, 0.4], [0.5, 0.5]])
    with pytest.raises(rs.InputError, match="have weights"):
        ev.update(["a"], [[0.6, 0.4]], weights=[2.0])
    assert ev.seq == len(ev) == 2
    ev.update(["a"], [[0.6, 0.4]])
    assert ev.seq == len(ev) == 3


@pytest.mark.parametrize("every", [rs.EveryEvents(40), "end"], ids=str)
def test_curves_are_those_of_the_events_held(every):
    labels, scores = stream(3, 5, 600)
    given = np.array(NAMES[:3])[labels]
    choices = {"window": rs.Adaptive(0.05), "every": rs.EveryEvents(10)}
    plain = rs.MulticlassEvaluator(NAMES[:3], **choices)
    expected = [*plain.update(given, scores), *plain.finish()]
    ev = rs.MulticlassEvaluator(NAMES[:3], curves=every, **choices)
    parts = [ev.update(given[:333], scores[:333]), ev.update(given[333:], scores[333:]), ev.finish()]
    assert [row.window_events for part in parts for row in part] == [row.window_events for row in expected]
    curves = [curve for part in parts for curve in part.rows.curves]
    ends = [600] if every == "end" else [*range(40, 601, 40)]
    assert [(curve.seq, curve.class_) for curve in curves] == [(end, name) for end in ends for name in "abc"]
    held = {row.seq: row.window_events for row in expected if row.class_ is None}
    for curve in curves:
        assert curve.curve.events == held[curve.seq]
