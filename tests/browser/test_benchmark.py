"""Benchmarks with a browser still run, and write their pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.support import ROOT
from tests.support.browser.chromium import chromium_path


@pytest.mark.slow
@pytest.mark.usefixtures("browser")
def test_a_quick_run_with_large_reports_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCSTEADY_CHROMIUM", chromium_path())
    page = tmp_path / "page.md"
    command = [sys.executable, "-m", "benchmarks.report", "--quick", "--output", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| 50", "| 100"]


@pytest.mark.slow
@pytest.mark.usefixtures("browser")
def test_a_quick_run_of_a_live_job_loses_no_row_and_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCSTEADY_CHROMIUM", chromium_path())
    page, figures = tmp_path / "page.md", tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.live", "--quick", "--pace", "5000", "--folder"]
    command += ["--figures", str(figures), "--output", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(figures.read_text())
    assert found["rows"] == found["of_files"] > 0
    assert [found[name] for name in ("missing", "differing", "beyond", "on_page_differing")] == [0] * 4
    text = page.read_text()
    assert text.startswith("# A live job, measured\n\nMade ")
    assert len(re.findall(r"^\| ---", text, re.MULTILINE)) == 4
