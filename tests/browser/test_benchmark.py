"""The benchmark of a large report still runs, and writes its page."""

from __future__ import annotations

import subprocess
import sys

import pytest
from benchmark_path import ROOT
from browser import chromium_path


@pytest.mark.slow
@pytest.mark.usefixtures("browser")
def test_a_quick_run_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCSTEADY_CHROMIUM", chromium_path())
    page = tmp_path / "page.md"
    command = [sys.executable, "-m", "benchmarks.report", "--quick", "--output", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| 50", "| 100"]
