"""Folds of learners: prediction for prediction those of a plain loop, however the stream was cut."""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.compare.fold_report import MAGIC, FoldReport
from rocsteady.core.encoding.fields import framed, unframed
from rocsteady.core.errors import (
    ConfigError,
    CorruptBytesError,
    ForeignBytesError,
    FutureVersionError,
    InputError,
    OtherConfigurationError,
    TruncatedBytesError,
)
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfInput, EndOfPartition
from rocsteady.core.events.rejected import Rejected
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.events.wire import PacketHead
from rocsteady.core.prequential.fold import FoldOutput, PrequentialFold
from rocsteady.core.prequential.fold_settings import PrequentialSettings, all_keys, place_of
from rocsteady.core.prequential.folds import METHODS, Folds
from rocsteady.core.prequential.instances import Task
from rocsteady.core.prequential.learners import LearnerSpec
from rocsteady.core.prequential.wire import own_record, shared_record
from rocsteady.core.rows.class_rows import ClassRows
from rocsteady.core.rows.rows import Rows

from tests.support.streams.times import moments
from tests.support.thorough import others_slow, some

N = 1_000


def stream(n=N, seed=1, classes=False):
    random = np.random.default_rng(seed)
    x, z = random.normal(size=n), random.normal(size=n).round(1)
    z[random.random(n) < 0.05] = np.nan
    odd = random.integers(0, 3, n)
    truth = (x + np.nan_to_num(z) + (odd == 1) + random.normal(size=n) > np.linspace(0, 1, n)).astype(np.int8)
    names = np.array(["a", "b", "c"])[np.minimum(truth + (odd == 2), 2)].tolist()
    blank = TextColumn(np.zeros(n, np.int32), ("",))
    return EventBatch(
        models=blank,
        scores=np.zeros(n),
        labels=np.full(n, -1, np.int8) if classes else truth,
        times=np.arange(n) * 1_000_000,
        ids=IdColumn.of([f"e{number}" for number in range(n)]),
        label_classes=TextColumn.of(names) if classes else None,
        predicted=blank if classes else None,
        slices=(("odd", TextColumn.of([["u", "v", None][place] for place in odd])),),
        features=(("x", x), ("z", z)),
    )


def records(batch, cuts=()):
    """Return the packets of one partition, and its end."""
    bounds = [0, *cuts, len(batch)]
    parts = [batch.part(start, end) for start, end in itertools.pairwise(bounds)]
    packets = [
        replace(part, source="s", head=PacketHead(0, place, int(part.times.max()))).pack()
        for place, part in enumerate(parts)
    ]
    return [*packets, EndOfPartition("s", 0, 1, len(packets), int(batch.times.max())).pack()]


def run(settings, given, learner=0, fold=0, restart=False):
    """Return the rows, reports and dead letters of a machine; restarted behind every record, if wanted."""
    machine = PrequentialFold(settings, learner, fold)
    rows, reports, refused = [], [], []
    for record in given:
        for output in machine.apply(record):
            if isinstance(output, Rejected):
                refused += zip(
                    output.records.ids.to_list(), output.records.models.to_list(), output.details.to_list(),
                    strict=True,
                )  # fmt: skip
            else:
                assert isinstance(output, FoldOutput)
                rows += output.rows
                reports += map(FoldReport.unpack, output.reports)
        if restart:
            machine = PrequentialFold.from_bytes(machine.to_bytes(), settings, learner, fold)
    return rows, reports, refused


def plain_loop(batch, folds, fold, model, every, settings):
    """Test and train one instance after another, with nothing of ours but the evaluator and the folds."""
    given = folds.assign(batch.ids, fold)
    x, z, odd = batch.features[0][1], batch.features[1][1], batch.slices[0][1].to_list()
    ev = rs.ModelEvaluator(settings, model="m", slice=f"fold={fold}", every=rs.EveryEvents(2**62 - 1))
    scores, rows, reported = [], [], 0
    for i in range(len(batch)):
        features = {"x": float(x[i]), "z": float(z[i]), "odd": odd[i]}
        features = {name: value for name, value in features.items() if value is not None and value == value}
        truth = bool(batch.labels[i])
        if given.tests[i]:
            score = model.predict_proba_one(features).get(True, 0.0)
            scores.append(score)
            ev.update([truth], [score], times=moments(batch.times[i : i + 1]))
        for _ in range(given.weights[i]):
            model.learn_one(features, truth)
        if (i + 1) % every == 0 or i + 1 == len(batch):
            rows += [ev.finish()[0]] if ev.seq != reported else []
            reported = ev.seq
    return scores, rows


