"""The Grafana dashboard, as the JSON that Grafana imports (schema version 41, Grafana 11.6 and later).

Three variables choose what is shown: the data source, the jobs (by the address at which Prometheus finds
them, the label `instance`) and a model. A model may be in several jobs: queries of models keep `instance`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .named import named, of_auc
from .series import PREFIX

WORST = 20
"""How many models the table of the models that rank worst has."""

_SOURCE = {"type": "prometheus", "uid": "${source}"}
_JOBS = '{instance=~"$job"}'
_MODEL = '{instance=~"$job", model="$model"}'
_WIDTH = 24
"""How many columns Grafana's grid has."""

Json = dict[str, Any]


def dashboard(auc_below: float) -> str:
    """Return the dashboard as JSON; a model whose interval lies below `auc_below` is shown as low."""
    return json.dumps(
        {
            "uid": "rocsteady",
            "title": "Classifiers: how they rank",
            "description": "Made by `rocsteady monitoring`, from the metrics of jobs of rocsteady.",
            "tags": ["rocsteady"],
            "schemaVersion": 41,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "timezone": "browser",
            "annotations": {"list": []},
            "templating": {"list": _variables()},
            "panels": _placed(_rows_of_panels(auc_below)),
        },
        indent=2,
    )


def _variables() -> list[Json]:
    names = f"{named('model_auc')}|{named('model_auc_macro')}"
    any_series = f'{{__name__=~"{PREFIX}.+"}}'
    return [
        {"type": "datasource", "name": "source", "label": "Prometheus", "query": "prometheus"},
        _variable("job", "Jobs", f"label_values({any_series}, instance)")
        | {"multi": True, "includeAll": True, "current": {"text": ["All"], "value": ["$__all"]}},
        _variable("model", "Model", f'label_values({{__name__=~"{names}", instance=~"$job"}}, model)'),
    ]


def _variable(name: str, label: str, query: str) -> Json:
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,  # with each change of the time range, because models come and go
        "sort": 1,
    }


def _rows_of_panels(auc_below: float) -> Sequence[tuple[int, Sequence[Json]]]:
    """Return the height of each row of panels, and its panels, which share the width."""
    auc, high = of_auc(labels=_JOBS), of_auc("_high", _JOBS)
    worst = f"bottomk({WORST}, {_by_model(auc)} >= 0)"
    # A NaN (an AUC of one class) is not >= 0; it would otherwise be the lowest value of all.
    events, last = (
        f"{named(f'model_{name}')}{_JOBS}" for name in ("window_events", "newest_event_timestamp_seconds")
    )
    read, applied = (f"sum({_rate(name)})" for name in ("events_read", "events_applied"))
    kinds = ("dead_letters", "late", "unmatched", "duplicate")
    lost = " + ".join(f"(sum({_rate(kind)}) or vector(0))" for kind in kinds)
    # On Flink a counter is absent until it is first increased.
    age = f"time() - max by (instance) ({named('newest_event_timestamp_seconds')}{_JOBS})"
    return [
        (4, [
            _number("Models", "Models that have an AUC.", f"count({auc} >= 0)"),
            _number(f"Models below {auc_below:g}",
                f"Models whose whole interval of the AUC lies below {auc_below:g}.",
                f"count({high} < {auc_below:g}) or vector(0)", red_from=1),
            _number("Alerts open", "Alerts of the jobs' own rules that have opened and not closed.",
                f"sum({named('alerts_open')}{_JOBS})", red_from=1),
            _number("Records that do not count", "The share of dead letters in all records that were read.",
                f"({lost}) / ({read} > 0)", unit="percentunit", red_from=0.05),
        ]),
        (9, [
            _lines("AUC of all models", "The best, the middle and the worst of the models.", [
                (f"max({auc} >= 0)", "best"),
                (f"quantile(0.5, {auc} >= 0)", "middle"),
                (f"min({auc} >= 0)", "worst"),
            ]),
            _table("Models that rank worst",
                f"The {WORST} models with the lowest AUC now, its interval, events in the window, and time "
                "since the last event.",
                {
                    "AUC": worst,
                    "from": f"{_by_model(of_auc('_low', _JOBS))} and {worst}",
                    "to": f"{_by_model(high)} and {worst}",
                    "events": f"{_by_model(events)} and {worst}",
                    "last event": f"time() - {_by_model(last)} and {worst}",
                }),
        ]),
        (9, [
            _lines("AUC of $model, with its interval",
                "The model that is chosen above. In several jobs: the widest interval of its rows.", [
                    (f"max({of_auc('_high', _MODEL)})", "to"),
                    (f"max({of_auc(labels=_MODEL)})", "AUC"),
                    (f"min({of_auc('_low', _MODEL)})", "from"),
                ], band=("from", "to")),
        ]),
        (8, [
            _lines("Events per second", "Events that were read, and those that count in the rows.", [
                (read, "read"), (applied, "count in the rows"),
            ], unit="eps"),
            _lines("Records that do not count, per second", "Dead letters by their kind and reason.", [
                (f"sum by (kind, reason) ({_rate('dead_letters_by_reason')})", "{{kind}}: {{reason}}"),
            ], unit="cps"),
        ]),
        (8, [
            _lines("Newest event: how long ago", "The clock on the wall minus the greatest event time.", [
                (age, "{{instance}}"),
            ], unit="s"),
            _lines("State", "Bytes of the state, if written now, and memory of the process, by job.", [
                (f"sum by (instance) ({named('state_bytes')}{_JOBS})", "state, {{instance}}"),
                (f"process_resident_memory_bytes{_JOBS}", "process, {{instance}}"),
            ], unit="bytes"),
        ]),
    ]  # fmt: skip


