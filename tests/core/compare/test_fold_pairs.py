"""The machine that compares the learners of a fold, against loops over everything they said."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.compare import fold_pairs
from rocsteady.core.compare.comparison_settings import ComparisonSettings
from rocsteady.core.compare.fold_pairs import MAGIC, FoldPairs
from rocsteady.core.compare.fold_report import VERSION, FoldReport, PairedFold
from rocsteady.core.encoding.fields import framed, unframed
from rocsteady.core.errors import (
    ConfigError,
    CorruptBytesError,
    ForeignBytesError,
    InputError,
    OtherConfigurationError,
    WireError,
)
from rocsteady.core.events.records import Clock, EndOfInput
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.rows.columns import NUMBER_COLUMNS
from rocsteady.core.settings.windows import Adaptive, AllEvents, Fading, LastDuration, LastEvents

from tests.support.pages.fold_reports import HOUR, LEARNERS, SETTINGS, reports_of
from tests.support.thorough import THOROUGH, examples, some

PAIRS = list(combinations(range(3), 2))


def of_fold(reports, fold=1):
    return [report for report in reports if report.fold == fold]


def fed(machine, reports):
    return [output for report in reports for output in machine.apply(report.pack())]


def rows_of(machine, reports):
    return [output for output in fed(machine, reports) if not isinstance(output, bytes)]


def by_test(rows, test):
    return [row for row in rows if row.test == test]


# ---- the oracle: every pair at every checkpoint, over all that its learners said, instance by instance


def holm_by_steps(p_values):
    """Return p-values corrected one after the other, None for None."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    found, reached = [None] * len(p_values), 0.0
    for step, (p, place) in enumerate(order):
        reached = max(reached, p * (len(order) - step))
        found[place] = min(reached, 1.0)
    return found


def evidence(a, b):
    """Return the logarithm of E of a and b discordant instances."""
    log_beta = math.lgamma(a + 0.5) + math.lgamma(b + 0.5) - math.lgamma(a + b + 1)
    return (a + b) * math.log(2) + log_beta - math.log(math.pi)


def delong_by_pairs(labels, a, b):
    """Return difference of the AUCs and its standard error, by every pair of a positive and a negative."""
    placements = []
    for scores in (a, b):
        wins = [
            [(one > other) + 0.5 * (one == other) for other, y in zip(scores, labels, strict=True) if y == 0]
            for one, x in zip(scores, labels, strict=True)
            if x == 1
        ]
        placements.append(np.array(wins))
    difference = placements[0] - placements[1]
    positives, negatives = difference.shape
    variance = difference.mean(axis=1).var(ddof=1) / positives
    variance += difference.mean(axis=0).var(ddof=1) / negatives
    return difference.mean(), math.sqrt(variance)


def in_window(seen, window, due):
    """Return those of the instances (place, time, ...) that a window holds."""
    if isinstance(window, LastEvents):
        return seen[-window.k :]
    if isinstance(window, LastDuration):
        now = max([each[0] for each in seen] + [due])
        return [each for each in seen if each[0] > now - window.micros]
    return seen


