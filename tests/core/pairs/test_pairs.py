"""Rows of pairs are what slow formulas say, at every prefix, for any cut, over every restart."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.encoding.fields import framed, unframed
from rocsteady.core.errors import (
    ConfigError,
    FutureVersionError,
    InputError,
    OtherConfigurationError,
    TimeUnitWarning,
    WireError,
)
from sklearn.metrics import roc_auc_score

from tests.support.oracles.pairs import Instance, PairOracle
from tests.support.streams.batches import flips, truncations
from tests.support.thorough import examples, others_slow

WINDOWS = {
    "last:6": ({"last": 6}, rs.LastEvents(6)),
    "last:9s": ({"duration": 9_000_000}, rs.LastDuration("9s")),
    "fading:4": ({"half_life": 4}, rs.Fading(4)),
    "fading:1s": ({"half_life": 1_000_000, "by_time": True}, rs.Fading("1s")),
    "all": ({}, rs.AllEvents()),
}
KINDS = ["random", "tied", "sorted", "alike", "perfect", "opposed", "rare"]
BLOCKS = [(100, 0.95), (10_000, 0.95), (10_000, 0.99)]
"""How many instances make a block, and confidences."""

EVERY = {"1": ({"every": 1}, rs.EveryEvents(1)), "4s": ({"grid": 4_000_000}, rs.EverySeconds("4s"))}


def close(mine, theirs):
    if mine is None or theirs is None or isinstance(mine, str | int):
        return mine == theirs
    return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-11)


def fed(pair, instances, cuts=()):
    """Feed instances in calls that end at the cuts, each time after a restart; return all rows."""
    rows = []
    for first, end in zip([0, *cuts], [*cuts, len(instances)], strict=True):
        part = instances[first:end]
        columns = [
            [math.nan if value is None else value for value in column] for column in zip(*part, strict=True)
        ]
        if part:
            label, score, against, time = columns
            rows += pair.update(label, score, against, times=[each // 1_000_000 for each in time])
        data = pair.to_bytes()
        assert len(data) - len(pair.to_bytes()) == 0
        pair = rs.PairEvaluator.from_bytes(data)
    return rows + pair.finish()


def oracle_rows(instances, **how):
    oracle = PairOracle(**how)
    for instance in instances:
        oracle.take(instance)
    taken = oracle.seq + oracle.only_model + oracle.only_against
    told = oracle.rows[-1] if oracle.rows else None
    if taken != (told["seq"] + told["only_model"] + told["only_against"] if told else 0):
        oracle.row(None)
    return oracle.rows


SCORE = st.sampled_from([None, 0.0, 0.1, 0.1, 0.5, 0.5, 0.9, 1.0, -3.0, 1e300, 5e-324])


@st.composite
def streams(draw):
    """Instances with many ties; times mostly in order."""
    count = draw(st.integers(1, 40))
    now, instances = draw(st.integers(0, 5)), []
    for _ in range(count):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 30]))
        late = draw(st.sampled_from([0, 0, 0, 3, 12]))
        a, b = draw(SCORE), draw(SCORE)
        if a is None and b is None:
            a = 0.2
        label = draw(st.integers(0, 1))
        instances.append(Instance(label, a, b, (now - late) * 1_000_000))
    return instances


@settings(deadline=None, max_examples=examples(120))
@given(streams(), st.sampled_from(sorted(WINDOWS)), st.sampled_from(sorted(EVERY)), st.data())
def test_rows_are_those_of_slow_formulas_at_every_prefix_for_any_cut(instances, window, every, data):
    how, chosen = WINDOWS[window]
    when, due = EVERY[every]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(instances)), max_size=5)))
    rows = fed(rs.PairEvaluator(window=chosen, every=due, model="a", against="b"), instances, cuts)
    expected = oracle_rows(instances, **how, **when)
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        for name, value in wanted.items():
            assert close(getattr(row, name), value), (name, row, wanted)
    assert rows == fed(rs.PairEvaluator(window=chosen, every=due, model="a", against="b"), instances)


@pytest.mark.parametrize(("kind", "blocks"), others_slow(itertools.product(KINDS, BLOCKS)))
def test_the_interval_at_any_time_is_that_of_slow_formulas(kind, blocks):
    exact, confidence = blocks
    rng = np.random.default_rng(3)
    n = 330
    labels = (rng.random(n) < (0.12 if kind == "rare" else 0.45)).astype(int)
    a, b = labels + rng.normal(size=n), labels / 2 + rng.normal(size=n)
    if kind == "tied":
        a, b = np.round(a), np.round(b)
    elif kind == "sorted":
        a, b = np.sort(a), np.sort(b)[::-1]
    elif kind == "alike":
        b = a.copy()
    elif kind in ("perfect", "opposed"):
        a = labels + rng.random(n) / 2
        b = -a if kind == "opposed" else np.zeros(n)
    window, every = rs.LastEvents(50), rs.EveryEvents(55)
    pair = rs.PairEvaluator(window=window, every=every, exact=exact, confidence=confidence)
    instances = [Instance(*each) for each in zip(labels.tolist(), a.tolist(), b.tolist(), strict=True)]
    expected = oracle_rows(instances, last=50, every=55, exact=exact, alpha=1 - confidence)
    rows = []
    for first in range(0, n, 7):
        rows += pair.update(*(column[first : first + 7] for column in (labels, a, b)))
    for row, wanted in zip(rows, expected, strict=True):
        for name, value in wanted.items():
            assert close(getattr(row, name), value), (name, row, wanted)
    assert rows[-1].anytime_blocks == {100: {"rare": 1}.get(kind, 3), 10_000: 1}[exact] or kind == "rare"
    if kind == "alike":
        assert {row.difference for row in rows} == {0.0}
        assert {row.p for row in rows} == {1.0}
        assert all("no variance" in row.reason and row.difference_low is None for row in rows)
        assert rows[-1].anytime_low == -rows[-1].anytime_high


def test_aucs_are_those_of_scikit_learn_in_every_window():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 3_000)
    a, b = np.round(labels + rng.normal(size=3_000), 1), labels + rng.normal(size=3_000)
    rows = rs.PairEvaluator(window=rs.LastEvents(400), every=rs.EveryEvents(150)).update(labels, a, b)
    assert len(rows) == 20
    for row in rows:
        held = slice(max(0, row.seq - 400), row.seq)
        assert math.isclose(row.auc, roc_auc_score(labels[held], a[held]))
        assert math.isclose(row.auc_against, roc_auc_score(labels[held], b[held]))
        test = rs.delong_test(labels[held], a[held], b[held])
        assert math.isclose(row.p, test.p_value, rel_tol=1e-9)


def test_no_order_of_instances_within_a_window_changes_a_figure():
    rng = np.random.default_rng(4)
    labels, a, b = rng.integers(0, 2, 500), np.round(rng.normal(size=500), 1), rng.normal(size=500)
    order = rng.permutation(500)
    rows = [
        rs.PairEvaluator(window=rs.AllEvents(), every=rs.EveryEvents(500)).update(labels[o], a[o], b[o])[0]
        for o in (np.arange(500), order)
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("half_life", [7, 30, 150])
def test_models_without_a_mistake_do_not_differ_in_a_fading_window(half_life):
    """However each orders the instances within a class: sums of weights are exact in any order."""
    rng = np.random.default_rng(9)
    labels = (rng.random(2_000) < 0.3).astype(int)
    a, b = labels + rng.random((2, 2_000)) * 0.9
    window = {"window": rs.Fading(half_life), "every": rs.EveryEvents(50)}
    for row in rs.PairEvaluator(**window).update(labels, a, b)[4:]:
        assert (row.auc, row.auc_against, row.difference, row.p) == (1.0, 1.0, 0.0, 1.0)
        assert row.difference_low is None
        assert "no variance" in row.reason
    for row in rs.PairEvaluator(**window).update(labels, a, np.zeros(2_000))[4:]:
        assert (row.difference, row.p, row.difference_low) == (0.5, None, None)


def test_both_models_swapped_give_the_opposite():
    rng = np.random.default_rng(5)
    labels, a, b = rng.integers(0, 2, 900), rng.normal(size=900), rng.normal(size=900)
    one, other = (
        rs.PairEvaluator(window=rs.LastEvents(300), every=rs.EveryEvents(300)).update(labels, *scores)[-1]
        for scores in ((a, b), (b, a))
    )
    assert (one.difference, one.difference_low, one.anytime_low) == (
        -other.difference, -other.difference_high, -other.anytime_high,
    )  # fmt: skip
    assert one.p == other.p


def test_a_verdict_stays_and_an_interval_never_grows():
    rng = np.random.default_rng(6)
    n = 6_000
    labels = rng.integers(0, 2, n)
    champion = labels + rng.normal(size=n)
    rows = rs.PairEvaluator(every=rs.EveryEvents(50)).update(labels, champion + labels, champion)
    told = [row for row in rows if row.anytime_low is not None]
    assert all(x.anytime_low <= y.anytime_low for x, y in itertools.pairwise(told))
    first = next(number for number, row in enumerate(rows) if row.verdict == "better")
    assert 0 < first < 20
    assert all(row.verdict == "better" for row in rows[first:])


def test_a_difference_that_turns_around_is_a_contradiction_for_good():
    rng = np.random.default_rng(7)
    n = 60_000
    labels = rng.integers(0, 2, n)
    good, bad = labels * 2 + rng.normal(size=n), labels * 0.2 + rng.normal(size=n)
    late = np.arange(n) >= 4_000
    pair = rs.PairEvaluator(every=rs.EveryEvents(1_000))
    rows = pair.update(labels, np.where(late, bad, good), np.where(late, good, bad))
    verdicts = [row.verdict for row in rows]
    assert verdicts[3] == "better"
    assert verdicts[-1] == "contradicted"
    turned = verdicts.index("contradicted")
    assert set(verdicts[turned:]) == {"contradicted"}
    assert rows[turned].anytime_low is None
    assert "has changed" in rows[turned].reason
    assert rs.PairEvaluator.from_bytes(pair.to_bytes()).now().verdict == "contradicted"


def test_the_state_beyond_the_exact_number_does_not_grow_and_a_row_says_so():
    rng = np.random.default_rng(8)
    pair = rs.PairEvaluator(window=rs.LastEvents(50), every=rs.EveryEvents(500), exact=1_000)
    sizes, rows = [], []
    for _ in range(40):
        labels = rng.integers(0, 2, 250)
        rows += pair.update(labels, labels + rng.normal(size=250), rng.normal(size=250))
        sizes.append(len(pair.to_bytes()))
    assert max(sizes[8:]) <= max(sizes[:8]) < 20_000
    assert [row.anytime_blocks for row in rows[:5]] == [1, 1, 2, 2, 3]
    assert rows[1].reason is None
    assert "pairs within 2 blocks" in rows[2].reason
    assert rows[-1].anytime_events == 10_000


def test_a_class_that_is_rare_beyond_measure_costs_no_memory_and_what_is_left_out_is_said():
    rng = np.random.default_rng(9)
    pair = rs.PairEvaluator(window=rs.LastEvents(50), every=rs.EveryEvents(5_000), exact=200)
    labels = (np.arange(5_000) % 100 == 0).astype(int)
    [row] = pair.update(labels, labels + rng.normal(size=5_000), rng.normal(size=5_000))
    assert row.anytime_blocks == 1
    assert row.anytime_events == 30 + 200
    assert "of the common class" in row.reason


def test_an_instance_that_one_model_scored_is_counted_and_nothing_else():
    nan = math.nan
    pair = rs.PairEvaluator(every=rs.EveryEvents(2))
    rows = pair.update([1, 0, 1, 0, 1], [0.9, nan, 0.3, 0.1, nan], [0.8, 0.2, nan, 0.3, 0.1])
    assert [(row.seq, row.only_model, row.only_against) for row in rows] == [(2, 1, 1)]
    [last] = pair.finish()
    assert (last.seq, last.only_model, last.only_against) == (2, 1, 2)
    assert pair.finish() == []


def test_a_champion_that_never_scored_gives_a_row_that_says_so():
    pair = rs.PairEvaluator()
    assert pair.update([1, 0], [0.9, 0.1], [math.nan] * 2) == []
    [row] = pair.finish()
    assert (row.seq, row.only_model, row.auc, row.verdict) == (0, 2, None, "undecided")
    assert "no instance in window was scored by both" in row.reason
    assert "fewer than 30" in row.reason


def test_what_is_now_is_no_look():
    rng = np.random.default_rng(10)
    labels, a, b = rng.integers(0, 2, 2_000), rng.normal(size=2_000), rng.normal(size=2_000)
    looked, quiet = (rs.PairEvaluator(every=rs.EveryEvents(1_000)) for _ in range(2))
    for first in range(0, 2_000, 100):
        part = slice(first, first + 100)
        rows = [pair.update(labels[part], a[part], b[part]) for pair in (looked, quiet)]
        assert rows[0] == rows[1]
        before = looked.to_bytes()
        assert looked.now().seq == first + 100
        assert looked.to_bytes() == before


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"window": rs.Adaptive()}, "adaptive window follows the signal of one model"),
        ({"window": 5}, "give LastEvents"),
        ({"every": 0}, "give EveryEvents"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"confidence": True}, "between 0 and 1"),
        ({"confidence": 1e-17}, "between 0 and 1"),
        ({"anytime_at": 99}, "100 or more"),
        ({"exact": 10.5}, "100 or more"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_a_sentence(choices, said):
    with pytest.raises(ConfigError, match=said):
        rs.PairEvaluator(**choices)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (([1, 0], [0.5], [0.5, 0.1]), "differ in length"),
        (([1, 0], [0.5, math.inf], [0.5, 0.1]), r"scores\[1\] is inf"),
        (([1, 2], [0.5, 0.2], [0.5, 0.1]), r"labels\[1\] is 2"),
        (([1, 0], [math.nan, 0.2], [math.nan, 0.1]), "score of neither model"),
        (([1, 0], [["a", "b"]], [0.5, 0.1]), "not numbers"),
        (([1, 0], [[0.1, 0.2]], [0.5, 0.1]), "2 dimensions"),
    ],
)
def test_instances_that_cannot_be_are_refused_and_change_nothing(columns, said):
    pair = rs.PairEvaluator()
    before = pair.to_bytes()
    with pytest.raises(InputError, match=said):
        pair.update(*columns)
    assert pair.to_bytes() == before


def test_windows_by_time_need_times():
    with pytest.raises(InputError, match="needs the time of every instance"):
        rs.PairEvaluator(window=rs.LastDuration("1h")).update([1, 0], [0.5, 0.1], [0.5, 0.1])
    with pytest.warns(TimeUnitWarning, match="time_unit"):
        rs.PairEvaluator().update([1] * 3, [0.5] * 3, [0.5] * 3, times=[1.7e12] * 3, time_unit="us")


def test_a_snapshot_of_other_settings_or_other_bytes_is_refused():
    pair = rs.PairEvaluator(window=rs.LastEvents(5), every=rs.EveryEvents(2))
    pair.update([1, 0, 1], [0.5, 0.1, 0.2], [0.5, 0.1, 0.7])
    data = pair.to_bytes()
    with pytest.raises(OtherConfigurationError, match="window"):
        rs.PairEvaluator.from_bytes(data, rs.PairSettings())
    for damaged in (*flips(data), *truncations(data), b"", b"RSPW"):
        with pytest.raises(WireError):
            rs.PairEvaluator.from_bytes(damaged)
    with pytest.raises(FutureVersionError):
        rs.PairEvaluator.from_bytes(data[:4] + b"\x02" + data[5:])


@pytest.mark.parametrize("place", ["score of the window", "score of the block", "mass", "row"])
def test_a_state_that_contradicts_itself_under_a_right_checksum_is_refused(place):
    pair = rs.PairEvaluator(window=rs.LastEvents(5), every=rs.EveryEvents(50), exact=100)
    labels, scores = np.tile([0, 1], 65), np.arange(130.0)
    pair.update(labels, scores, scores[::-1])
    assert pair.now().anytime_blocks == 1
    payload = bytearray(unframed(pair.to_bytes(), b"RSPW", 1, "a test"))
    scored = payload.index(np.arange(125.0, 130.0).tobytes())
    value = np.array([np.nan]).tobytes()
    if place == "score of the block":
        scored = payload.index(np.arange(100.0, 130.0).tobytes())
    elif place == "mass":  # 50 positives and 50 negatives weigh 25
        scored, value = payload.index(np.array([25.0]).tobytes()), np.array([1e-310]).tobytes()
    elif place == "row":  # the counters begin with how many instances came, and the next row
        scored, value = payload.index(np.array([130, 2]).tobytes()) + 8, np.array([2**63 - 1]).tobytes()
    payload[scored : scored + 8] = value
    with pytest.raises(WireError):
        rs.PairEvaluator.from_bytes(framed(b"RSPW", 1, bytes(payload)))
