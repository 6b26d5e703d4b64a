"""Beam's gauges of sizes, and the newest rows of models: what runners and monitoring systems are told."""

from __future__ import annotations

import math

import numpy as np
import pytest
import rocsteady as rs
from apache_beam.metrics.execution import MetricsContainer, MetricsEnvironment
from apache_beam.runners.worker.statesampler import StateSampler
from apache_beam.utils.counters import CounterFactory
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.rows.rows import Rows
from rocsteady.transforms.beam import metrics
from rocsteady.transforms.beam.metrics import hold, let_go
from rocsteady.transforms.beam.newest import NewestRows


@pytest.fixture
def told():
    """A function that returns Beam's gauges by name."""
    metrics.reset()
    sampler = StateSampler("test", CounterFactory())
    container = MetricsContainer("step")
    state = sampler.scoped_state("step", "process", metrics_container=container)
    sampler.start()
    try:
        with state:
            yield lambda: {
                key.metric.name: gauge.value for key, gauge in container.get_cumulative().gauges.items()
            }
    finally:
        sampler.stop()
        metrics.reset()


def test_each_shard_has_gauges_of_its_own(told):
    assert MetricsEnvironment.current_container() is not None
    hold("step", "shard-000", {"evaluators": 2, "state_bytes": 100})
    hold("step", "shard-001", {"evaluators": 3, "state_bytes": 50})
    hold("step", "shard-000", {"evaluators": 2, "state_bytes": 70})
    assert told() == {
        "evaluators shard-000": 2, "state_bytes shard-000": 70,
        "evaluators shard-001": 3, "state_bytes shard-001": 50,
    }  # fmt: skip
    assert metrics.gauges() == {"evaluators": 5, "state_bytes": 120}


def test_a_shard_has_the_sum_of_its_panes_and_an_ended_pane_counts_no_more(told):
    for pane, size in (((0, 10), 5), ((10, 20), 7)):
        hold("step", "shard-000", {"evaluators": 1, "state_bytes": size}, pane)
    assert told() == {"evaluators shard-000": 2, "state_bytes shard-000": 12}
    let_go("step", "shard-000", (0, 10))
    assert told() == {"evaluators shard-000": 1, "state_bytes shard-000": 7}
    let_go("step", "shard-000", (10, 20))
    let_go("step", "shard-000", (10, 20))
    assert told() == {"evaluators shard-000": 0, "state_bytes shard-000": 0}
    assert +metrics.gauges() == {}


def rows(*keys, seq=1, time=NO_TIME, auc=0.5):
    found = Rows.blank(len(keys), keys, "")
    found.integer("seq")[:] = seq
    found.integer("time")[:] = time
    found.integer("window_events")[:] = 9
    found.number("auc")[:] = auc
    found.key_codes[:] = np.arange(len(keys))
    return found


def test_the_newest_row_of_each_model_and_slice_is_kept():
    newest = NewestRows(5)
    newest.see(rows(("a", ""), ("a", "s"), seq=1, auc=0.6))
    newest.see(rows(("a", ""), seq=7, time=1_500_000, auc=0.8))
    now = newest.now()
    assert now.models["a"] == {
        "auc": 0.8, "auc_low": pytest.approx(math.nan, nan_ok=True),
        "auc_high": pytest.approx(math.nan, nan_ok=True), "h": pytest.approx(math.nan, nan_ok=True),
        "evidence": pytest.approx(math.nan, nan_ok=True), "window_events": 9.0, "events": 7.0,
        "newest_event_timestamp_seconds": 1.5,
    }  # fmt: skip
    assert now.slices["a", "s"]["auc"] == 0.6
    assert math.isnan(now.slices["a", "s"]["newest_event_timestamp_seconds"])


def test_models_and_slices_beyond_the_most_are_counted():
    newest = NewestRows(2)
    newest.see(rows(("a", ""), ("a", "x"), ("b", ""), ("c", "")))
    newest.see(rows(("c", ""), ("d", ""), ("a", "y"), ("a", "z")))
    newest.see(rows(("d", ""), ("a", ""), seq=5))
    now = newest.now()
    assert ([*now.models], [*now.slices]) == (["a", "b"], [("a", "x"), ("a", "y")])
    assert (now.models_beyond, now.slices_beyond, now.rows_beyond) == (2, 1, 4)
    assert now.models["a"]["events"] == 5


def test_a_model_with_classes_has_the_macro_auc_and_classes_beyond_the_most_are_counted():
    ev = rs.MulticlassEvaluator(["a", "b", "c"], model="m", every=rs.EveryEvents(6))
    found = ev.update(list("abcabc"), np.random.default_rng(1).random((6, 3)))
    newest = NewestRows(2)
    newest.see(found.rows)
    now = newest.now()
    assert now.models["m"]["auc_macro"] == found[0].auc_macro
    assert now.models["m"]["auc_macro_high"] == found[0].auc_macro_high
    assert {"auc", "auc_low", "h"}.isdisjoint(now.models["m"])
    assert {key: numbers["auc"] for key, numbers in now.classes.items()} == {
        ("m", "", row.class_): row.auc for row in found[1:3]
    }
    assert (now.classes_beyond, now.models_beyond, now.slices_beyond) == (1, 0, 0)


def test_times_of_labels_and_of_events_are_told_apart():
    metrics.reset()
    try:
        assert metrics.newest_times() == {}
        metrics.note_times(1_000_000, 5_500_000, "prediction")
        metrics.note_times(1_000_000, 2_000_000)
        metrics.note_times(1_000_000, 4_000_000, "label")
        assert metrics.newest_times() == {
            "newest_event_timestamp_seconds": 5.5, "newest_label_timestamp_seconds": 4.0,
        }  # fmt: skip
    finally:
        metrics.reset()