def oracle(reports, window):
    """Yield (test, a, b, checkpoint) and what its row must say, as a dict; p_holm beside."""
    greatest = dict.fromkeys(PAIRS, 0.0)
    for checkpoint in range(max(report.checkpoint for report in reports) + 1):
        upto = [[r for r in reports if r.learner == each and r.checkpoint <= checkpoint] for each in range(3)]
        seen = []  # (time, label, wrong of each learner or None, score of each)
        for parts in zip(*upto, strict=True):
            for i in range(len(parts[0])):
                failed = [bool(len(part.missing)) and bool(part.missing[i]) for part in parts]
                wrong = [
                    None if fail else bool(part.wrong[i]) for fail, part in zip(failed, parts, strict=True)
                ]
                scores = [part.scores[i] for part in parts]
                seen.append((int(parts[0].times[i]), int(parts[0].labels[i]), wrong, scores))
        mcnemar, delong = {}, {}
        for a, b in PAIRS:
            both = [each for each in seen if each[2][a] is not None and each[2][b] is not None]
            only_a = sum(each[2][a] and not each[2][b] for each in both)
            only_b = sum(each[2][b] and not each[2][a] for each in both)
            greatest[a, b] = max(greatest[a, b], evidence(only_a, only_b))
            chi_squared = (only_a - only_b) ** 2 / (only_a + only_b) if only_a + only_b else 0.0
            mcnemar[a, b] = {
                "wins_a": only_b, "wins_b": only_a, "p_value": math.erfc(math.sqrt(chi_squared / 2)),
                "statistic": chi_squared if only_a > only_b else -chi_squared,
                "p_anytime": min(1.0, math.exp(-greatest[a, b])), "leader": only_b - only_a,
                "left_out": len(seen) - len(both),
            }  # fmt: skip
            held = in_window(seen, window, upto[0][-1].due)
            both = [each for each in held if each[2][a] is not None and each[2][b] is not None]
            labels = [each[1] for each in both]
            difference, error = delong_by_pairs(labels, *([each[3][c] for each in both] for c in (a, b)))
            delong[a, b] = {
                "statistic": difference / error,
                "p_value": math.erfc(abs(difference) / error / math.sqrt(2)),
                "p_anytime": None, "wins_a": None, "wins_b": None, "leader": difference,
                "left_out": len(held) - len(both),
            }  # fmt: skip
        for test, found in (("mcnemar", mcnemar), ("delong", delong)):
            p_holm = holm_by_steps([found[pair]["p_value"] for pair in PAIRS])
            for pair, p in zip(PAIRS, p_holm, strict=True):
                yield (test, *pair, checkpoint), found[pair] | {"p_holm": p}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "grid"),
    some(product([LastEvents(50), LastEvents(10_000), LastDuration("90m"), AllEvents()], [False, True])),
    ids=str,
)
def test_tests_agree_with_loops_over_all_instances(window, grid):
    chosen = replace(SETTINGS, window=window)
    reports = of_fold(reports_of(grid=grid, failing=0.1, settings=chosen))
    rows = rows_of(FoldPairs(chosen, 1), reports)
    expected = dict(oracle(reports, window))
    assert len(rows) == len(expected) == 6 * 6
    for row in rows:
        key = row.test, LEARNERS.index(row.learner_a), LEARNERS.index(row.learner_b), row.checkpoint
        want = expected.pop(key)
        for name in ("statistic", "p_value", "p_anytime", "p_holm", "wins_a", "wins_b"):
            value = want[name]
            assert getattr(row, name) == (value if value is None else pytest.approx(value, rel=1e-6)), name
        leader = row.learner_a if want["leader"] > 0 else row.learner_b
        assert row.better == (leader if want["p_holm"] <= 0.05 else "")
        assert ("instances without an answer of both are left out" in str(row.reason)) == (
            want["left_out"] > 0
        )
        assert str(row.reason).startswith(f"{want['left_out']:,} inst") or not want["left_out"]
        assert row.measure == ("auc" if row.test == "delong" else "accuracy")
        assert (row.slice, row.folds, row.alpha) == ("fold=1", 1, 0.05)
        assert row.time == (row.checkpoint + 1) * HOUR
    assert {row.better for row in rows} >= {"", "best"}


def test_significant_at_one_look_alone_is_said():
    rows = by_test(rows_of(FoldPairs(SETTINGS, 1), of_fold(reports_of(20, seed=3, skill=0.3))), "mcnemar")
    noted = [row for row in rows if "significant for one look only" in str(row.reason)]
    assert 0 < len(noted) < sum(bool(row.better) for row in rows)
    for row in noted:
        assert row.better
        assert row.p_holm <= 0.05
    for checkpoint in range(20):
        here = [row for row in rows if row.checkpoint == checkpoint]
        anytime = holm_by_steps([row.p_anytime for row in here])
        for row, p in zip(here, anytime, strict=True):
            assert (row in noted) == (bool(row.better) and p > 0.05)


def test_folds_go_on_to_where_they_meet():
    reports = of_fold(reports_of(4, grid=True))
    outputs = fed(FoldPairs(SETTINGS, 1), reports)
    packed = [output for output in outputs if isinstance(output, bytes)]
    assert len(packed) == 4
    assert [type(output) is bytes for output in outputs] == ([False] * 6 + [True]) * 4
    for place, paired in enumerate(map(PairedFold.unpack, packed)):
        first = reports[3 * place]
        assert (paired.fold, paired.checkpoint, paired.seq) == (1, place, first.seq)
        assert (paired.time, paired.due) == (first.time, first.due)
        assert paired.at == (place, first.due, first.seq)
        mine = reports[3 * place : 3 * place + 3]
        assert np.array_equal(paired.measures, [each.measures for each in mine], equal_nan=True)
        assert paired.failures.tolist() == [each.failures for each in mine]
        assert PairedFold.unpack(paired.pack()).pack() == packed[place]


