"""`rocsteady monitoring`: writes the files for Prometheus and Grafana into a folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ...core.errors import InputError
from ...core.process.console import say
from ..arguments import address_of, level
from .dashboard import dashboard
from .prometheus_settings import settings_text
from .rules import rules_text

SETTINGS, RULES, DASHBOARD = "prometheus.yml", "rules.yml", "dashboard.json"


def monitoring_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    auc_below = level(f"--auc-below {options.auc_below!r}", options.auc_below, "0.6")
    jobs = _addresses("--scrape", options.scrape)
    task_managers = _addresses("--scrape-flink", options.scrape_flink)
    if not jobs and not task_managers:
        jobs = _addresses("--scrape", [":9100"])
    folder = Path(options.folder)
    texts = {
        SETTINGS: settings_text(jobs, task_managers, RULES),
        RULES: rules_text(auc_below),
        DASHBOARD: dashboard(auc_below) + "\n",
    }
    _refuse_changed(folder, texts)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    say(f"{folder} has {SETTINGS}, {RULES} and {DASHBOARD}")
    return 0


def _addresses(option: str, texts: Sequence[str]) -> list[str]:
    """Return addresses in the form that Prometheus reads."""
    found = (address_of(option, text) for text in texts)
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in found]


def _refuse_changed(folder: Path, texts: dict[str, str]) -> None:
    """Raise InputError for an existing file with another text: perhaps somebody has edited the file."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder")
    for name, text in texts.items():
        path = folder / name
        if path.exists() and path.read_bytes() != text.encode():
            raise InputError(
                f"{path} is there and says something else; name another folder, or remove the file"
            )