def _rate(name: str) -> str:
    """Return the query of a counter's growth in a second, over a time that suits the chart."""
    return f"rate({named(name)}{_JOBS}[$__rate_interval])"


def _by_model(query: str) -> str:
    """Return a query for the number of each model in each job."""
    return f"max by (instance, model) ({query})"


def _placed(rows: Sequence[tuple[int, Sequence[Json]]]) -> list[Json]:
    """Return the panels with their numbers and their places in the grid."""
    placed: list[Json] = []
    y = 0
    for height, panels in rows:
        width = _WIDTH // len(panels)
        for place, panel in enumerate(panels):
            where = {"x": place * width, "y": y, "w": width, "h": height}
            placed.append({"id": len(placed) + 1, "gridPos": where, **panel})
        y += height
    return placed


def _panel(kind: str, title: str, about: str, targets: Sequence[Json], fields: Json, options: Json) -> Json:
    for place, target in enumerate(targets):
        target |= {"refId": "ABCDEFGH"[place], "datasource": _SOURCE, "editorMode": "code"}
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": _SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": {}, "overrides": []} | fields,
        "options": options,
    }


def _number(title: str, about: str, query: str, unit: str = "none", red_from: float | None = None) -> Json:
    """Return a panel of one number and its course over time; the number is red from `red_from` on."""
    steps: list[Json] = [{"color": "text", "value": None}]
    if red_from is not None:
        steps.append({"color": "red", "value": red_from})
    return _panel("stat", title, about,
        [{"expr": query, "legendFormat": title, "range": True}],
        {"defaults": {"unit": unit, "thresholds": {"mode": "absolute", "steps": steps}}},
        {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "graphMode": "area",
            "colorMode": "value"})  # fmt: skip


def _lines(
    title: str,
    about: str,
    queries: Sequence[tuple[str, str]],
    unit: str = "none",
    band: tuple[str, str] | None = None,
) -> Json:
    """Return a panel of lines over time.

    queries  the queries, each with the name of its lines
    band     the names of two lines: the space between them is filled
    """
    overrides = []
    if band is not None:
        lower, upper = band
        overrides = [
            _override(lower, {"custom.lineWidth": 0}),
            _override(upper, {"custom.lineWidth": 0, "custom.fillBelowTo": lower, "custom.fillOpacity": 20}),
        ]
    return _panel("timeseries", title, about,
        [{"expr": query, "legendFormat": legend, "range": True} for query, legend in queries],
        {"defaults": {"unit": unit, "custom": {"showPoints": "never"}}, "overrides": overrides},
        {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"}})  # fmt: skip


def _table(title: str, about: str, columns: Mapping[str, str]) -> Json:
    """Return a table of models, ordered by its first column; each column is a query by instance and model."""
    first = next(iter(columns))
    names = {f"Value #{letter}": column for letter, column in zip("ABCDEFGH", columns, strict=False)}
    order = {name: place for place, name in enumerate(["model", *names, "instance"])}
    panel = _panel("table", title, about,
        [{"expr": query, "format": "table", "instant": True} for query in columns.values()],
        {"defaults": {"unit": "none", "decimals": 3}, "overrides": [
            _override("events", {"decimals": 0}), _override("last event", {"unit": "s", "decimals": 0}),
        ]},
        {"showHeader": True, "cellHeight": "sm"})  # fmt: skip
    return panel | {
        "transformations": [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {
                "excludeByName": {"Time": True},
                "indexByName": order,
                "renameByName": names | {"instance": "job"},
            }},
            {"id": "sortBy", "options": {"fields": {}, "sort": [{"field": first, "desc": False}]}},
        ]
    }  # fmt: skip


def _override(name: str, properties: Mapping[str, Any]) -> Json:
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties.items()],
    }