NAMES = ("a", "b", "c")


def settings_of(*learners, classes=False, scores=False, **choices):
    folds = Folds(
        choices.pop("method", "bootstrap"), choices.pop("count", 4), 7, choices.pop("prequential", True)
    )
    batch = choices.pop("batch", 1)
    evaluator = rs.EvaluatorSettings(
        **{"window": rs.LastEvents(150), "every": rs.EveryEvents(100), "order": "position", **choices}
    )
    specs = tuple(LearnerSpec.parse(text, 0.0, batch) for text in learners or ("m=naive-bayes",))
    task = Task(not classes, classes=NAMES if scores else (), scores=scores)
    return PrequentialSettings(specs, folds, evaluator, task)


@pytest.mark.parametrize("prequential", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_a_fold_is_a_plain_loop_prediction_for_prediction(method, prequential):
    from river.naive_bayes import GaussianNB
    from river.preprocessing import OneHotEncoder

    learners = "m=tests.support.streams.learner_factories:mixed_bayes", "majority"
    every = rs.EveryEvents(40)
    settings = settings_of(*learners, method=method, prequential=prequential, every=every)
    batch = stream(400)
    model = OneHotEncoder() | GaussianNB()
    scores, expected = plain_loop(batch, settings.folds, 2, model, every.n, settings.evaluator)
    rows, reports, refused = run(settings, records(batch), fold=2)
    assert not refused
    np.testing.assert_array_equal(np.concatenate([report.scores for report in reports]), scores)
    assert len(rows) == len(expected) >= 10
    for row, other in zip(rows, expected, strict=True):
        assert row._replace(config="") == other._replace(config="")


LEARNERS = "majority", "persistent", "m=naive-bayes", "m=hoeffding"
FORESTS = [  # 9 s each
    pytest.param("m=adaptive-forest", *case, marks=pytest.mark.slow)
    for case in some(itertools.product([False, True], [1, 7]))
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "classes", "batch_size"),
    [*some(itertools.product(LEARNERS, [False, True], [1, 7]), each=2), *FORESTS],
)
def test_cuts_and_restarts_change_nothing(learner, classes, batch_size):
    settings = settings_of(learner, classes=classes, batch=batch_size)
    batch = stream(600, classes=classes)
    whole = run(settings, records(batch), fold=1)
    assert len(whole[0]) == 6
    random = np.random.default_rng(5)
    for _ in range(2):
        cuts = np.sort(random.choice(np.arange(1, 600), 9, replace=False)).tolist()
        pieces = records(batch, cuts)
        assert_same(run(settings, pieces, fold=1), whole)
        assert_same(run(settings, pieces, fold=1, restart=True), whole)


@pytest.mark.parametrize(("prequential", "method"), others_slow(product([True, False], METHODS)))
def test_learners_with_a_score_of_each_class_have_the_rows_of_a_plain_loop(method, prequential):
    from river.naive_bayes import GaussianNB
    from river.preprocessing import OneHotEncoder

    settings = settings_of(
        "m=tests.support.streams.learner_factories:mixed_bayes", "majority", classes=True, scores=True,
        method=method, prequential=prequential, every=rs.EveryEvents(100),
    )  # fmt: skip
    assert settings.compared == ("auc_macro", "accuracy")
    batch, fold = stream(500, classes=True), 2
    x, z, odd = batch.features[0][1], batch.features[1][1], batch.slices[0][1].to_list()
    truth, given = batch.label_classes.to_list(), settings.folds.assign(batch.ids, fold)
    model, reported = OneHotEncoder() | GaussianNB(), 0
    ev = rs.MulticlassEvaluator(
        NAMES, settings.evaluator, model="m", slice="fold=2", every=rs.EveryEvents(2**62 - 1)
    )
    expected = []
    for i in range(len(batch)):
        features = {"x": float(x[i]), "z": float(z[i]), "odd": odd[i]}
        features = {name: value for name, value in features.items() if value is not None and value == value}
        if given.tests[i]:
            found = model.predict_proba_one(features)
            line = [found.get(name, 0.0) for name in NAMES] if found else [1 / 3] * 3
            ev.update([truth[i]], [line], times=moments(batch.times[i : i + 1]))
        for _ in range(given.weights[i]):
            model.learn_one(features, truth[i])
        if (i + 1) % 100 == 0 and ev.seq != reported:
            expected += ev.finish()
            reported = ev.seq
    machine, found, reports = PrequentialFold(settings, 0, fold), [], []
    for record in records(batch, (7, 130, 480)):
        for output in machine.apply(record):
            found += class_rows(output.rows)
            reports += map(FoldReport.unpack, output.reports)
        machine = PrequentialFold.from_bytes(machine.to_bytes(), settings, 0, fold)
    assert len(found) == len(expected) == 4 * 5
    assert [row._replace(config="") for row in found] == [row._replace(config="") for row in expected]
    for report, row in zip(reports, expected[::4], strict=True):
        told = dict(zip(settings.comparison.columns, report.measures.tolist(), strict=True))
        for name in ("auc_macro", "auc_m", "worst_pair_auc", "accuracy", "kappa_m"):
            assert told[name] == getattr(row, name)
        assert np.isnan(told["auc"])


