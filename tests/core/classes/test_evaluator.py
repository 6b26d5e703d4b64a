"""Windows of a model with classes against a list of events that is searched anew, and against binary rows."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.classes.class_settings import ClassSettings
from rocsteady.core.classes.evaluator import MulticlassEvaluator
from rocsteady.core.errors import ConfigError, InputError, OtherConfigurationError, WireError
from rocsteady.core.rows import slots
from rocsteady.core.rows.class_columns import CLASS_ROW_COLUMNS, MEANS_COLUMNS
from rocsteady.core.rows.class_rows import ClassRow, ClassRows
from rocsteady.core.rows.measure_table import RANKING_MEASURES

from tests.support.oracles.classes import classes_truth, one_hot
from tests.support.oracles.windows import WindowOracle
from tests.support.thorough import others_slow

NAMES = ("cat", "dog", "owl", "yak")
SECOND = 1_000_000


class Numbers:
    """Says, of a row of `WindowOracle`, which events its window holds: their numbers are their labels."""

    threshold = 0.0

    def row_of(self, events):
        return {"held": [event[0] for event in events]}


def stream(seed, events=90, kind="random"):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, events)
    if kind == "one class":
        labels[: events // 2] = 1
    elif kind == "absent class":
        labels[labels == 3] = 0
    elif kind == "late class":
        labels[: events // 2][labels[: events // 2] == 2] = 1
    scores = np.round(rng.normal(size=(events, 4)) + (labels[:, np.newaxis] == np.arange(4)), 1)
    if kind == "sorted":
        scores = np.sort(scores, axis=0)
    times = rng.integers(0, 40, events) + np.arange(events)
    return np.array(NAMES)[labels], labels, scores, times


def assert_means(means, truth, counts, z=1.959963984540054):
    """Compare what a row says of all classes with the oracle."""
    assert means.classes == NAMES
    assert means.classes_absent == tuple(name for name, count in zip(NAMES, counts, strict=True) if not count)
    for name, value, variance in zip(
        ("auc_macro", "auc_weighted", "auc_m"),
        (truth.macro, truth.weighted, truth.m),
        truth.variances,
        strict=True,
    ):
        low, high = getattr(means, f"{name}_low"), getattr(means, f"{name}_high")
        if value is None:
            assert getattr(means, name) is None
            assert name in means.reason
            continue
        assert getattr(means, name) == pytest.approx(float(value), abs=1e-12)
        if variance is None:
            assert low is high is None
            assert "fewer than two events of a class in window" in means.reason
        else:
            half = z * math.sqrt(variance)
            assert low == pytest.approx(max(0.0, float(value) - half), abs=1e-9)
            assert high == pytest.approx(min(1.0, float(value) + half), abs=1e-9)
    if truth.macro is not None:
        assert means.worst_class_auc == pytest.approx(float(truth.worst_class[0]), abs=1e-12)
        assert means.worst_pair_auc == pytest.approx(float(truth.worst_pair[0]), abs=1e-12)
        assert float(truth.aucs[NAMES.index(means.worst_class)]) == pytest.approx(means.worst_class_auc)
        i, j = (NAMES.index(name) for name in means.worst_pair.split("|"))
        assert i < j
        assert float(truth.pairs[i, j] + truth.pairs[j, i]) / 2 == pytest.approx(means.worst_pair_auc)
        absent = bool(means.classes_absent)
        assert ("over the classes with events in window" in (means.reason or "")) == absent


def assert_pairs(rows, index, truth):
    """Compare what the rows of classes, behind the row of the model, say of each other class."""
    assert rows[index].pair_aucs is None
    for i, name in enumerate(NAMES):
        row = rows[index + 1 + i]
        assert row.class_ == name
        for j, value in enumerate(row.pair_aucs):
            exact = truth.pairs.get((i, j))
            assert value == (None if exact is None else pytest.approx(float(exact), abs=1e-12)), (i, j)


def model_rows(rows):
    return [index for index in range(len(rows)) if rows.codes[index] < 0]


WINDOWS = {
    "last:20": (rs.LastEvents(20), {"last": 20}),
    "last:25s": (rs.LastDuration("25s"), {"duration": 25 * SECOND}),
    "all": (rs.AllEvents(), {}),
}


@pytest.mark.parametrize(
    ("kind", "window", "grid"),
    others_slow(
        product(["random", "one class", "absent class", "late class", "sorted"], WINDOWS, [False, True])
    ),
)
def test_every_row_is_that_of_its_window(kind, window, grid):
    names, labels, scores, times = stream(1, 60, kind)
    given, fields = WINDOWS[window]
    every = rs.EverySeconds("9s") if grid else rs.EveryEvents(1 if window == "last:20" else 3)
    oracle = WindowOracle(
        Numbers(), every=None if grid else every.n, grid=9 * SECOND if grid else None, **fields
    )
    for number, time in enumerate(times.tolist()):
        oracle.apply(number, 0.0, time * SECOND)
    ev = MulticlassEvaluator(NAMES, window=given, every=every)
    rows = ev.update(names, scores, times=times)
    places = model_rows(rows)
    assert len(places) == len(oracle.rows) > 4
    for index, row in zip(places, oracle.rows, strict=True):
        held = row.get("held", [])
        assert rows[index].window_events == len(held)
        assert (rows[index].row, rows[index].seq) == (row["row"], row["seq"])
        truth = classes_truth(one_hot(labels[held], 4), scores[held].tolist())
        assert_means(rows.columns.means[index], truth, np.bincount(labels[held], minlength=4))
        assert_pairs(rows, index, truth)


def test_pairs_are_null_of_one_class_of_many_and_of_several_labels():
    for count, said in ((1, False), (2, True), (100, True), (101, False)):
        ev = MulticlassEvaluator([str(number) for number in range(count)], every=rs.EveryEvents(3))
        rows = ev.update([0, 0, 0], np.eye(count)[[0, 0, 0]])
        assert {row.pair_aucs for row in rows if row.class_} == {(None,) * count if said else None}
        assert rows[0].pair_aucs is None
    ev = MulticlassEvaluator(["a", "b"], multi_label=True, every=rs.EveryEvents(2))
    rows = ev.update([[1, 1], [0, 1]], [[0.1, 0.2], [0.3, 0.4]])
    assert {row.pair_aucs for row in rows} == {None}


@pytest.mark.parametrize("kind", ["random", "late class"])
@pytest.mark.parametrize("by_time", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_faded_window_is_that_of_explicit_weights(kind, by_time, weighted):
    names, labels, scores, times = stream(2, 50, kind)
    times = np.sort(times)
    weights = np.random.default_rng(1).integers(1, 9, 50) / 4 if weighted else np.ones(50)
    window = rs.Fading("10s") if by_time else rs.Fading(10)
    ev = MulticlassEvaluator(NAMES, window=window, every=rs.EveryEvents(10))
    rows = ev.update(names, scores, times=times, weights=weights if weighted else None)
    clock = times if by_time else np.arange(50)
    for index in model_rows(rows):
        n = rows[index].seq
        faded = [
            Fraction(w) * Fraction(2.0 ** (-int(clock[n - 1] - at) / 10))
            for w, at in zip(weights[:n], clock[:n], strict=True)
        ]
        truth = classes_truth(one_hot(labels[:n], 4), scores[:n].tolist(), faded)
        assert_means(rows.columns.means[index], truth, np.bincount(labels[:n], minlength=4))


@pytest.mark.parametrize("window", [rs.LastEvents(20), rs.LastDuration("25s"), rs.Fading(8), rs.AllEvents()])
@pytest.mark.parametrize("multi_label", [False, True])
def test_the_row_of_a_class_is_that_of_a_binary_evaluator(window, multi_label):
    names, labels, scores, times = stream(3)
    given = names
    if multi_label:
        given = np.random.default_rng(1).random((len(labels), 4)) < [0.5, 0.2, 0.9, 0]
    ev = MulticlassEvaluator(NAMES, window=window, every=rs.EveryEvents(7), multi_label=multi_label)
    rows = ev.update(given, scores, times=times)
    for number, name in enumerate(NAMES):
        binary = rs.ModelEvaluator(window=window, every=rs.EveryEvents(7))
        is_label = given[:, number] if multi_label else labels == number
        theirs = binary.update(is_label, scores[:, number], times=times)
        mine = rows.of_class(name).rows
        assert len(mine) == len(theirs)
        ranking = slice(0, None if multi_label else slots.MEASURES + RANKING_MEASURES)
        np.testing.assert_allclose(
            mine.numbers[:, ranking], theirs.numbers[:, ranking], rtol=1e-12 if window.ticks else 0
        )
        np.testing.assert_array_equal(mine.integers, theirs.integers)
        now = ev.measures(name)
        assert now.auc == binary.measures().auc
        if not multi_label:
            decided = np.argmax(scores, axis=1) == number
            if isinstance(window, rs.AllEvents):
                assert now.tp == np.count_nonzero(decided & (labels == number))
                assert now.fp == np.count_nonzero(decided & (labels != number))


def test_the_row_of_a_model_has_the_decisions_of_all_classes():
    names, _, scores, _ = stream(4)
    ev = MulticlassEvaluator(NAMES, window=rs.LastEvents(30), every=rs.EveryEvents(10))
    rows = ev.update(names, scores)
    decided = np.array(NAMES)[np.argmax(scores, axis=1)]
    theirs = rs.ModelEvaluator(window=rs.LastEvents(30), every=rs.EveryEvents(10)).update(
        names, np.zeros(len(names)), predicted=decided
    )
    mine = rows.of_model().rows
    for name in ("accuracy", "kappa", "kappa_m", "kappa_per", "mcc", "balanced_accuracy"):
        np.testing.assert_array_equal(mine.number(name), theirs.number(name))
    assert all(row.auc is None for row in mine)
    assert [row.reason for row in mine][1:] == [None] * 8
    assert mine.config != theirs.config


def same_rows(found, expected, to=0.0):
    assert len(found) == len(expected)
    for name in ("integers", "reasons", "drift"):
        np.testing.assert_array_equal(getattr(found.rows, name), getattr(expected.rows, name))
    np.testing.assert_allclose(found.rows.numbers, expected.rows.numbers, rtol=to, atol=to)
    if len(found):
        assert list(found.columns.means) == list(expected.columns.means)
        np.testing.assert_array_equal(found.codes, expected.codes)


EVERY_WINDOW = [rs.LastEvents(20), rs.LastDuration("25s"), rs.Fading(8), rs.Fading("9s"), rs.AllEvents()]


@pytest.mark.parametrize(
    ("window", "multi_label", "weighted"), others_slow(product(EVERY_WINDOW, [False, True], [False, True]))
)
def test_rows_do_not_depend_on_cuts_and_snapshots(window, multi_label, weighted):
    names, labels, scores, times = stream(5)
    given = names
    if multi_label:
        given = np.random.default_rng(1).random((len(labels), 4)) < 0.4
    weights = np.random.default_rng(2).integers(1, 5, len(labels)) / 4 if weighted else None
    for every in (rs.EveryEvents(4), rs.EverySeconds("7s")):
        whole = MulticlassEvaluator(
            NAMES, window=window, every=every, multi_label=multi_label, model="m", slice="a=1"
        )
        expected = whole.update(given, scores, times=times, weights=weights)
        last = whole.finish()
        ev = MulticlassEvaluator(
            NAMES, window=window, every=every, multi_label=multi_label, model="m", slice="a=1"
        )
        parts = []
        for start in range(0, len(labels), 11):
            part = slice(start, start + 11)
            parts.append(
                ev.update(
                    given[part], scores[part], times=times[part], weights=weights[part] if weighted else None
                )
            )
            ev = MulticlassEvaluator.from_bytes(ev.to_bytes(), ev.settings)
        to = 1e-12 if weighted or window.ticks else 0.0  # of rows of classes: see weighted.md
        same_rows(ClassRows(rs.Rows.concat([part.rows for part in parts])), expected, to)
        same_rows(ev.finish(), last, to)
        assert len(ev.finish()) == 0
        assert (ev.model, ev.slice) == ("m", "a=1")


def test_a_snapshot_of_other_settings_or_of_damaged_bytes_is_refused():
    ev = MulticlassEvaluator(NAMES)
    names, _, scores, _ = stream(1)
    ev.update(names, scores)
    data = ev.to_bytes()
    with pytest.raises(OtherConfigurationError, match="window"):
        MulticlassEvaluator.from_bytes(
            data, ClassSettings(NAMES, rs.EvaluatorSettings(window=rs.LastEvents(5)))
        )
    with pytest.raises(OtherConfigurationError, match="classes"):
        MulticlassEvaluator.from_bytes(data, ClassSettings(NAMES[:3]))
    with pytest.raises(OtherConfigurationError, match="class_rows"):
        MulticlassEvaluator.from_bytes(data, ClassSettings(NAMES, class_rows=False))
    for damaged in (b"", data[:-1], data[:40] + b"x" + data[41:], b"RSST" + data[4:]):
        with pytest.raises(WireError):
            MulticlassEvaluator.from_bytes(damaged)


@pytest.mark.parametrize(
    ("labels", "scores", "choices", "said"),
    [
        (
            ["cat", "cow"],
            [[1, 2, 3, 4]] * 2,
            {},
            r"labels\[1\] is 'cow', which is none of the classes \('cat'",
        ),
        (["cat", None], [[1, 2, 3, 4]] * 2, {}, r"labels\[1\] is None"),
        (["cat"], [[1, 2, 3]], {}, r"scores of shape \(1, 3\): give a line for each event.*4 classes"),
        (["cat"], [1, 2, 3, 4], {}, r"scores of shape \(4,\)"),
        (["cat"], [[1, 2, math.nan, 4]], {}, r"scores\[0\], class 'owl', is nan"),
        (["cat"], [[1, 2, 3, 4]] * 2, {}, r"labels of shape \(1,\) for 2 events"),
        (["cat"], [[1, 2, 3, 4]], {"weights": [0]}, r"weights\[0\] is 0.0"),
        (["cat"], [[1, 2, 3, 4]], {"weights": [1, 1]}, "2 weights for 1 events"),
        (["cat"], [[1, 2, 3, 4]], {"times": [1, 2]}, "2 times for 1 events"),
        (["cat"], [[1, 2, 3, 4]], {"predicted": ["cow"]}, r"predicted\[0\] is 'cow'"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_applied(labels, scores, choices, said):
    ev = MulticlassEvaluator(NAMES)
    with pytest.raises(InputError, match=said):
        ev.update(labels, scores, **choices)
    assert ev.seq == len(ev) == 0


@pytest.mark.parametrize("wrong", [2, None])
def test_a_label_of_a_class_that_cannot_be_used_is_named_with_its_place(wrong):
    ev = MulticlassEvaluator(NAMES, multi_label=True)
    with pytest.raises(InputError, match=rf"labels\[1, 2\] is {wrong}: .* with multi_label give 1 or 0"):
        ev.update([[1, 0, 0, 1], [0, 1, wrong, 0]], [[1, 2, 3, 4]] * 2)
    assert ev.seq == len(ev) == 0


def test_rows_are_shown_with_their_classes_and_macro_aucs():
    ev = MulticlassEvaluator(NAMES, every=rs.EveryEvents(8), model="m")
    rows = ev.update(NAMES * 2, [[4, 1, 1, 1], [1, 4, 1, 1], [1, 1, 4, 1], [1, 1, 1, 4]] * 2).rows
    _, names, of_model, *of_classes = repr(rows).splitlines()
    assert names.split()[:6] == ["model", "class", "seq", "window_events", "auc_macro", "auc_m"]
    assert of_model.split()[:5] == ["m", "8", "8", "1.0000", "[1.0000,"]
    assert [line.split()[1] for line in of_classes] == list(NAMES)
    assert "<th>class</th>" in rows._repr_html_()
    many = MulticlassEvaluator([f"c{number}" for number in range(2_000)], class_rows=False)
    many.update(["c0", "c1"], np.eye(2, 2_000))
    (row,) = many.finish()
    assert re.search(r"classes=\('c0', 'c1', .*'c9', ... 2,000 in all\), classes_absent=", repr(row))


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"classes": "cat"}, "classes='cat': give the names"),
        ({"classes": {"cat"}}, "classes={'cat'}: give the names of the classes, in the order"),
        ({"classes": []}, "give the names of the classes"),
        ({"classes": ["cat", "cat"]}, "'cat' is named twice"),
        ({"classes": ["1", 1.0]}, "'1' is named twice"),
        ({"classes": ["cat", ""]}, "a name is empty"),
        ({"window": rs.Adaptive(), "multi_label": True}, "window='adaptive:0.002:placement'"),
        ({"positive": "cat"}, "positive='cat'"),
        ({"multi_label": 1}, "multi_label=1"),
    ],
)
def test_settings_that_cannot_be_used_are_named(choices, said):
    with pytest.raises(ConfigError, match=said):
        MulticlassEvaluator(**{"classes": NAMES, **choices})


def test_evidence_of_each_class_is_that_of_a_binary_evaluator_and_needs_no_weights():
    names, labels, scores, _ = stream(2, 90)
    choices = {"evidence_below": 0.8, "evidence_blocks": 2, "every": rs.EveryEvents(30)}
    ev = MulticlassEvaluator(NAMES, **choices)
    rows = ev.update(names, scores)
    for number, name in enumerate(NAMES):
        theirs = rs.ModelEvaluator(**choices).update(labels == number, scores[:, number])
        mine = rows.of_class(name).rows
        np.testing.assert_array_equal(mine.number("evidence"), theirs.number("evidence"))
        assert not np.isnan(mine.number("evidence")[-1])
    assert np.isnan(rows.of_model().rows.number("evidence")).all()
    with pytest.raises(InputError, match="weights"):
        ev.update(names, scores, weights=np.ones(90))
    assert (ev.seq, ev._of_classes[0].seq, len(ev)) == (90, 90, 90)


def test_one_class_has_a_row_and_no_auc():
    ev = MulticlassEvaluator(["only"], every=rs.EveryEvents(2))
    rows = ev.update(["only"] * 4, [[0.1], [0.2], [0.3], [0.4]])
    assert [rows.columns.name(index) for index in range(4)] == [None, "only"] * 2
    means = rows.columns.means[0]
    assert means.auc_macro is means.auc_m is means.worst_pair is None
    assert means.reason.endswith("worst_pair_auc: one class in window")
    assert rows[1].reason.startswith("auc, auc_low, auc_high, h")


def test_events_without_any_label_are_events_of_no_class():
    ev = MulticlassEvaluator(["a", "b"], every=rs.EveryEvents(3), multi_label=True)
    rows = ev.update(np.zeros((3, 2)), np.arange(6.0).reshape(3, 2))
    means = rows.columns.means[0]
    assert means.classes_absent == ("a", "b")
    assert means.auc_macro is None
    rows = ev.update([[1, 0], [0, 1], [0, 0]], [[0.9, 0.1], [0.2, 0.8], [0.1, 0.3]])
    means = rows.columns.means[0]
    assert means.auc_m is means.worst_pair is means.auc_m_low is None
    assert (
        "auc_m, auc_m_low, auc_m_high, worst_pair, worst_pair_auc: events may have several labels"
        in means.reason
    )


def test_classes_may_be_named_by_numbers_and_like_slices():
    ev = MulticlassEvaluator([0, 1, "a=1,b"], every=rs.EveryEvents(4))
    rows = ev.update(np.array([0.0, 1, 1, 0], object), np.eye(4, 3))
    assert rows.columns.names == ("0", "1", "a=1,b")
    rows = ev.update([0, "1", "a=1,b", 1], np.eye(4, 3))
    assert rows.columns.means[0].classes_absent == ()


BARE_WINDOWS = {**WINDOWS, "last:1": (rs.LastEvents(1), {}), "last:40s": (rs.LastDuration("40s"), {})}


@pytest.mark.parametrize(
    ("kind", "window"),
    others_slow(
        product(["random", "one class", "absent class", "late class", "sorted", "constant"], BARE_WINDOWS)
    ),
)
def test_means_after_every_event_are_those_of_a_scan_to_the_last_bit(kind, window):
    names, _, scores, times = stream(7, 400, kind)
    if kind == "constant":
        scores[:] = 0.5
    given, _ = BARE_WINDOWS[window]
    every = rs.EverySeconds("3s") if window == "last:40s" else rs.EveryEvents(1)
    scanned = MulticlassEvaluator(NAMES, window=given, every=every, class_rows=False)
    bare = MulticlassEvaluator(NAMES, window=given, every=every, class_rows=False, intervals=False)
    theirs, mine = [], []
    for start in range(0, 400, 130):
        part = slice(start, start + 130)
        theirs += scanned.update(names[part], scores[part], times=times[part]).columns.means
        mine += bare.update(names[part], scores[part], times=times[part]).columns.means
        bare = MulticlassEvaluator.from_bytes(bare.to_bytes())
    assert len(mine) == len(theirs) > 90
    for one, other in zip(mine, theirs, strict=True):
        no_intervals = {name: None for name in other._fields if name.endswith(("_low", "_high"))}
        assert one == other._replace(**no_intervals, reason=one.reason)
        assert (one.reason is None) == (other.auc_m is not None and not other.classes_absent)


def test_weights_that_come_later_end_the_orders_and_nothing_else():
    names, _, scores, _ = stream(8)
    rows = []
    for intervals in (False, True):
        ev = MulticlassEvaluator(
            NAMES, window=rs.LastEvents(30), every=rs.EveryEvents(4), class_rows=False, intervals=intervals
        )
        first = ev.update(names[:40], scores[:40])
        second = ev.update(names[40:], scores[40:], weights=np.full(50, 0.5))
        rows.append([*first.columns.means, *second.columns.means])
    for bare, whole in zip(*rows, strict=True):
        assert bare.auc_m == whole.auc_m
        assert bare.auc_weighted == whole.auc_weighted


def test_means_now_are_those_of_a_row_now():
    names, _, scores, _ = stream(1)
    ev = MulticlassEvaluator(NAMES, window=rs.LastEvents(20), every=rs.EveryEvents(90))
    rows = ev.update(names, scores)
    assert ev.means() == rows.columns.means[0]
    with pytest.raises(InputError, match="class 'cow' is none"):
        ev.measures("cow")
    assert repr(ev) == "<MulticlassEvaluator: 4 classes, last:20, 20 events held of 90>"


def test_a_record_and_a_table_say_what_the_columns_say():
    assert tuple(name.rstrip("_") for name in ClassRow._fields) == CLASS_ROW_COLUMNS
    names, _, scores, times = stream(1, 60, "absent class")
    ev = MulticlassEvaluator(
        NAMES, window=rs.LastEvents(20), every=rs.EveryEvents(30), model="m", slice="a=1"
    )
    rows = ev.update(names, scores, times=times)
    table = rows.to_arrow()
    assert table.column_names == list(CLASS_ROW_COLUMNS)
    moments = ("time", "due", "pane_start", "pane_end", "window_start", "window_end")
    for row, cells in zip(rows, table.to_pylist(), strict=True):
        for name, value in row._asdict().items():
            if name not in moments:
                cell = cells[name.rstrip("_")]
                assert cell == (list(value) if isinstance(value, tuple) else value), name
        if row.class_ is None:
            assert (row.auc, row.classes, row.classes_absent) == (None, NAMES, ("yak",))
            assert row.reason == "auc_macro, auc_weighted, auc_m: over the classes with events in window"
        else:
            of_model = [name for name in MEANS_COLUMNS if name != "pair_aucs"]
            assert [getattr(row, name) for name in of_model] == [None] * len(of_model)
            assert len(row.pair_aucs) == 4
    assert [row.class_ for row in rows] == [None, *NAMES] * 2
    assert [row.class_ for row in rows[2:4]] == ["dog", "owl"]
    assert "class_='cat'" in repr(rows[1])
    assert "reason='auc_macro" in repr(rows[0])
    lines = repr(rows).splitlines()
    assert lines[0] == "<ClassRows: 10 of 1 (model, slice), 4 classes"
    assert lines[1].split()[:4] == ["model", "slice", "class", "seq"]
    assert "auc_macro" in lines[1]
    macro, low, high = rows[0].auc_macro, rows[0].auc_macro_low, rows[0].auc_macro_high
    assert f"{macro:.4f} [{low:.4f}, {high:.4f}]" in lines[2]
    assert lines[3].split()[:3] == [rows[1].model, rows[1].slice, rows[1].class_]
    assert f"<td>{macro:.4f} [{low:.4f}, {high:.4f}]</td>" in rows._repr_html_()
    assert f"auc_macro={macro:.4f} [{low:.4f}, {high:.4f}], auc_weighted=" in repr(rows[0])
    with pytest.raises(InputError, match="class 'cow' is none"):
        rows.of_class("cow")
    empty = ev.update([], np.empty((0, 4)))
    assert len(empty) == 0
    assert rows.to_pandas()["class"].tolist()[:2] == [None, "cat"]
