"""Time series that are sent to a collector: a receiver decodes what came over the socket."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from rocsteady.core.errors import ConfigError
from rocsteady.pipelines.cli import main
from rocsteady.pipelines.monitoring.otlp import endpoint_of, sent
from rocsteady.pipelines.monitoring.series import PREFIX, Series, job_series
from rocsteady.pipelines.serve.gauges import page_series
from rocsteady.transforms.beam.metrics import COUNTERS

from tests.support.pages.report_tables import evaluated_rows
from tests.support.pages.served import asked, served
from tests.support.servers.otlp_receiver import points, receiver
from tests.support.streams.class_events import class_streams, lines_of

CUMULATIVE = 2


@pytest.fixture(autouse=True)
def _few_settings(monkeypatch):
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_METRIC_EXPORT_INTERVAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def until(holds):
    end = time.monotonic() + 120  # for what hangs
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_job_sends_its_counters_and_newest_rows_at_its_end(tmp_path, capsys):
    rng = np.random.default_rng(3)
    events = [
        {"model": "ab"[i % 2], "score": round(float(rng.normal(i % 3)), 3), "label": int(i % 3 > 0), "at": i}
        for i in range(600)
    ]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    rows = tmp_path / "rows.jsonl"
    with receiver() as (address, received):
        words = ["--time", "at", "--every", "50", "--output", str(rows), "--otlp", address]
        assert main(["evaluate", str(tmp_path / "e.jsonl"), *words]) == 0
    metrics, resource = received.newest()
    assert resource["service.name"] == "rocsteady"
    read = metrics["rocsteady_events_read"]
    assert points(read) == {(): 600}
    assert (read.sum.is_monotonic, read.sum.aggregation_temporality) == (True, CUMULATIVE)
    assert read.description == COUNTERS["events_read"]
    written = {row["model"]: row for row in map(json.loads, rows.read_text().splitlines())}
    assert points(metrics["rocsteady_model_auc"]) == {
        (("model", model),): row["auc"] for model, row in written.items()
    }
    assert points(metrics["rocsteady_model_newest_event_timestamp_seconds"]) == {
        (("model", model),): max(event["at"] for event in events if event["model"] == model) for model in "ab"
    }
    assert "rocsteady_model_evidence" not in metrics, "NaN is not sent"


def test_a_job_with_class_scores_sends_the_macro_auc_of_its_models_and_the_auc_of_each_class(tmp_path):
    (tmp_path / "e.jsonl").write_text(lines_of(class_streams()[2]))
    rows = tmp_path / "rows.jsonl"
    with receiver() as (address, received):
        words = ["--class-scores", "p_cat,p_dog,p_owl", "--label", "y", "--slice", "country", "--every", "10"]
        words += ["--output", str(rows), "--otlp", address]
        assert main(["evaluate", str(tmp_path / "e.jsonl"), *words]) == 0
    metrics, _ = received.newest()
    written = [json.loads(line) for line in rows.read_text().splitlines()]
    newest = {(row["model"], row["slice"], row["class"]): row for row in written}
    assert points(metrics["rocsteady_model_auc_macro"]) == {
        (("model", model),): newest[model, "", None]["auc_macro"] for model in ("m0", "m1")
    }
    assert points(metrics["rocsteady_class_auc"]) == {
        (("class", of), ("model", model), ("slice", part)): row["auc"]
        for (model, part, of), row in newest.items() if of
    }  # fmt: skip
    assert "rocsteady_model_auc" not in metrics


def test_every_series_is_sent_under_the_name_that_prometheus_fetches(monkeypatch):
    from rocsteady.pipelines.monitoring.prometheus import exposition, registry_of

    series = job_series()
    fetched = {
        line.split("{")[0].split(" ")[0].removesuffix("_total")
        for line in exposition(registry_of(series)).decode().splitlines()
        if line.startswith(PREFIX)
    }
    with receiver() as (address, received), sent(address, series):
        pass
    assert set(received.newest()[0]) == fetched


def test_values_are_sent_again_and_again_and_models_that_went_are_not(monkeypatch):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "fraud")
    held = {"a": 1.0, "b": 2.0, "c": math.nan}
    series = [Series("x", "gauge", "An x.", lambda: [({"model": name}, held[name]) for name in held])]
    with receiver() as (address, received):
        with sent(address, series):
            until(lambda: received.requests)
            assert points(received.newest()[0]["rocsteady_x"]) == {
                (("model", "a"),): 1.0, (("model", "b"),): 2.0,
            }  # fmt: skip
            del held["a"]
            held["b"] = 3.0
            until(lambda: points(received.newest()[0]["rocsteady_x"]) == {(("model", "b"),): 3.0})
        assert received.newest()[1]["service.name"] == "fraud"


@pytest.mark.parametrize("status", [400, 307])
def test_a_collector_that_refuses_is_said_once_and_the_job_goes_on(status, monkeypatch, capsys):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "30")
    asked = []
    series = [Series("x", "counter", "An x.", lambda: [({}, asked.append(1) or len(asked))])]
    with receiver() as (address, received):
        received.status = status
        with sent(address, series):
            until(lambda: len(asked) > 3)
            received.status = 200
            until(lambda: received.requests)
            until(lambda: len(received.requests) > 2)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"rocsteady: --otlp {address} does not take metrics; the job goes on, and it is tried again",
        f"rocsteady: --otlp {address} takes metrics again",
    ]


def test_an_address_where_nothing_listens_ends_in_time_with_a_sentence(capsys):
    with receiver() as (address, _):
        pass
    began = time.monotonic()
    with sent(address, [Series("x", "gauge", "An x.", lambda: [({}, 1.0)])]):
        pass
    assert time.monotonic() - began < 30
    assert capsys.readouterr().err.count("does not take metrics") == 1


@pytest.mark.parametrize(
    "wrong",
    ["", "localhost:4318", ":4318", "grpc://host:4317", "http://", "http://h:x", "http://h o", "http://h\n"],
)
def test_what_is_no_address_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"--otlp .*http://localhost:4318"):
        endpoint_of(wrong)


def test_the_option_is_refused_where_the_work_is_done_elsewhere(tmp_path, capsys):
    (tmp_path / "e.jsonl").write_text('{"model": "m", "score": 1, "label": 1}\n')
    words = ["--runner", "prism", "--prism_location", "x", "--otlp", "http://127.0.0.1:4318"]
    assert main(["evaluate", str(tmp_path / "e.jsonl"), *words]) == 2
    assert "--otlp http://127.0.0.1:4318 is for the counters of this process" in capsys.readouterr().err


def test_a_served_page_sends_the_series_that_it_gives_at_its_address():
    rows = evaluated_rows(("a", "b"), n=500)
    with receiver() as (address, received), served(followed=("alerts",)) as here:
        here.rows.put(rows)
        here.judged(len(rows))
        with sent(address, page_series(here.keeper)):
            pass
        _, _, content = asked(here.port, "/metrics")
    samples = [
        (sample.name.removesuffix("_total"), tuple(sorted(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(content.decode())
        for sample in family.samples
        if sample.name.startswith(PREFIX) and "lag" not in sample.name and not math.isnan(sample.value)
    ]
    metrics, _ = received.newest()
    told = {
        (name, *point)
        for name, metric in metrics.items()
        if "lag" not in name
        for point in points(metric).items()
    }
    assert told == set(samples)
    assert ("rocsteady_model_window_events", (("model", "b"),), 400.0) in told
