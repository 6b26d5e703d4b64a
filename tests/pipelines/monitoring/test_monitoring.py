"""`rocsteady monitoring`: files that are whole, name only series that are served, and replace nobody's work.

tests/servers/test_prometheus.py has the same files before a real Prometheus.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from rocsteady.pipelines.monitoring.named import named
from rocsteady.pipelines.monitoring.prometheus import exposition, registry_of
from rocsteady.pipelines.monitoring.series import SLICE_COLUMNS, job_series
from rocsteady.pipelines.serve.gauges import MODELS, page_series
from rocsteady.pipelines.serve.keeper import Keeper
from rocsteady.pipelines.serve.pages import Look
from rocsteady.transforms.beam.newest import NEWEST_COLUMNS

from tests.support import ROOT
from tests.support.processes.command import call

FILES = ("prometheus.yml", "rules.yml", "dashboard.json")


@pytest.fixture
def folder(tmp_path, capsys):
    assert call(capsys, "monitoring", tmp_path / "made").status == 0
    return tmp_path / "made"


@pytest.fixture
def board(folder):
    return json.loads((folder / "dashboard.json").read_text())


@pytest.fixture(scope="module")
def families():
    """The names of what a job and a page serve."""
    series = {"job": job_series(), "page": page_series(Keeper(Look(followed=("alerts",))))}
    return {
        where: set(re.findall(r"^# TYPE (\S+)", exposition(registry_of(each)).decode(), re.MULTILINE))
        for where, each in series.items()
    }


def read_by_grafana(board):
    """What Grafana's own types keep of a dashboard: a field that they do not know is lost."""
    register_default_plugins()
    return json.loads(JSONEncoder().encode(Dashboard.from_json(board)))


def without_defaults(kept, given):
    """What was given, of what was kept: fields beside them are defaults."""
    if isinstance(given, dict):
        return {name: without_defaults(kept[name], value) for name, value in given.items() if name in kept}
    if isinstance(given, list):
        return [without_defaults(*pair) for pair in zip(kept, given, strict=True)]
    return kept


def test_grafanas_types_know_every_field_of_the_dashboard(board):
    assert without_defaults(read_by_grafana(board), board) == board
    for panel in board["panels"]:
        for place in (panel, panel["options"], panel["targets"][0], panel["fieldConfig"]["defaults"]):
            place["no such field"] = 1
            assert without_defaults(read_by_grafana(board), board) != board
            del place["no such field"]


def test_panels_are_few_are_described_and_fill_the_width_without_overlap(board):
    panels = board["panels"]
    assert len(panels) <= 12
    assert len({panel["title"] for panel in panels}) == len(panels)
    assert all(panel["description"].endswith(".") for panel in panels)
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(cells)) == len(cells) == 24 * (1 + max(y for _, y in cells))


def test_every_query_names_series_that_are_served_and_the_chosen_jobs(folder, board, families):
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert all(query.count('instance=~"$job"') == len(re.findall(r"[a-z]\{", query)) > 0 for query in texts)
    texts += [rule["expr"] for rule in rules_of(folder)]
    names = {name for text in texts for name in re.findall(r"\b(?:rocsteady|process)_\w+", text)}
    assert names <= families["job"] | families["page"]
    models = {name for name in families["job"] if name.startswith("rocsteady_model_")}
    assert models <= families["page"]


def rules_of(folder):
    (group,) = yaml.safe_load((folder / "rules.yml").read_text())["groups"]
    return group["rules"]


def test_a_series_that_is_not_defined_cannot_be_named():
    assert named("newest_row_timestamp_seconds") == "rocsteady_newest_row_timestamp_seconds"
    with pytest.raises(KeyError, match="no_such"):
        named("no_such")


def test_the_limit_and_the_addresses_are_those_that_are_given(tmp_path, capsys):
    words = ("--auc-below", "0.75", "--scrape", "[::1]:9100", "--scrape", "models.example.com:8080")
    assert call(capsys, "monitoring", tmp_path, *words).status == 0
    highs = "(rocsteady_model_auc_high or rocsteady_model_auc_macro_high)"
    assert rules_of(tmp_path)[0]["expr"] == f"{highs} < 0.75"
    board = json.loads((tmp_path / "dashboard.json").read_text())
    assert board["panels"][1]["title"] == "Models below 0.75"
    (scraped,) = settings_of(tmp_path)["scrape_configs"]
    assert scraped["static_configs"] == [{"targets": ["[::1]:9100", "models.example.com:8080"]}]


