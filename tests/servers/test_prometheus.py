"""`rocsteady monitoring` before a real Prometheus: rules, and the queries of every panel on jobs that run."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from contextlib import ExitStack

import pytest
from rocsteady.runners.servers.processes import free_port

from tests.support.pages.blocks import blocks_of
from tests.support.pages.runs import readers_environment, run, run_python
from tests.support.processes.command import call, start
from tests.support.processes.live_job import job
from tests.support.servers.prometheus import (
    PATIENCE,
    Prometheus,
    filled,
    needed,
    prometheus,
    promtool,
    queries,
    wait_for,
)

RULES_TEST = """
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - name: a job that is well
    interval: 1m
    input_series:
      - {series: 'up{job="rocsteady", instance="a"}', values: '1x60'}
      - {series: 'rocsteady_newest_row_timestamp_seconds{job="rocsteady", instance="a"}', values: '0+60x60'}
      - {series: 'rocsteady_events_read_total{job="rocsteady", instance="a"}', values: '0+100x60'}
      - {series: 'rocsteady_dead_letters_total{job="rocsteady", instance="a"}', values: '0+4x60'}
      - {series: 'rocsteady_late_total{job="rocsteady", instance="a"}', values: '0x60'}
      - {series: 'rocsteady_unmatched_total{job="rocsteady", instance="a"}', values: '0x60'}
      - {series: 'rocsteady_model_auc_high{instance="a", model="m"}', values: '0.6x60'}
      - {series: 'rocsteady_model_auc_high{instance="a", model="of one class"}', values: 'NANS'}
    alert_rule_test:
      - {eval_time: 60m, alertname: RocsteadyModelRanksBadly, exp_alerts: []}
      - {eval_time: 60m, alertname: RocsteadyNoEvents, exp_alerts: []}
      - {eval_time: 60m, alertname: RocsteadyManyDeadLetters, exp_alerts: []}
      - {eval_time: 60m, alertname: RocsteadyNoRows, exp_alerts: []}
      - {eval_time: 60m, alertname: RocsteadyJobGone, exp_alerts: []}
      - {eval_time: 60m, alertname: RocsteadyNoJob, exp_alerts: []}
  - name: a model falls at minute 11, and rises at minute 41
    interval: 1m
    input_series:
      - {series: 'rocsteady_model_auc_high{instance="a", model="m"}', values: '0.8x10 0.512x29 0.8x20'}
    alert_rule_test:
      - {eval_time: 25m, alertname: RocsteadyModelRanksBadly, exp_alerts: []}
      - eval_time: 27m
        alertname: RocsteadyModelRanksBadly
        exp_alerts:
          - exp_labels: {severity: warning, instance: a, model: m}
            exp_annotations:
              summary: 'Model m ranks below 0.6: the interval of its AUC ends at 0.512.'
      - {eval_time: 42m, alertname: RocsteadyModelRanksBadly, exp_alerts: []}
  - name: a model with classes falls at minute 11, beside one with a single score that stays
    interval: 1m
    input_series:
      - {series: 'rocsteady_model_auc_macro_high{instance="a", model="k"}', values: '0.8x10 0.512x50'}
      - {series: 'rocsteady_model_auc_high{instance="a", model="m"}', values: '0.8x60'}
    alert_rule_test:
      - {eval_time: 25m, alertname: RocsteadyModelRanksBadly, exp_alerts: []}
      - eval_time: 27m
        alertname: RocsteadyModelRanksBadly
        exp_alerts:
          - exp_labels: {severity: warning, instance: a, model: k}
            exp_annotations:
              summary: 'Model k ranks below 0.6: the interval of its AUC ends at 0.512.'
  - name: events stop at minute 10
    interval: 1m
    input_series:
      - {series: 'rocsteady_events_read_total{instance="a"}', values: '0+100x10 1000x60'}
    alert_rule_test:
      - {eval_time: 24m, alertname: RocsteadyNoEvents, exp_alerts: []}
      - eval_time: 31m
        alertname: RocsteadyNoEvents
        exp_alerts:
          - exp_labels: {severity: critical, instance: a}
            exp_annotations: {summary: 'The job at a has read no event for 15 minutes.'}
  - name: a tenth is late, in two parts of a job on Flink, and nothing was ever refused
    interval: 1m
    input_series:
      - {series: 'rocsteady_events_read_total{instance="a", subtask_index="0"}', values: '0+50x60'}
      - {series: 'rocsteady_events_read_total{instance="a", subtask_index="1"}', values: '0+50x60'}
      - {series: 'rocsteady_late_total{instance="a", subtask_index="1"}', values: '0+10x60'}
    alert_rule_test:
      - eval_time: 30m
        alertname: RocsteadyManyDeadLetters
        exp_alerts:
          - exp_labels: {severity: warning, instance: a}
            exp_annotations: {summary: 'Of what the job at a reads, 10% does not count.'}
  - name: no rows come from minute 11 on
    interval: 1m
    input_series:
      - {series: 'rocsteady_newest_row_timestamp_seconds{instance="a"}', values: '0+60x10 600x60'}
    alert_rule_test:
      - {eval_time: 25m, alertname: RocsteadyNoRows, exp_alerts: []}
      - eval_time: 31m
        alertname: RocsteadyNoRows
        exp_alerts:
          - exp_labels: {severity: critical, instance: a}
            exp_annotations: {summary: 'To the rows that a follows, none has come for 15 minutes.'}
  - name: a job that ends, beside no other job
    interval: 1m
    input_series:
      - {series: 'up{job="rocsteady", instance="a"}', values: '1x10 0x20'}
    alert_rule_test:
      - {eval_time: 12m, alertname: RocsteadyJobGone, exp_alerts: []}
      - eval_time: 17m
        alertname: RocsteadyJobGone
        exp_alerts:
          - exp_labels: {severity: critical, job: rocsteady, instance: a}
            exp_annotations:
              summary: 'Nothing answers at a: the job has ended, or cannot be reached.'
  - name: settings of another name
    interval: 1m
    input_series:
      - {series: 'up{job="other", instance="a"}', values: '1x30'}
    alert_rule_test:
      - eval_time: 6m
        alertname: RocsteadyNoJob
        exp_alerts:
          - exp_labels: {severity: critical}
            exp_annotations:
              summary: 'Prometheus has no address of a job rocsteady: its settings name none.'
