"""The machine in which folds meet, against the tests it is made of and the means of the statistics module."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.compare.comparison_settings import ComparisonSettings
from rocsteady.core.compare.comparisons import (
    DESCRIPTIVE,
    Checkpoint,
    ComparisonRow,
    FoldMean,
    compare_learners,
)
from rocsteady.core.compare.fold_report import VERSION, PairedFold
from rocsteady.core.compare.learners import MAGIC, LearnerComparisons
from rocsteady.core.encoding.fields import framed, unframed
from rocsteady.core.errors import CorruptBytesError, InputError, OtherConfigurationError, WireError
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.rows.columns import MASS_COLUMNS, NUMBER_COLUMNS
from rocsteady.core.rows.measure_table import MEASURES

from tests.support.pages.fold_reports import HOUR, LEARNERS, SETTINGS, compared, reports_of
from tests.support.thorough import examples


def folds_of(count=8, checkpoints=3, learners=3, seed=0, failures=0):
    """Return what folds say, checkpoint by checkpoint, with values missing here and there."""
    random = np.random.default_rng(seed)
    found = []
    for checkpoint in range(checkpoints):
        for fold in range(count):
            measures = random.random((learners, len(NUMBER_COLUMNS))) - np.arange(learners)[:, None] / 3
            measures[random.random(measures.shape) < 0.05] = np.nan
            measures[:, NUMBER_COLUMNS.index("kappa_per")] = np.nan
            moment = (checkpoint + 1) * HOUR
            found.append(
                PairedFold(
                    fold, checkpoint, 1_000 * (checkpoint + 1), moment, NO_TIME, measures,
                    np.arange(learners) * failures,
                )
            )  # fmt: skip
    return found


CHOSEN = ComparisonSettings(LEARNERS, 8, measures=("auc", "log_loss", "kappa"))


def fed(machine, folds):
    return [row for fold in folds for row in machine.apply(fold.pack())]


def test_rows_are_those_of_the_tests_they_are_made_of():
    folds = folds_of()
    rows = [row for row in fed(LearnerComparisons(CHOSEN), folds) if isinstance(row, ComparisonRow)]
    expected = []
    for checkpoint in range(3):
        here = folds[8 * checkpoint : 8 * checkpoint + 8]
        at = Checkpoint(checkpoint, (checkpoint + 1) * HOUR, 1_000 * (checkpoint + 1))
        for measure in CHOSEN.measures:
            values = np.array([fold.measures[:, NUMBER_COLUMNS.index(measure)] for fold in here]).T
            expected += compare_learners(LEARNERS, values, measure, at, of_one_stream=True)
    assert rows == expected
    reasons = {row.test: row.reason for row in rows}
    assert reasons == {"sign": None, "wilcoxon": None, "friedman": DESCRIPTIVE, "nemenyi": DESCRIPTIVE}
    assert {(row.slice, row.p_anytime) for row in rows} == {("", None)}
    assert {row.better for row in rows} > {"best", ""}


def test_means_are_over_the_folds_that_have_a_value():
    folds = folds_of(checkpoints=2)
    folds[3].measures[1, NUMBER_COLUMNS.index("h")] = -7
    for fold in folds[:7]:
        fold.measures[0, NUMBER_COLUMNS.index("ks")] = np.nan
    means = [row for row in fed(LearnerComparisons(CHOSEN), folds) if isinstance(row, FoldMean)]
    assert len({(mean.checkpoint, mean.model, mean.measure) for mean in means}) == len(means)
    found = {(mean.checkpoint, mean.model, mean.measure): mean for mean in means}
    for checkpoint, learner, measure in product(range(2), range(3), MEASURES):
        column = len(MASS_COLUMNS) + MEASURES.index(measure)
        here = folds[8 * checkpoint : 8 * checkpoint + 8]
        values = [float(fold.measures[learner, column]) for fold in here]
        values = [value for value in values if not math.isnan(value)]
        mean = found.pop((checkpoint, LEARNERS[learner], measure), None)
        if not values:
            assert mean is None
            continue
        assert (mean.folds, mean.least, mean.greatest) == (len(values), min(values), max(values))
        assert mean.mean == pytest.approx(statistics.fmean(values))
        spread = statistics.stdev(values) if len(values) > 1 else None
        assert mean.standard_deviation == (None if spread is None else pytest.approx(spread))
        assert (mean.time, mean.seq) == ((checkpoint + 1) * HOUR, 1_000 * (checkpoint + 1))
    assert not found


def test_one_learner_has_means_alone():
    alone = ComparisonSettings(("best",), 8)
    rows = fed(LearnerComparisons(alone), folds_of(learners=1))
    assert rows
    assert {type(row) for row in rows} == {FoldMean}


def test_ties_in_every_fold_give_one():
    folds = folds_of(checkpoints=1)
    folds = [replace(fold, measures=np.full(fold.measures.shape, 0.5)) for fold in folds]
    rows = fed(LearnerComparisons(CHOSEN), folds)
    tests = [row for row in rows if isinstance(row, ComparisonRow)]
    assert {row.p_value for row in tests if row.test != "nemenyi"} == {1}
    assert {row.better for row in tests} == {""}
    means = [row for row in rows if isinstance(row, FoldMean)]
    assert {(mean.mean, mean.standard_deviation) for mean in means} == {(0.5, 0)}


def test_few_folds_and_failures_are_said():
    few = replace(CHOSEN, folds=5, measures=("auc",))
    rows = fed(LearnerComparisons(few), folds_of(5, 1, failures=400))
    said = {(row.test, row.learner_a, row.learner_b): row.reason for row in rows if len(row) > 12}
    short = "fewer than 6 folds: no outcome reaches .05"
    good, poor = (
        f"{name} failed at {count} instances of its folds"
        for name, count in (("good", "2,000"), ("poor", "4,000"))
    )
    assert said["sign", "best", "good"] == f"{short}; {good}"
    assert said["wilcoxon", "good", "poor"] == f"{short}; {good}; {poor}"
    assert said["friedman", "", ""] == f"{DESCRIPTIVE}; {good}; {poor}"
    assert said["nemenyi", "best", "poor"] == f"{DESCRIPTIVE}; {poor}"


def test_no_time_and_grid_points():
    folds = [replace(fold, time=NO_TIME) for fold in folds_of(checkpoints=1)]
    assert {row.time for row in fed(LearnerComparisons(CHOSEN), folds)} == {None}
    folds = [replace(fold, due=HOUR - 5) for fold in folds_of(checkpoints=1)]
    assert {row.time for row in fed(LearnerComparisons(CHOSEN), folds)} == {HOUR - 5}


# ---- order, repeats and restarts


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(st.data())
def test_neither_order_nor_repeats_nor_restarts_change_anything(data):
    folds = folds_of()
    undisturbed = fed(LearnerComparisons(CHOSEN), folds)
    repeated = data.draw(st.lists(st.sampled_from(folds), max_size=4))
    shuffled = data.draw(st.permutations([*folds, *repeated]))
    restarts = data.draw(st.sets(st.integers(0, len(shuffled) - 1)))
    machine, rows = LearnerComparisons(CHOSEN), []
    for place, fold in enumerate(shuffled):
        if place in restarts:
            machine = LearnerComparisons.from_bytes(machine.to_bytes(), CHOSEN)
        rows += machine.apply(fold.pack())
    assert rows == undisturbed


def test_a_restart_at_every_record_changes_nothing_and_sizes_are_known():
    folds = folds_of()[::-1]
    machine, rows = LearnerComparisons(CHOSEN), []
    for place, fold in enumerate(folds):
        rows += machine.apply(fold.pack())
        snapshot = machine.to_bytes()
        assert machine.snapshot_bytes() == len(snapshot)
        assert machine.live_bytes() >= len(snapshot) / 2
        assert machine.gauges() == {"reports_waiting": place + 1 if place < 23 else 0}
        machine = LearnerComparisons.from_bytes(snapshot, CHOSEN)
        assert machine.to_bytes() == snapshot
    assert rows == fed(LearnerComparisons(CHOSEN), folds)
    assert machine.apply(EndOfInput().pack()) == []
    assert (machine.wakes_at(), machine.counts()) == (None, {})


@pytest.mark.slow
def test_both_machines_together_in_every_order_of_folds():
    reports = [report.pack() for report in reports_of(3, instances=20)]
    expected = compared(SETTINGS, reports)
    assert {row.test for row in expected.comparisons} == {
        "mcnemar", "delong", "sign", "wilcoxon", "friedman", "nemenyi",
    }  # fmt: skip
    random = np.random.default_rng(3)
    for _ in range(examples(20)):
        shuffled = compared(SETTINGS, [reports[place] for place in random.permutation(len(reports))])
        assert sorted(map(repr, shuffled.comparisons)) == sorted(map(repr, expected.comparisons))
        assert shuffled.means == expected.means


# ---- what is wrong


def test_folds_of_another_evaluation_are_refused():
    for settings_, fold in ((CHOSEN, folds_of(9)[8]), (CHOSEN, folds_of(learners=2)[0])):
        with pytest.raises(InputError, match="to a comparison of 3 learners over 8 folds"):
            LearnerComparisons(settings_).apply(fold.pack())


def test_states_that_are_others_or_damaged_are_refused():
    machine = LearnerComparisons(CHOSEN)
    fed(machine, folds_of()[:5])
    data = machine.to_bytes()
    with pytest.raises(OtherConfigurationError, match=r"alpha was 0\.05 and is now 0\.1"):
        LearnerComparisons.from_bytes(data, replace(CHOSEN, alpha=0.1))
    for place in np.random.default_rng(0).integers(0, len(data), 300).tolist():
        with pytest.raises(WireError):
            LearnerComparisons.from_bytes(data[:place], CHOSEN)
        damaged = data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :]
        with pytest.raises(WireError):
            LearnerComparisons.from_bytes(damaged, CHOSEN)
    payload = bytes(unframed(data, MAGIC, VERSION, "a state"))
    waiting = 4 + len(CHOSEN.to_json())
    for wrong in (
        payload[:-1],
        payload + b"x",
        payload.replace(b"{", b"[", 1).replace(b"}", b"]", 1).replace(b":", b","),
        payload[:waiting] + (1).to_bytes(8, "little") + payload[waiting + 8 :],
        payload[: waiting + 8] + (6).to_bytes(8, "little") + payload[waiting + 16 :],
    ):
        with pytest.raises(CorruptBytesError, match="a comparison"):
            LearnerComparisons.from_bytes(framed(MAGIC, VERSION, wrong), CHOSEN)


# ---- error rates under the null: all outcomes of ten independent folds


@pytest.mark.slow
def test_independent_folds_of_equal_learners_are_rejected_no_more_often_than_they_may():
    chosen = ComparisonSettings(("a", "b"), 10, measures=("auc",))
    machine = LearnerComparisons(chosen)
    column = NUMBER_COLUMNS.index("auc")
    rejected = {"sign": 0, "wilcoxon": 0}
    for checkpoint, signs in enumerate(product((-1, 1), repeat=10)):
        for fold, sign in enumerate(signs):
            measures = np.full((2, len(NUMBER_COLUMNS)), np.nan)
            measures[:, column] = 0.5, 0.5 + sign * (fold + 1) / 64
            paired = PairedFold(fold, checkpoint, 0, NO_TIME, NO_TIME, measures, np.zeros(2, np.int64))
            for row in machine.apply(paired.pack()):
                if isinstance(row, ComparisonRow) and row.test in rejected:
                    rejected[row.test] += row.p_value <= 0.05
    assert rejected["sign"] / 1024 == pytest.approx(0.0215, abs=1e-4)
    assert rejected["wilcoxon"] / 1024 == pytest.approx(0.0488, abs=1e-4)