def test_one_learner_has_no_pairs():
    alone = ComparisonSettings(("best",), 3)
    reports = [replace(each, measures=np.zeros(0)) for each in of_fold(reports_of(2)) if not each.learner]
    outputs = fed(FoldPairs(alone, 1), reports)
    assert [PairedFold.unpack(output).checkpoint for output in outputs] == [0, 1]
    assert np.isnan(PairedFold.unpack(outputs[0]).measures).all()


# ---- order, repeats and restarts

WINDOWS = [LastEvents(50), LastDuration("90m"), AllEvents(), Adaptive()]


@settings(max_examples=examples(60))
@given(st.data())
def test_neither_order_nor_repeats_nor_restarts_change_anything(data):
    chosen = replace(SETTINGS, window=data.draw(st.sampled_from(WINDOWS)))
    reports = of_fold(reports_of(5, instances=20, settings=chosen))
    undisturbed = fed(FoldPairs(chosen, 1), reports)
    repeated = data.draw(st.lists(st.sampled_from(reports), max_size=4))
    shuffled = data.draw(st.permutations([*reports, *repeated]))
    restarts = data.draw(st.sets(st.integers(0, len(shuffled) - 1)))
    machine, outputs = FoldPairs(chosen, 1), []
    for place, report in enumerate(shuffled):
        if place in restarts:
            machine = FoldPairs.from_bytes(machine.to_bytes(), chosen, 1)
        outputs += machine.apply(report.pack())
    assert outputs == undisturbed
    assert machine.gauges() == {"reports_waiting": 0}


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_restart_at_every_record_changes_nothing_and_sizes_are_known(window):
    chosen = replace(SETTINGS, window=window)
    reports = of_fold(reports_of(6, settings=chosen))[::-1]
    undisturbed, machine, outputs = fed(FoldPairs(chosen, 1), reports), FoldPairs(chosen, 1), []
    for place, report in enumerate(reports):
        outputs += machine.apply(report.pack())
        snapshot = machine.to_bytes()
        assert machine.snapshot_bytes() == len(snapshot)
        assert machine.live_bytes() >= len(snapshot) / 2
        assert machine.gauges()["reports_waiting"] == (place + 1 if place < 17 else 0)
        machine = FoldPairs.from_bytes(snapshot, chosen, 1)
        assert machine.to_bytes() == snapshot
    assert outputs == undisturbed
    assert machine.wakes_at() is None
    assert machine.counts() == {}


def test_words_of_a_stream_are_no_news():
    machine = FoldPairs(SETTINGS, 1)
    first, *others = of_fold(reports_of(1))
    before = machine.apply(first.pack())
    assert before == machine.apply(EndOfInput().pack()) == machine.apply(Clock(5).pack()) == []
    assert len(fed(machine, others)) == 7


# ---- what cannot be tested


@pytest.mark.parametrize(("window", "kind"), [(Adaptive(), "adaptive"), (Fading(100), "fading")])
def test_windows_of_other_instances_or_weights_compare_no_aucs(window, kind):
    chosen = replace(SETTINGS, window=window)
    assert not chosen.needs_scores
    rows = rows_of(FoldPairs(chosen, 1), of_fold(reports_of(2)))
    assert len(by_test(rows, "mcnemar")) == len(by_test(rows, "delong")) == 6
    for row in by_test(rows, "delong"):
        assert (row.p_value, row.p_holm, row.better) == (None, None, "")
        assert row.reason.endswith(f"equal weights, which {kind} windows do not have")


def test_without_scores_there_is_mcnemar_alone():
    chosen = ComparisonSettings(LEARNERS, 3, compares_aucs=False)
    assert chosen.measures == ("accuracy", "kappa")
    empty = np.zeros(0)
    reports = [
        replace(each, labels=empty.astype(np.int8), scores=empty, times=empty.astype(np.int64))
        for each in of_fold(reports_of(2))
    ]
    assert {row.test for row in rows_of(FoldPairs(chosen, 1), reports)} == {"mcnemar"}


def changed(reports, **change):
    """Return reports with something else in each, made of the report."""
    return [replace(each, **{name: make(each) for name, make in change.items()}) for each in reports]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (lambda each: each.labels * 0, "one class in window"),
        (lambda each: each.labels * 0 + 1, "one class in window"),
        (
            lambda each: (np.arange(len(each)) == len(each) - 1).astype(np.int8),
            "fewer than two positives or negatives in window",
        ),
    ],
)
def test_too_few_of_a_class_have_no_auc(labels, reason):
    reports = changed(of_fold(reports_of(1, failing=0)), labels=labels)
    rows = rows_of(FoldPairs(SETTINGS, 1), reports)
    assert {(row.p_value, row.reason) for row in by_test(rows, "delong")} == {(None, reason)}
    assert all(row.p_value is not None for row in by_test(rows, "mcnemar"))


