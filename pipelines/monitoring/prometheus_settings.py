"""Settings of Prometheus, as YAML: the addresses to scrape, and the names that series of Flink get.

Flink's reporter has names of its own, such as flink_taskmanager_job_task_operator_rocsteady_lag_topic_0_. The
settings turn this name into rocsteady_lag{partition="topic_0_"}, so that one query serves every runner.
Flink's reporter gives 0 for each distribution of Beam: the settings drop distributions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...transforms.beam.metrics import COUNTERS, GAUGES, PARTITION_GAUGES
from .rules import JOB, quoted
from .series import PREFIX

_OF_FLINK = "flink_taskmanager_job_task_operator_rocsteady_"


def settings_text(jobs: Sequence[str], task_managers: Sequence[str], rules_file: str) -> str:
    """Return the settings of a Prometheus that scrapes addresses (host:port).

    jobs           the addresses at which commands serve their metrics
    task_managers  the addresses at which Flink's reporters of TaskManagers serve theirs
    """
    lines = [
        "global:",
        "  scrape_interval: 15s",
        "  evaluation_interval: 15s",
        "rule_files:",
        f"  - {rules_file}",
        "scrape_configs:",
        *_scraped(JOB, jobs),
    ]
    if task_managers:
        lines += [*_scraped(f"{JOB}-flink", task_managers), "    metric_relabel_configs:", *_renamed()]
    return "\n".join(lines) + "\n"


def _scraped(name: str, addresses: Sequence[str]) -> list[str]:
    if not addresses:
        return []
    targets = ", ".join(map(quoted, addresses))
    return [f"  - job_name: {name}", "    static_configs:", f"      - targets: [{targets}]"]


def _renamed() -> list[str]:
    """Return the rules by which series of Flink get the names that a job in one process has."""
    sizes, partitions, counters = map("|".join, (GAUGES, PARTITION_GAUGES, COUNTERS))
    return [
        *_relabelled(f"({sizes}|lag|event_seconds)", {"action": "drop"}),
        *_relabelled(f"({sizes})_(shard_\\d+)", {"target_label": "shard", "replacement": "$2"}),
        *_relabelled(f"({sizes})_shard_\\d+", {"target_label": "__name__", "replacement": f"{PREFIX}$1"}),
        *_relabelled(f"({partitions})_(.+)", {"target_label": "partition", "replacement": "$2"}),
        *_relabelled(f"({partitions})_.+", {"target_label": "__name__", "replacement": f"{PREFIX}$1"}),
        *_relabelled(f"({counters})", {"target_label": "__name__", "replacement": f"{PREFIX}${{1}}_total"}),
    ]


def _relabelled(names: str, then: dict[str, str]) -> Iterable[str]:
    yield "      - source_labels: [__name__]"
    yield f"        regex: {_OF_FLINK}{names}"
    for key, value in then.items():
        yield f"        {key}: {value}"
