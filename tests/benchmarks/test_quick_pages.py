"""Short benchmarks still run, and write their pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("core", 6),
        ("weighted", 3),
        ("windows", 4),
        ("hot_model", 1),
        ("many_models", 5),
        ("drift", 8),
        ("classes", 2),
        ("class_intervals", 2),
    ],
)
def test_a_quick_run_writes_the_page(tmp_path: Path, name: str, tables: int) -> None:
    page = tmp_path / "page.md"
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--output", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    text = page.read_text()
    assert re.match(r"# .+\n\nMade ", text)
    assert len(re.findall(r"^\| ---", text, re.MULTILINE)) == tables
    assert not re.search(r"\bnan\b", text)