def test_where_nothing_was_tested_or_answered_it_says_so():
    bare = {"wrong": np.zeros(0, np.bool_), "missing": np.zeros(0, np.bool_)}
    bare |= {"labels": np.zeros(0, np.int8), "scores": np.zeros(0), "times": np.zeros(0, np.int64)}
    first, *later = (of_fold(reports_of(2, failing=0))[start : start + 3] for start in (0, 3))
    rows = rows_of(FoldPairs(SETTINGS, 1), [replace(each, **bare) for each in first])
    assert {row.reason for row in by_test(rows, "mcnemar")} == {"no instance so far has an answer of both"}
    assert {row.reason for row in by_test(rows, "delong")} == {"no instance in window has an answer of both"}
    assert {(row.p_value, row.p_anytime, row.better) for row in rows} == {(None, None, "")}
    silent = changed(later[0][:1], missing=lambda each: np.ones(len(each), np.bool_))
    reports = [*silent, *later[0][1:]]
    rows = rows_of(FoldPairs(SETTINGS, 1), [replace(each, checkpoint=0) for each in reports])
    n = len(reports[0])
    for row in rows:
        if row.learner_a == "best":
            assert row.p_value is None
            assert row.reason.startswith(f"{n} instances without an answer of both are left out; no instance")
        else:
            assert row.p_value is not None
            assert row.p_holm == row.p_value


def test_learners_that_say_the_same_have_p_one():
    first = of_fold(reports_of(1))[0]
    rows = rows_of(FoldPairs(SETTINGS, 1), [replace(first, learner=each) for each in range(3)])
    assert {(row.p_value, row.p_holm, row.statistic, row.better) for row in rows} == {(1, 1, 0, "")}
    assert {row.p_anytime for row in by_test(rows, "mcnemar")} == {1}


def test_a_difference_without_variance_says_so():
    reports = of_fold(reports_of(1, failing=0))
    signs = (1, -1, 1)
    reports = [
        replace(each, scores=each.labels * float(sign)) for each, sign in zip(reports, signs, strict=True)
    ]
    rows = by_test(rows_of(FoldPairs(SETTINGS, 1), reports), "delong")
    assert [(row.p_value, row.statistic, row.better) for row in rows] == [
        (0, None, "best"), (1, 0, ""), (0, None, "poor"),
    ]  # fmt: skip
    assert rows[0].reason == rows[2].reason == "degenerate: their difference has no variance in window"


def test_a_score_that_is_no_number_is_no_answer():
    first, *others = of_fold(reports_of(1, failing=0))
    scores = first.scores.copy()
    scores[:3] = np.inf, -np.inf, np.nan
    rows = by_test(rows_of(FoldPairs(SETTINGS, 1), [replace(first, scores=scores), *others]), "delong")
    assert [str(row.reason)[:11] for row in rows] == ["3 instances", "3 instances", "None"]


@pytest.mark.parametrize("window", [AllEvents(), LastDuration("3h")], ids=str)
def test_a_window_of_too_much_is_refused_until_it_holds_less(window, monkeypatch):
    monkeypatch.setattr(fold_pairs, "MOST_INSTANCES", 100)
    chosen = replace(SETTINGS, window=window)
    reports = of_fold(reports_of(14, settings=chosen, failing=0, grid=True))
    # from the sixth checkpoint on the stream is thinner
    thin = {
        name: lambda each, name=name: getattr(each, name)[:: 4 if each.checkpoint > 5 else 1]
        for name in ("wrong", "labels", "scores", "times")
    }
    reports = changed(reports, **thin)
    machine, rows = FoldPairs(chosen, 1), []
    for report in reports:
        machine = FoldPairs.from_bytes(machine.to_bytes(), chosen, 1)
        rows += rows_of(machine, [report])
    refused = {row.checkpoint for row in by_test(rows, "delong") if row.p_value is None}
    assert {row.reason for row in by_test(rows, "delong") if row.p_value is None} == {
        "AUCs are compared over 1,000,000 instances at the most; take a shorter window"
    }
    sizes = [len(each) for each in reports[::3]]
    reach = 14 if isinstance(window, AllEvents) else 3
    expected, full = set(), -reach
    for place in range(14):
        first = 0 if reach == 14 else max(place + 1 - reach, full + 1, 0)
        full = place if sum(sizes[first : place + 1]) > 100 else full
        expected |= {place} if place - full < reach else set()
    assert refused == expected
    if isinstance(window, LastDuration):
        assert 13 not in refused
        found = dict(oracle(reports, window))
        last = by_test(rows, "delong")[-3:]
        for row, pair in zip(last, PAIRS, strict=True):
            assert row.p_value == pytest.approx(found["delong", *pair, 13]["p_value"])
    assert by_test(rows, "mcnemar")[-1].p_value is not None


