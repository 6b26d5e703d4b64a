"""Alert gives what one table of alerts gives that is fed every row in order, however it is run."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from apache_beam.coders import registry
from apache_beam.metrics import MetricsFilter
from apache_beam.testing import test_stream
from apache_beam.transforms.window import FixedWindows, Sessions, TimestampedValue
from rocsteady.core.alerts.alert_rows import AlertRow, WatchedRows
from rocsteady.core.alerts.table import AlertTable
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.transforms.evaluate.alert import Alert, watched_batch
from rocsteady.transforms.evaluate.shards import RowsCoder

from tests.support.processes.beam_runs import RUNNERS_AND_CACHES, InOrder, Keep, kept, pipeline, shuffled
from tests.support.streams.times import moments

RULES = (
    "auc_high < 0.8 for 2 rows until auc > 0.8",
    "auc drops by 0.02 against 3 rows",
    "kappa_m < 0 for 200s",
    "drift >= 1",
)
MINUTE = 60_000_000


@cache
def make_rows(pane: tuple[int, int] | None = None) -> rs.Rows:
    """Rows of three models, one of which ranks worse from the middle on."""
    rng = np.random.default_rng(5)
    parts = []
    for model, slice_, falls in (("a", "", 0), ("b", "", 1), ("b", "c=NZ", 1), ("ü", "", 0)):
        ev = rs.ModelEvaluator(
            window=rs.LastEvents(200), every=rs.EveryEvents(50), model=model, slice=slice_, pane=pane
        )
        labels = (rng.random(1500) < 0.4).astype(int)
        better = np.where(falls & (np.arange(1500) > 700), 0.4, 1.6)
        times = np.arange(1500) * 1_000_000 + (pane or (0, 0))[0]
        parts += [ev.update(labels, rng.normal(better * labels), times=moments(times)), ev.finish()]
    return rs.Rows.concat(parts)


def expected(rows: rs.Rows, rules: tuple[str, ...] = RULES) -> list[tuple[Any, ...]]:
    table = AlertTable([rs.parse_alert(rule) for rule in rules])
    alerts = table.apply(WatchedRows.of_rows(rows, table.columns).pack())
    return sorted(map(tuple, [*alerts, *table.apply(EndOfInput().pack())]), key=repr)


def alerts_in(directory: Path) -> list[tuple[Any, ...]]:
    return sorted((alert.value for alert in kept(directory, "alerts")), key=repr)


@pytest.mark.slow
@pytest.mark.parametrize(("runner", "cache_bytes"), RUNNERS_AND_CACHES)
def test_alerts_of_shuffled_rows_are_equal_on_every_runner(
    runner: str, cache_bytes: int, tmp_path: Path
) -> None:
    with pipeline(runner) as p:
        rows = p | InOrder(shuffled(make_rows()), rs.MeasureRow)
        rows | Alert(*RULES, shards=3, cache_bytes=cache_bytes) | Keep(tmp_path, "alerts")
    assert alerts_in(tmp_path) == expected(make_rows())
    assert {alert[1] for alert in expected(make_rows())} == {"open", "closed"}


def test_a_scope_and_a_cap_hold_in_a_pipeline(tmp_path: Path) -> None:
    scoped = ("auc_high < 0.8 where model like 'b*' and slice = ''", "kappa_m < 0.9 where slice != ''")
    capped = "kappa_m < 0.9 at most 1 a day"
    with pipeline() as p:
        rows = p | InOrder(shuffled(make_rows()), rs.MeasureRow)
        rows | Alert(*scoped, shards=2) | Keep(tmp_path, "alerts")
    assert alerts_in(tmp_path) == expected(make_rows(), scoped)
    assert {alert[2:4] for alert in expected(make_rows(), scoped)} == {("b", ""), ("b", "c=NZ")}
    (tmp_path / "capped").mkdir()
    with pipeline() as p:
        rows = p | InOrder(shuffled(make_rows()), rs.MeasureRow)
        rows | Alert(capped, shards=2) | Keep(tmp_path / "capped", "alerts")
    plain = [alert for alert in expected(make_rows(), ("kappa_m < 0.9",)) if alert[1] == "open"]
    told = [alert for alert in alerts_in(tmp_path / "capped") if alert[1] == "open"]
    assert sorted(alert[2] for alert in told) == sorted({alert[2] for alert in plain})
    counted = p.result.metrics().query(MetricsFilter().with_name("alerts_capped"))["counters"]
    assert sum(each.result for each in counted) == len(plain) - len(told) > 0


def test_rows_come_in_batches_and_in_columns_too(tmp_path: Path) -> None:
    batches = [rows_to_arrow(make_rows()[at : at + 17]) for at in range(0, len(make_rows()), 17)]
    random.Random(1).shuffle(batches)
    (tmp_path / "a").mkdir()
    with pipeline() as p:
        p | "b" >> InOrder(batches, pa.RecordBatch) | Alert(*RULES) | Keep(tmp_path, "alerts")
        columns = p | "c" >> InOrder([make_rows()[40:], make_rows()[:40]], rs.Rows)
        columns | "of columns" >> Alert(*RULES) | "in a" >> Keep(tmp_path / "a", "alerts")
    assert alerts_in(tmp_path) == alerts_in(tmp_path / "a") == expected(make_rows())


def test_alerts_are_at_their_own_times_and_have_a_coder(tmp_path: Path) -> None:
    with pipeline() as p:
        alerts = p | InOrder([make_rows()], rs.Rows) | Alert(*RULES)
        alerts | Keep(tmp_path, "alerts")
    found = kept(tmp_path, "alerts")
    assert found
    assert all(alert.time == AlertRow(*alert.value).time for alert in found)
    assert alerts.element_type is AlertRow
    coder = registry.get_coder(AlertRow)
    for alert in found:
        assert tuple(coder.decode(coder.encode(AlertRow(*alert.value)))) == alert.value
    assert isinstance(registry.get_coder(rs.Rows), RowsCoder)


@pytest.mark.parametrize("runner", ["in process", "retrying"])
def test_every_pane_has_its_own_alerts(runner: str, tmp_path: Path) -> None:
    """Rows stay in their Beam windows, and so do their alerts; windows and panes in one go."""
    panes = [(0, 3600), (3600, 7200)]
    parts = [make_rows((start * 1_000_000, end * 1_000_000)) for start, end in panes]
    with pipeline(runner) as p:
        single = [(row, row.time / 1e6) for rows in parts for row in shuffled(rows)]
        rows = p | InOrder(single) | beam.MapTuple(TimestampedValue)
        rows = rows | beam.WindowInto(FixedWindows(3600))
        rows | Alert(*RULES) | Keep(tmp_path, "alerts")
    for pane, rows_of_pane in zip(panes, parts, strict=True):
        found = [alert.value for alert in kept(tmp_path, "alerts") if alert.pane == pane]
        assert sorted(found, key=repr) == expected(rows_of_pane)
        assert {alert[5:7] for alert in found} == {(pane[0] * 1_000_000, pane[1] * 1_000_000)}


def test_a_stream_opens_and_closes_as_it_goes_with_bundles_that_are_tried_again(tmp_path: Path) -> None:
    single = shuffled(make_rows(), 2)
    stream = test_stream.TestStream()
    for start in range(0, len(single), 7):
        stream = stream.add_elements([TimestampedValue(row, 1) for row in single[start : start + 7]])
    with pipeline("retrying", "--streaming") as p:
        rows = p | stream.advance_watermark_to_infinity() | beam.Map(_same).with_output_types(rs.MeasureRow)
        rows | beam.ParDo(_FailsOnce()) | Alert(*RULES, cache_bytes=0) | Keep(tmp_path, "alerts")
    assert _FailsOnce.failures > 5
    assert alerts_in(tmp_path) == expected(make_rows())


def _same(row: Any) -> Any:
    return row


class _FailsOnce(beam.DoFn):
    """Fails at the end of every second bundle, so that the runner tries it again."""

    bundles = failures = 0

    def process(self, row: Any) -> Any:
        yield row

    def finish_bundle(self) -> None:
        _FailsOnce.bundles += 1
        if _FailsOnce.bundles % 2:
            _FailsOnce.failures += 1
            raise RuntimeError("this bundle fails")


def test_metrics_count_rows_repeats_and_alerts() -> None:
    p = beam.Pipeline(runner="apache_beam.runners.portability.fn_api_runner.FnApiRunner")
    p | InOrder(shuffled(make_rows())) | Alert(*RULES)
    result = p.run()
    result.wait_until_finish()
    counters = result.metrics().query(MetricsFilter().with_namespace("rocsteady"))["counters"]
    counts = {counter.key.metric.name: counter.committed for counter in counters}
    assert (counts["alert_rows"], counts["alert_rows_repeated"]) == (len(make_rows()), 20)
    alerts = expected(make_rows())
    assert counts["alerts_opened"] == sum(alert[1] == "open" for alert in alerts)
    assert counts["alerts_opened"] + counts["alerts_closed"] == len(alerts)


def test_alerts_follow_an_evaluation(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 2000)
    scores = rng.normal(np.where(np.arange(2000) < 1000, 2.0, 0.0) * labels)
    events = [
        {"score": float(s), "label": int(y), "at": i}
        for i, (s, y) in enumerate(zip(scores, labels, strict=True))
    ]
    with pipeline() as p:
        evaluation = (
            p
            | InOrder(events)
            | rs.EvaluateModels(
                window=rs.LastEvents(500), every=rs.EverySeconds("100s"), time="at", model_name="m"
            )
        )
        evaluation.rows | rs.Alert("auc drops by 0.1 against 10m for 2 rows") | Keep(tmp_path, "alerts")
    (alert,) = kept(tmp_path, "alerts")
    found = AlertRow(*alert.value)
    assert (found.state, found.model, found.time) == ("open", "m", alert.time)
    assert 1000 <= alert.time / 1e6 <= 1500


def test_a_drop_against_a_period_is_seen_in_a_pipeline_as_by_an_evaluator(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 3000)
    scores = rng.normal(np.where(np.arange(3000) < 2000, 2.0, 0.5) * labels)
    events = [
        {"score": float(s), "label": int(y), "at": i}
        for i, (s, y) in enumerate(zip(scores, labels, strict=True))
    ]
    rule = "auc surely drops by 0.02 against 1970-01-01..1970-01-01T00:20 at 1000"
    chosen = {"evidence_below": "1970-01-01..1970-01-01T00:20 less 0.02", "every": rs.EveryEvents(50)}
    with pipeline() as p:
        evaluation = p | InOrder(events) | rs.EvaluateModels(time="at", model_name="m", **chosen)
        evaluation.rows | rs.Alert(rule) | Keep(tmp_path, "alerts")
    (alert,) = kept(tmp_path, "alerts")
    evaluator = rs.ModelEvaluator(model="m", **chosen)
    (wanted,) = rs.AlertTable([rs.parse_alert(rule)]).watch(
        evaluator.update(labels, scores, times=np.arange(3000))
    )
    assert alert.value == wanted
    assert 2000 <= alert.time / 1e6 <= 2400


def test_rules_on_pairs_watch_single_rows_and_batches_of_a_comparison(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 2000)
    new, newer, old = (rng.normal(strength * labels) for strength in (1.4, 0.4, 1.0))
    columns = zip(labels.tolist(), new.tolist(), newer.tolist(), old.tolist(), strict=True)
    events = [dict(zip(("label", "new", "newer", "old"), each, strict=True)) for each in columns]
    rules = ("anytime_high < 0", "difference_low > 0 for 2 rows where model = 'new'")
    how: dict[str, Any] = {"every": rs.EveryEvents(100), "window": rs.LastEvents(500)}
    (tmp_path / "a").mkdir()
    with pipeline() as p:
        compared = p | InOrder(events) | rs.ComparePairs(score=["new", "newer"], against="old", **how)
        compared.rows | rs.Alert(*rules, shards=2) | Keep(tmp_path, "alerts")
        compared.batches | "of batches" >> rs.Alert(*rules) | "in a" >> Keep(tmp_path / "a", "alerts")
    table = AlertTable([rs.parse_alert(rule) for rule in rules])
    wanted: list[rs.AlertRow] = []
    for name, scores in (("new", new), ("newer", newer)):
        pair = rs.PairEvaluator(model=name, against="old", **how)
        wanted += table.watch([*pair.update(labels, scores, old), *pair.finish()])
    assert alerts_in(tmp_path) == alerts_in(tmp_path / "a") == sorted(map(tuple, wanted), key=repr)
    assert {alert.model for alert in wanted} == {"new against old", "newer against old"}


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ((), "no rule"),
        (("auk < 1",), "'auk' is no number"),
        (("auc < .5", "auc<0.50"), "2 times"),
        ((3,), "3 is no rule"),
    ],
)
def test_rules_that_cannot_be_are_refused_when_the_pipeline_is_built(rules: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Alert(*rules)
    with pytest.raises(ConfigError, match="shards=0"):
        Alert("auc < 0.5", shards=0)


def test_what_it_cannot_be_applied_to_is_refused() -> None:
    p = beam.Pipeline(runner="FnApiRunner")
    with pytest.raises(ConfigError, match=r"applied to a list.*\.rows"):
        Alert("auc < 0.5").expand([1])
    rows = p | InOrder([make_rows()], rs.Rows) | beam.WindowInto(Sessions(10))
    with pytest.raises(ConfigError, match="Sessions, windows that merge"):
        rows | Alert("auc < 0.5")


def test_elements_that_are_no_rows_fail_the_job_in_a_sentence() -> None:
    words = r"'dict' without 'model' is no row of measures; apply it to \.rows"
    with pytest.raises(Exception, match=words), pipeline() as p:
        p | InOrder([{"model": "m"}]) | Alert("auc < 0.5")


def test_a_batch_needs_the_columns_of_its_rules_and_no_times() -> None:
    batch = rows_to_arrow(make_rows())
    with pytest.raises(InputError, match="no column 'h', which an alert needs"):
        watched_batch(batch.drop_columns(["h"]), ("h",))
    bare = batch.select(["model", "slice", "row", "seq", "window_events", "auc"])
    watched = watched_batch(bare, ("auc",))
    np.testing.assert_array_equal(watched.numbers[:, 0], make_rows().number("auc"))
    assert watched_batch(batch, ("auc",)).integers.tolist() == make_rows().integers.tolist()
    with pytest.raises(InputError, match="a row was given to rules that watch pair rows"):
        watched_batch(batch, ("p",))