def class_rows(rows):
    return list(ClassRows(rows))


def test_kappa_m_of_the_sliding_majority_with_scores_is_zero_once_it_has_a_label():
    settings = settings_of("majority", classes=True, scores=True)
    machine, rows = PrequentialFold(settings, 0, 0), []
    for record in records(stream(classes=True)):
        for output in machine.apply(record):
            rows += class_rows(output.rows)
    of_model = [row for row in rows if row.class_ is None]
    assert [row.kappa_m for row in of_model[2:]] == [0.0] * (len(of_model) - 2) != []


def test_a_failure_is_told_in_the_rows_of_all_classes_and_a_stray_label_is_refused():
    settings = settings_of("m=tests.support.streams.learner_factories:Moody", classes=True, scores=True)
    machine = PrequentialFold(settings, 0, 0)
    (output,) = [
        each for each in machine.apply(records(stream(100, classes=True))[0]) if hasattr(each, "rows")
    ]
    rows = class_rows(output.rows)
    assert all("the learner failed at" in row.reason for row in rows)
    assert all(row.window_events == 0 for row in rows)
    few = replace(settings_of("majority", classes=True), task=Task(False, classes=("a", "b"), scores=True))
    with pytest.raises(InputError, match="'c' is none of the 2 classes"):
        PrequentialFold(few, 0, 0).apply(records(stream(100, classes=True))[0])


def test_a_state_of_classes_is_none_of_scores_of_classes():
    plain, scored = settings_of(classes=True), settings_of(classes=True, scores=True)
    state = PrequentialFold(plain, 0, 0).to_bytes()
    with pytest.raises(OtherConfigurationError):
        PrequentialFold.from_bytes(state, scored, 0, 0)
    state = PrequentialFold(scored, 0, 0).to_bytes()
    with pytest.raises(OtherConfigurationError):
        PrequentialFold.from_bytes(state, plain, 0, 0)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (
            {"compared": ("auc_m",)},
            "learners cannot be compared by auc_m: only learners with a score of each",
        ),
        ({"task": Task(False, classes=("a", "a"), scores=True)}, "'a' is named twice"),
        ({"task": Task(False, scores=True)}, "give the names of the classes"),
    ],
)
def test_settings_of_classes_that_cannot_be(choices, said):
    with pytest.raises(ConfigError, match=said):
        PrequentialSettings((LearnerSpec.parse("majority"),), **choices)


def assert_same(found, expected):
    assert found[0] == expected[0]
    assert [report.pack() for report in found[1]] == [report.pack() for report in expected[1]]
    assert found[2] == expected[2]


def test_order_of_time_and_packets_that_come_early():
    settings = settings_of(order="time")
    batch = stream(300)
    expected = run(settings, records(batch), fold=1)
    shuffled = batch.take(np.random.default_rng(2).permutation(300))
    assert_same(run(settings, records(shuffled, (50, 120)), fold=1), expected)
    first, *others = records(batch, (100, 200))
    by_position = settings_of(order="position")
    expected = run(by_position, [first, *others], fold=1)
    assert_same(run(by_position, [*others, first], fold=1, restart=True), expected)


def test_every_checkpoint_of_the_stream_is_reported_by_all():
    settings = settings_of("majority", "m=naive-bayes", method="cv", prequential=False, count=5)
    batch = stream(950)
    of_fold = {}
    for key in all_keys(settings.learners, settings.folds):
        learner, fold = place_of(key)
        _, reports, _ = run(settings, records(batch), learner, fold)
        assert [report.checkpoint for report in reports] == list(range(10))
        assert [report.seq for report in reports] == [*range(100, 1_000, 100), 950]
        of_fold.setdefault(fold, []).append([(len(report), report.labels.tolist()) for report in reports])
    for sizes in of_fold.values():
        assert sizes[0] == sizes[1]  # the same instances, in the same order
    tested = sum(size for sizes in of_fold.values() for size, _ in sizes[0])
    assert tested == 950  # cv: one fold tests an instance