def test_windows_that_can_only_be_too_large_hold_nothing():
    large = replace(SETTINGS, window=LastEvents(1_000_001))
    assert not large.needs_scores
    rows = by_test(rows_of(FoldPairs(large, 1), of_fold(reports_of(1))), "delong")
    assert {row.reason for row in rows} == {
        "AUCs are compared over 1,000,000 instances at the most; take a shorter window"
    }
    assert replace(SETTINGS, window=LastEvents(1_000_000)).needs_scores


# ---- what is wrong


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fold": 0}, "learner 0 in fold 0 came to fold 1"),
        ({"learner": 3}, "learner 3 in fold 1 came to fold 1 of 3 learners"),
        ({"measures": np.zeros(3)}, "has 3 measures where rows have"),
        ({"scores": np.zeros(0)}, "labels, 0 scores"),
    ],
)
def test_reports_that_do_not_belong_here_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        FoldPairs(SETTINGS, 1).apply(replace(of_fold(reports_of(1))[0], **change).pack())


def test_times_are_asked_for_where_the_window_needs_them():
    chosen = replace(SETTINGS, window=LastDuration("1h"))
    assert chosen.needs_times
    report = replace(of_fold(reports_of(1))[0], times=np.zeros(0, np.int64))
    with pytest.raises(InputError, match="and 0 times; comparing AUCs in window last:1h needs"):
        FoldPairs(chosen, 1).apply(report.pack())


def test_learners_that_tested_other_instances_are_refused():
    first, second, third = of_fold(reports_of(1))
    for change in ({"labels": 1 - second.labels}, {"digest": second.digest + 1}):
        other = replace(second, **change)
        with pytest.raises(InputError, match=r"'best' and 'good' tested other instances in fold 1 .* order"):
            fed(FoldPairs(SETTINGS, 1), [first, other, third])


@pytest.mark.parametrize("data", [b"", b"RSXX" + bytes(40), b"RSFR"])
def test_bytes_that_are_no_record_are_refused(data):
    with pytest.raises(WireError):
        FoldPairs(SETTINGS, 1).apply(data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": 0.01}, "alpha was 0.05 and is now 0.01"),
        ({"window": AllEvents()}, "window was 'last:50' and is now 'all'"),
        ({"learners": ("best", "good", "worst")}, "learners was"),
        ({"folds": 4}, "folds was 3 and is now 4"),
        ({"measures": ("h",)}, "measures was"),
    ],
)
def test_a_state_of_other_settings_is_refused(change, words):
    machine = FoldPairs(SETTINGS, 1)
    fed(machine, of_fold(reports_of(2)))
    with pytest.raises(OtherConfigurationError, match=words):
        FoldPairs.from_bytes(machine.to_bytes(), replace(SETTINGS, **change), 1)
    with pytest.raises(CorruptBytesError, match="of fold 1 and not of fold 2"):
        FoldPairs.from_bytes(machine.to_bytes(), SETTINGS, 2)


def test_states_that_contradict_themselves_are_refused():
    machine, reports = FoldPairs(SETTINGS, 1), of_fold(reports_of(2))[:-1]
    fed(machine, reports)
    payload = bytes(unframed(machine.to_bytes(), MAGIC, VERSION, "a state"))
    pair = 4 + len(SETTINGS.to_json()) + 4
    waiting = pair + 3 * 40
    labels = len(payload) - len(reports[0]) * (1 + 8 * 3)
    for at, number in ((pair, 3), (pair + 32, -1.5), (waiting, 2), (waiting + 24, 7), (labels, 5)):
        form = "<B" if at == labels else "<d" if number < 0 else "<Q"
        wrong = bytearray(payload)
        struct.pack_into(form, wrong, at, number)
        with pytest.raises(CorruptBytesError, match="the state of a fold's comparisons contradicts itself"):
            FoldPairs.from_bytes(framed(MAGIC, VERSION, bytes(wrong)), SETTINGS, 1)
    for wrong in (payload[:-1], payload + b"x"):
        with pytest.raises(CorruptBytesError):
            FoldPairs.from_bytes(framed(MAGIC, VERSION, wrong), SETTINGS, 1)