def settings_of(folder):
    return yaml.safe_load((folder / "prometheus.yml").read_text())


def test_series_of_flink_get_the_names_of_the_definitions(tmp_path, capsys):
    assert call(capsys, "monitoring", tmp_path, "--scrape-flink", "flink:9249").status == 0
    (scraped,) = settings_of(tmp_path)["scrape_configs"]
    assert scraped["static_configs"] == [{"targets": ["flink:9249"]}]
    given = {
        "lag_topic_0_": ("rocsteady_lag", {"partition": "topic_0_"}),
        "newest_label_timestamp_seconds_a_1_":
            ("rocsteady_newest_label_timestamp_seconds", {"partition": "a_1_"}),
        "state_bytes_shard_007": ("rocsteady_state_bytes", {"shard": "shard_007"}),
        "events_read": ("rocsteady_events_read_total", {}),
        "dead_letters": ("rocsteady_dead_letters_total", {}),
        "state_bytes": None, "lag": None, "event_seconds": None,  # distributions
        "other": ("flink_taskmanager_job_task_operator_rocsteady_other", {}),
    }  # fmt: skip
    for name, then in given.items():
        labels = {"__name__": f"flink_taskmanager_job_task_operator_rocsteady_{name}"}
        found = relabelled(labels, scraped["metric_relabel_configs"])
        assert (found and (found.pop("__name__"), found)) == then


def relabelled(labels, rules):
    """The labels after the rules, as the documentation of Prometheus says; None: dropped."""
    for rule in rules:
        (source,) = rule["source_labels"]
        if (match := re.fullmatch(rule["regex"], labels[source])) is None:
            continue
        if rule.get("action") == "drop":
            return None
        labels = labels | {
            rule["target_label"]: match.expand(re.sub(r"\$\{?(\d)\}?", r"\\\1", rule["replacement"]))
        }
    return labels


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_somebody_changed_is_kept_and_nothing_is_written(folder, capsys, name):
    assert call(capsys, "monitoring", folder).status == 0
    changed = folder / name
    changed.write_text("mine")
    others = [folder / other for other in FILES if other != name]
    for other in others:
        other.unlink()
    ran = call(capsys, "monitoring", folder)
    assert (ran.status, ran.out) == (2, "")
    assert ran.lines == [
        f"rocsteady: {changed} is there and says something else; name another folder, or remove the file"
    ]
    assert changed.read_text() == "mine"
    assert not any(other.exists() for other in others)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--auc-below", "1.5"), "--auc-below '1.5': give a level between 0 and 1, such as 0.6"),
        (("--scrape", "9100"), "--scrape '9100': give :port or host:port"),
    ],
)
def test_a_wrong_option_is_said(tmp_path, capsys, words, said):
    ran = call(capsys, "monitoring", tmp_path / "made", *words)
    assert (ran.status, len(ran.lines)) == (2, 1)
    assert said in ran.lines[0]
    assert not (tmp_path / "made").exists()


def test_a_folder_that_cannot_be_made_is_said(tmp_path, capsys):
    (tmp_path / "made").write_text("")
    ran = call(capsys, "monitoring", tmp_path / "made")
    assert (ran.status, len(ran.lines)) == (2, 1)
    assert f"{tmp_path / 'made'} is a file; name a folder" in ran.lines[0]


def test_there_are_as_many_series_as_the_page_says_at_most(families):
    page, reasons = (
        (ROOT / "docs" / name).read_text() for name in ("how-to/prometheus.md", "reference/reasons.md")
    )
    said = re.findall(
        r"^\| `.* \| (\d+) for each of ([\d,]+) models.*, (\d+) for .* slices, and (\d+) others \|$",
        page,
        re.MULTILINE,
    )
    (a_model, models, a_slice, others), (a_model_of_job, _, a_slice_of_job, others_of_job) = (
        [int(number.replace(",", "")) for number in row] for row in reversed(said)
    )
    assert a_model == a_model_of_job == len(NEWEST_COLUMNS)
    assert a_slice == a_slice_of_job == len(SLICE_COLUMNS)
    assert models == MODELS
    phrases = re.findall(r"^\| `(?:invalid|late|unmatched|duplicate)` \|", reasons, re.MULTILINE)
    alone = {
        where: sum(
            not re.match("rocsteady_(model|slice|class)_|rocsteady_.*by_reason", name) for name in names
        )
        for where, names in families.items()
    }
    assert alone["job"] + len(phrases) <= others_of_job < alone["job"] + len(phrases) + 10
    assert alone["page"] <= others < alone["page"] + 10