def test_a_stream_that_ends_at_a_checkpoint_has_no_second_last_row():
    rows, reports, _ = run(settings_of(), records(stream(200)))
    assert [row.row for row in rows] == [0, 1]
    assert [report.seq for report in reports] == [100, 200]


def test_rows_on_a_grid_of_times():
    settings = settings_of(every=rs.EverySeconds(60), window=rs.LastDuration(90), order="time")
    batch = stream(300)
    rows, reports, _ = run(settings, records(batch))
    assert [row.due for row in rows if row.due is not None] == [60_000_000 * k for k in range(5)]
    assert [report.due for report in reports] == [60_000_000 * k for k in range(5)] + [NO_TIME]
    assert [report.seq for report in reports] == [1, 61, 121, 181, 241, 300]
    _weights, tests = settings.folds.assign(batch.ids, 0)
    held = tests & (batch.times > 150_000_000) & (batch.times <= 240_000_000)
    assert rows[4].window_events == held.sum()
    cuts = [1, 2, 60, 61, 62, 150, 240, 241, 299]
    assert_same(run(settings, records(batch, cuts), restart=True), (rows, reports, []))


def test_a_fold_that_tests_nothing_after_the_last_grid_point_has_no_row_of_the_end():
    settings = settings_of(
        every=rs.EverySeconds(60), window=rs.LastDuration(90), order="time", method="split", count=2
    )
    batch = stream(122)
    (tested_last,) = (fold for fold in (0, 1) if settings.folds.assign(batch.ids, fold).tests[121])
    for fold in (0, 1):
        rows, reports, _ = run(settings, records(batch), fold=fold)
        dues = [60_000_000, 120_000_000] + [None] * (fold == tested_last)
        assert [row.due for row in rows][-len(dues) :] == dues
        assert [report.seq for report in reports] == [1, 61, 121, 122]
        goes_on = np.array_equal(reports[-1].measures, reports[-2].measures, equal_nan=True)
        assert goes_on == (fold != tested_last)


def test_a_grid_whose_last_row_has_told_all():
    settings = settings_of(every=rs.EverySeconds(10), order="time", method="split")
    batch = stream(200)
    _, tests = settings.folds.assign(batch.ids, 0)
    tested = np.flatnonzero(tests)
    last = tested[:-1][np.diff(tested) > 13][0]  # none for so long that a grid point and more pass
    batch = batch.part(0, last + 13)
    whole = run(settings, records(batch))
    assert whole[0][-1].due is not None
    assert_same(run(settings, records(batch, [last + 1, last + 12]), restart=True), whole)


def test_kappa_m_of_the_sliding_majority_is_zero_in_every_row():
    for classes in (False, True):
        rows, _, _ = run(
            settings_of("majority", "persistent", classes=classes), records(stream(classes=classes))
        )
        assert [row.kappa_m for row in rows] == [0.0] * len(rows)
        rows, _, _ = run(settings_of("persistent", classes=classes), records(stream(classes=classes)))
        assert [row.kappa_per for row in rows] == [0.0] * len(rows)


def test_a_learner_that_fails_goes_on_and_the_row_says_how_often():
    settings = settings_of("m=tests.support.streams.learner_factories:Moody", "majority")
    batch = stream(500)
    rows, reports, refused = run(settings, records(batch, (100, 333)), fold=2, restart=True)
    _weights, tests = settings.folds.assign(batch.ids, 2)
    upset = [f"e{i}" for i in range(500) if tests[i] and batch.features[0][1][i] > 2]
    assert [name for name, *_ in refused] == upset != []
    assert {model for _, model, _ in refused} == {"m"}
    assert "fold 2 of the learner" in refused[0][2]
    assert "ZeroDivisionError" in refused[0][2]
    assert rows[-1].reason == f"the learner failed at {len(upset)} events"
    assert rows[-1].seq == tests.sum() - len(upset)
    assert [report.missing.sum() for report in reports if len(report.missing)]
    assert reports[-1].failures == len(upset)
    others, _, none = run(settings, records(batch), learner=1, fold=2)
    assert not none
    assert "failed" not in (others[-1].reason or "")
    assert others[-1].seq == tests.sum()


def test_one_class_for_long_and_a_constant_feature():
    batch = stream(400)
    batch = replace(
        batch, labels=np.where(np.arange(400) < 300, 0, batch.labels).astype(np.int8),
        features=(("x", np.ones(400)), ("z", batch.features[1][1])),
    )  # fmt: skip
    for learner in ("logistic", "naive-bayes", "hoeffding", "adaptive-forest", "aum", "polynomial-auc"):
        rows, _, refused = run(settings_of(f"m={learner}"), records(batch))
        assert not refused
        assert rows[1].auc is None
        assert "one class in window" in rows[1].reason
        assert rows[-1].auc is not None