@pytest.mark.parametrize("change", [{"learner": 2}, {"learner": 7}, {"fold": 2}, {"checkpoint": 9}], ids=str)
def test_a_report_that_waits_in_the_place_of_another_is_refused(change):
    (report,) = of_fold(reports_of(1))[:1]
    machine = FoldPairs(SETTINGS, 1)
    fed(machine, [report])
    other = replace(report, **change).pack()
    data = bytes(unframed(machine.to_bytes(), MAGIC, VERSION, "a state")).replace(report.pack(), other)
    with pytest.raises(CorruptBytesError, match="the state of a fold's comparisons contradicts itself"):
        FoldPairs.from_bytes(framed(MAGIC, VERSION, data), SETTINGS, 1)


def test_numbers_beyond_int64_are_no_report():
    (report,) = of_fold(reports_of(1))[:1]
    for change in ({"failures": 2**63}, {"seq": 2**64 - 1}):
        with pytest.raises(CorruptBytesError, match="the report of a fold contradicts itself"):
            FoldReport.unpack(replace(report, **change).pack())


def test_damaged_states_are_refused():
    machine = FoldPairs(SETTINGS, 1)
    fed(machine, of_fold(reports_of(2))[:-1])
    data = machine.to_bytes()
    random = np.random.default_rng(0)
    for place in random.integers(0, len(data), 300).tolist():
        with pytest.raises(WireError):
            FoldPairs.from_bytes(data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :], SETTINGS, 1)
        with pytest.raises(WireError):
            FoldPairs.from_bytes(data[:place], SETTINGS, 1)
    paired = PairedFold.of(of_fold(reports_of(1))).pack()
    for place in range(len(paired)):
        with pytest.raises(WireError):
            PairedFold.unpack(paired[:place] + bytes([paired[place] ^ 0x41]) + paired[place + 1 :])
    with pytest.raises(ForeignBytesError):
        PairedFold.unpack(data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learners": ()}, "give the names of one or more"),
        ({"learners": ("a", "a")}, "each its own"),
        ({"folds": 1}, "folds=1: give a whole number from 2"),
        ({"folds": True}, "folds=True"),
        ({"alpha": 1}, "alpha=1"),
        ({"measures": ("prevalence",)}, "'prevalence' does not say who is better"),
        ({"window": 10}, "window=10: give a window"),
    ],
)
def test_settings_are_checked(change, words):
    with pytest.raises(ConfigError, match=words):
        replace(SETTINGS, **change)


# ---- error rates under the null, with fixed seeds

STREAMS, CHECKPOINTS, INSTANCES = 300 if THOROUGH else 120, 45, 100


@pytest.mark.slow
def test_equal_learners_are_rejected_as_often_as_said():
    random = np.random.default_rng(45)
    chosen = ComparisonSettings(("a", "b"), 2, compares_aucs=False)
    none, measures = np.zeros(0), np.zeros(len(NUMBER_COLUMNS))
    last, once, anytime = 0, 0, 0
    for _ in range(STREAMS):
        machine, rows = FoldPairs(chosen, 0), []
        for checkpoint in range(CHECKPOINTS):
            for learner in range(2):
                report = FoldReport(
                    learner, 0, checkpoint, 0, NO_TIME, NO_TIME, 0, 0, measures,
                    random.random(INSTANCES) < 0.3, none.astype(np.bool_), none.astype(np.int8), none,
                    none.astype(np.int64),
                )  # fmt: skip
                rows += rows_of(machine, [report])
        last += rows[-1].p_value <= 0.05
        once += min(row.p_value for row in rows) <= 0.05
        anytime += min(row.p_anytime for row in rows) <= 0.05
        assert rows[-1].p_anytime == min(row.p_anytime for row in rows)

    def within(rate):
        """Return four standard errors of so many streams."""
        return 4 * math.sqrt(rate * (1 - rate) / STREAMS)

    assert last / STREAMS == pytest.approx(0.05, abs=within(0.05))
    assert once / STREAMS == pytest.approx(0.31, abs=within(0.31))
    assert anytime / STREAMS <= 0.05