""".replace("NANS", "NaN " * 60)


@pytest.fixture(scope="module", autouse=True)
def _prometheus():
    needed()


def test_promtool_finds_no_fault_and_each_rule_holds_when_it_should_and_only_then(tmp_path, capsys):
    assert call(capsys, "monitoring", tmp_path, "--scrape-flink", ":9249").status == 0
    promtool("check", "config", tmp_path / "prometheus.yml")
    (tmp_path / "test.yml").write_text(RULES_TEST)
    promtool("test", "rules", tmp_path / "test.yml")
    rules = set(re.findall(r"alert: (\w+)", (tmp_path / "rules.yml").read_text()))
    assert rules == set(re.findall(r"alertname: (\w+)", RULES_TEST))


def events(models, stopped):
    """Lines of events for ever, of which one in twenty is none."""
    rng = random.Random(5)
    while not stopped.is_set():
        record = {"model": rng.choice(models), "label": rng.randrange(2), "sent": time.time()}
        record["score"] = "none" if rng.random() < 0.05 else record["label"] * 0.3 + rng.random()
        yield json.dumps(record) + "\n"


@pytest.mark.slow
def test_each_query_of_the_dashboard_gives_data_on_jobs_that_run(tmp_path, capsys):
    ports = {"job": free_port(), "page": free_port(), "served": free_port()}
    addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    words = [word for name in addresses for word in ("--scrape", addresses[name])]
    # the model's name has what a query must escape
    models = ['a "b"\\c', "other"]
    folder = tmp_path / "monitoring"
    assert call(capsys, "monitoring", folder, *words, "--auc-below", "0.999").status == 0
    board = json.loads((folder / "dashboard.json").read_text())
    stopped = threading.Event()
    with ExitStack() as running:
        live = running.enter_context(job("-", "--time", "sent", "--window", "last:200", "--every", "50",
            "--prometheus", addresses["job"], "--serve", addresses["page"], "--alert", "auc < 1 for 1 rows",
            output=str(tmp_path / "rows") + "/"))  # fmt: skip
        served = running.enter_context(start("serve", tmp_path / "rows", "--port", ports["served"]))
        running.callback(served.terminate)

        def feed():
            for line in events(models, stopped):
                live.send(line.encode())
                time.sleep(0.005)

        feeding = threading.Thread(target=feed)
        feeding.start()
        running.callback(feeding.join)
        running.callback(stopped.set)
        server = running.enter_context(prometheus(folder / "prometheus.yml", tmp_path))

        def has_data(query, name):
            return bool(server.found(filled(query, re.escape(addresses[name]), models[0])))

        for query in queries(board):
            wait_for(lambda query=query: has_data(query, "job"), query)
            if "rocsteady_model_" in query:
                for name in ("page", "served"):
                    wait_for(lambda query=query, name=name: has_data(query, name), (name, query))
        for variable in board["templating"]["list"][1:]:
            selector, label = re.fullmatch(
                r"label_values\((.*), (\w+)\)", variable["query"]["query"]
            ).groups()
            values = server.label_values(filled(selector, re.escape(addresses["job"])), label)
            assert sorted(values) == (models if label == "model" else sorted(addresses.values()))
        (rule,) = [
            r for g in server.asked("rules")["groups"] for r in g["rules"] if "RanksBadly" in r["name"]
        ]
        assert rule["health"] == "ok"


def test_the_commands_of_the_page_lead_from_nothing_to_numbers_in_prometheus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ports = {"9100": str(free_port()), "9090": str(free_port())}
    blocks = [
        block._replace(text=re.sub(r"9100|9090", lambda found: ports[found[0]], block.text))
        for block in blocks_of("docs/how-to/prometheus.md")
    ]
    events, live, made, server = blocks[:4]
    run_python(events, {"__name__": "page"})
    made = made._replace(text=f"{made.text.strip()} --scrape :{ports['9100']}\n")  # the page's is the default
    run(made, {})
    with readers_environment() as environment, ExitStack() as running:
        for block in (live, server):
            shell = running.enter_context(
                subprocess.Popen(["bash", "-c", block.text], env=environment, start_new_session=True,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )  # fmt: skip
            running.callback(os.killpg, shell.pid, signal.SIGKILL)
        answers = Prometheus(ports["9090"])
        wait_for(answers.ready, "Prometheus is ready")
        deadline = time.monotonic() + 3 * PATIENCE  # a scrape every 15 s
        while len(answers.found("rocsteady_model_auc")) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        rules = answers.asked("rules")["groups"][0]["rules"]
        assert {rule["name"] for rule in rules} >= {"RocsteadyModelRanksBadly", "RocsteadyJobGone"}