def test_states_of_others_and_damage():
    settings, batch = settings_of("m=naive-bayes", "majority"), stream(120)
    machine = PrequentialFold(settings, 0, 1)
    machine.apply(records(batch)[0])
    state = machine.to_bytes()
    assert abs(machine.snapshot_bytes() - len(state)) < 0.6 * len(state) + 2_000
    with pytest.raises(OtherConfigurationError):
        PrequentialFold.from_bytes(state, settings_of("m=naive-bayes"), 0, 1)
    with pytest.raises(CorruptBytesError):
        PrequentialFold.from_bytes(state, settings, 0, 2)
    for damaged, error in (
        (b"", ForeignBytesError), (b"RSPX" + state[4:], ForeignBytesError), (state[:20], TruncatedBytesError),
        (state[:-3], TruncatedBytesError), (state[:4] + b"\7" + state[5:], FutureVersionError),
        (state[:-1] + bytes([state[-1] ^ 1]), CorruptBytesError),
    ):  # fmt: skip
        with pytest.raises(error):
            PrequentialFold.from_bytes(damaged, settings, 0, 1)


class Forgets:
    """Can be pickled, and not be read again."""

    def learn_one(self, x, y):
        pass

    def predict_proba_one(self, _):
        return {True: 1.0}

    def __setstate__(self, state):
        raise ValueError("no memory")

    def __getstate__(self):
        return {"a": 1}


def test_a_learner_that_cannot_be_read_again_is_no_damage():
    settings = settings_of(f"m={__name__}:Forgets")
    state = PrequentialFold(settings, 0, 1).to_bytes()
    with pytest.raises(
        OtherConfigurationError, match=r"^the state of learner 'm' cannot be read: .*no memory"
    ):
        PrequentialFold.from_bytes(state, settings, 0, 1)


def test_records_are_squeezed_once_for_all_folds():
    record = stream(100).pack()
    shared = shared_record(record)
    assert own_record(shared) == record == own_record(record)
    with pytest.raises(CorruptBytesError):
        own_record(shared[:-10])
    settings = settings_of(order="arrival")
    assert_same(run(settings, [shared, EndOfInput().pack()]), run(settings, [record, EndOfInput().pack()]))


def test_reports_as_bytes():
    settings = settings_of("majority", "persistent", window=rs.LastDuration(50))
    _, reports, _ = run(settings, records(stream(100)))
    report = reports[0]
    data = report.pack()
    again = FoldReport.unpack(data)
    assert again.pack() == data
    assert len(again) == len(again.times) == len(report) > 0
    for damaged, error in (
        (b"", ForeignBytesError), (b"RSFX" + data[4:], ForeignBytesError), (data[:9], TruncatedBytesError),
        (data[:-2], TruncatedBytesError), (data[:4] + b"\7" + data[5:], FutureVersionError),
        (data[:30] + bytes([data[30] ^ 1]) + data[31:], CorruptBytesError),
    ):  # fmt: skip
        with pytest.raises(error):
            FoldReport.unpack(damaged)
    payload = bytes(unframed(data, MAGIC, 1, "a report"))
    for changed in (payload + b"x", payload[:-9], payload[:60] + b"\3" + payload[61:]):
        with pytest.raises(CorruptBytesError):
            FoldReport.unpack(framed(MAGIC, 1, changed))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learners": ()}, "none --learner"),
        ({"learners": ("majority", "majority")}, "two majority NAME="),
        ({"threshold": 1.0}, "threshold between"),
        ({"curves": rs.EveryEvents(100)}, "curves rocsteady evaluate"),
    ],
)
def test_settings_that_cannot_be(change, words):
    learners = tuple(LearnerSpec.parse(text) for text in change.pop("learners", ("majority",)))
    evaluator = rs.EvaluatorSettings(**change)
    with pytest.raises(ConfigError) as told:
        PrequentialSettings(learners, Folds(), evaluator, Task(True, evaluator.threshold))
    assert all(word in str(told.value) for word in words.split())


def test_failures_in_rows_go_along():
    rows = Rows.blank(2, [("a", "fold=0")], "c")
    rows.failures = np.array([0, 3])
    whole = Rows.concat([rows, rows[1:]])
    assert [row.reason for row in whole] == [None, *["the learner failed at 3 events"] * 2]
    assert whole[2].reason == whole.to_arrow().column("reason")[2].as_py()
