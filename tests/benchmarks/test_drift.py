"""The drift benchmark puts into a stream what it says, and counts alarms as it says."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmarks.drift.constructed import CHANGES, constructed, error_of
from benchmarks.drift.page import wrapped
from benchmarks.drift.runs import Found, Results, watch
from benchmarks.drift.sentences import on_published_figures
from benchmarks.drift.streams import KINDS, MODES, STILL, Predictions, Trial, generated, trials
from benchmarks.drift.tables import PUBLISHED, published_table, rate, wilson
from benchmarks.drift.watchers import (
    RIGHT,
    WRONG,
    OfErrors,
    OfRules,
    OfWindow,
    TwoSided,
    as_published,
    rules_of,
)

pytest.importorskip("river")


@pytest.fixture(scope="module")
def made() -> dict[str, Trial]:
    """A trial of each learner on one shuffle."""
    return dict(trials(generated(4_000), 4_000, 0))


def told(labels: list[int], wrong: list[int], first: int = 0) -> Predictions:
    scores = np.where(np.array(labels) == np.array(wrong), 0.2, 0.8)
    return Predictions(np.array(labels, np.int8), scores, np.arange(first, first + len(labels)))


def test_all_drifts_of_a_trial_begin_at_one_place_behind_one_past(made: dict[str, Trial]) -> None:
    for trial in made.values():
        assert trial.before.places[-1] == trial.onset - 1
        assert {key for key in trial.after if key[0] != STILL} == {(k, m) for k in KINDS for m in MODES}
        for (_, mode), part in trial.after.items():
            assert part.places[0] >= trial.onset
            assert not mode or part.places[-1] < trial.onset + trial.windows[mode]


def test_a_drift_changes_what_it_says(made: dict[str, Trial]) -> None:
    trial = made["logistic regression, frozen"]
    still = trial.after[STILL, ""].part(trial.onset, trial.onset + trial.windows["abrupt"])
    after = {kind: trial.after[kind, "abrupt"] for kind in KINDS}
    prior, swap, half, permuted, filtered = after.values()
    positives = still.labels.mean()
    assert abs(prior.labels.mean() - positives) > 0.15
    assert len(prior) < len(still)
    assert len(set(swap.labels.tolist())) == 1
    changed = half.labels != still.labels
    of_one_class = changed[still.labels == still.labels[changed][0]]
    assert changed.sum() == of_one_class.sum()
    assert 0.4 < of_one_class.mean() < 0.6
    assert np.array_equal(permuted.labels, still.labels)
    assert not np.allclose(permuted.scores, still.scores)
    assert 0.4 < len(filtered) / len(still) < 0.6


def test_a_gradual_drift_grows(made: dict[str, Trial]) -> None:
    trial = made["logistic regression, frozen"]
    new, still = trial.after["label swap", "gradual"], trial.after[STILL, ""]
    width = trial.windows["gradual"] - trial.windows["abrupt"]
    places = np.arange(width)
    is_swapped = new.labels[:width] != still.labels[:width]
    of_class = still.labels[:width] == still.labels[:width][is_swapped][0]
    early, late = of_class & (places < width // 4), of_class & (places >= 3 * width // 4)
    assert is_swapped[early].mean() < 0.3
    assert is_swapped[late].mean() > 0.7


def test_watchers_go_on_from_a_copy_as_from_themselves(made: dict[str, Trial]) -> None:
    from river import drift

    trial = made["Hoeffding tree, learns on"]
    whole, cut = trial.before, trial.before.places[731]
    rules = rules_of(whole.part(0, trial.judged))
    for make in (
        lambda: OfErrors("ADWIN", drift.ADWIN(delta=0.5)),
        lambda: OfWindow("error"),
        lambda: OfRules(*rules),
    ):
        once, first = make(), make()
        early, late = whole.part(0, cut), whole.part(cut, trial.onset)
        found = first.follow(early)
        for name, alarms in copy.deepcopy(first).follow(late).items():
            found[name] = found[name] + [alarm + len(early) for alarm in alarms]
        assert found == once.follow(whole)


def test_alarms_before_the_drift_are_false_and_the_first_behind_it_detects() -> None:
    class Each:
        """An alarm at every error."""

        def follow(self, part: Predictions) -> dict[str, list[int]]:
            return {"each": np.flatnonzero(part.errors()).tolist()}

    before = told([1] * 10, [1, 0, 0, 0, 0, 0, 0, 1, 1, 0])
    after = {
        (STILL, ""): told([1] * 10, [0] * 9 + [1], 10),
        ("label swap", "abrupt"): told([1] * 5, [0, 0, 1, 1, 0], 10),
        ("label swap", "gradual"): told([1] * 8, [0] * 8, 10),
    }
    results: Results = {}
    watch(Trial(5, 10, {"abrupt": 5, "gradual": 8}, before, after), [Each()], results)
    found = results["each"]
    assert found.false == [(3, 15)]
    assert dict(found.delays) == {
        (STILL, "abrupt"): [math.inf],
        (STILL, "gradual"): [math.inf],
        ("label swap", "abrupt"): [3.0],
        ("label swap", "gradual"): [math.inf],
    }


def test_constructed_changes_have_the_errors_that_are_shown() -> None:
    for name, trial in constructed(1, 80_000):
        before, now = CHANGES[name]
        for part, concept in ((trial.before, before), (trial.after[name, "abrupt"], now)):
            expected = error_of(before, concept)
            error = math.sqrt(expected * (1 - expected) / len(part))
            assert abs(part.errors().mean() - expected) < 4.5 * error


def test_intervals_are_those_of_scipy() -> None:
    for hits, number in ((0, 20), (7, 20), (20, 20)):
        expected = binomtest(hits, number).proportion_ci(method="wilson")
        assert wilson(hits, number) == pytest.approx((expected.low, expected.high), abs=1e-4)
    streams = [(1, 1_000), (0, 1_000), (3, 1_000)] * 100
    found, low, high = rate(streams)
    assert found == pytest.approx(1e5 * 4 / 3_000)
    spread = np.std([alarms for alarms, _ in streams]) / math.sqrt(len(streams)) / 1_000
    assert (high - low) / 2 == pytest.approx(1e5 * 1.96 * spread)


def test_the_sentence_on_the_paper_names_what_its_figures_are_nearer_to() -> None:
    def delays(recall: float) -> list[float]:
        hits = round(100 * recall)
        return [7.0] * hits + [math.inf] * (100 - hits)

    for near, far in ((RIGHT, WRONG), (WRONG, RIGHT)):
        paper: Results = {}
        for name in as_published():
            paper[f"{name} ({far})"] = Found(delays={(kind, "abrupt"): delays(1) for kind in PUBLISHED})
            paper[f"{name} ({near})"] = Found(
                delays={(kind, "abrupt"): delays(said[name][0]) for kind, said in PUBLISHED.items()}
            )
        assert f"of detectors that are {near}. " in on_published_figures(paper)
        assert f"by 0% {'in the mean ' if near == RIGHT else ''}where" in on_published_figures(paper)
        assert published_table(paper).count("\n") == 1 + len(PUBLISHED) * len(as_published())


def test_a_two_sided_detector_tells_rises_alone_and_forgets_what_was_before_a_fall() -> None:
    from river import drift

    def alarms(shares: tuple[float, ...]) -> list[int]:
        rng, found = np.random.default_rng(1), []
        detector = TwoSided(drift.binary.HDDMA)
        for place, value in enumerate((rng.random(1_000 * len(shares)) < np.repeat(shares, 1_000)).tolist()):
            detector.update(int(value))
            if detector.drift_detected:
                found.append(place // 1_000)
        return found

    assert alarms((0.2, 0.6)) == [1]
    assert alarms((0.6, 0.2)) == []
    assert alarms((0.9, 0.2, 0.6)) == [2]


def test_paragraphs_are_filled_and_tables_stay() -> None:
    row = "| " + "a" * 200 + " |"
    text = wrapped(f"# Title\n\n{'word ' * 60}\n\n{row}\n\n- {'one ' * 60}\nmore\n- two\n")
    lines = text.splitlines()
    assert row in lines
    assert lines[-1] == "- two"
    assert max(len(line) for line in lines if line != row) <= 106
    assert all(line.startswith(("- ", "  ")) for line in text.split(row)[1].strip().splitlines())
