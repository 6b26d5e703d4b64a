"""Apache Beam imported after rocsteady: no remark, the user's log as it was, with and without docstrings.

And what a short command imports, and what not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.command import COMMAND

SCRIPT = """
import logging
import rocsteady as rs
rs.EvaluateModels
assert logging.getLogger().handlers == [] and logging.getLogger().filters == []
import apache_beam, apache_beam.io.textio, pandas
logging.basicConfig(format="mine: %(message)s")
logging.warning("apitools not found")
"""

OF_SOME_JOBS = (
    "jinja2", "plotly", "river", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special",
    "scipy.stats", "sklearn",
    "rocsteady.core.compare", "rocsteady.core.evaluator.weighted", "rocsteady.core.join.join",
    "rocsteady.core.sketches",
    "rocsteady.core.weighted_tree", "rocsteady.pipelines.evaluate.live", "rocsteady.pipelines.report",
    "rocsteady.transforms.evaluate.alert", "rocsteady.transforms.evaluate.join_labels",
    "rocsteady.transforms.evaluate.roll_up",
)  # fmt: skip
"""What takes long to import, and serves jobs with other options."""

EVALUATE = f"""
import gc, sys
from rocsteady.pipelines.cli import main
sys.argv[1:] = ["evaluate", "one.csv", "--output", "rows.jsonl"]
assert main() == 0
needless = {{*{OF_SOME_JOBS!r}}} & {{*sys.modules}}
assert not needless, needless
assert gc.isenabled() and gc.get_freeze_count() > 100_000
"""


@pytest.mark.parametrize("optimized", ["", pytest.param("2", marks=pytest.mark.slow)])
def test_a_script_hears_nothing_of_beam_and_its_own_log_is_as_it_sets_it(optimized):
    environment = {**os.environ, "PYTHONOPTIMIZE": optimized}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "mine: apitools not found\n")


def test_a_job_of_one_event_imports_nothing_that_serves_other_jobs(tmp_path):
    """Without the compiler: numba itself imports `scipy.linalg` when it compiles."""
    (tmp_path / "one.csv").write_text("model,score,label\na,0.5,1\n")
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    words = [sys.executable, "-c", EVALUATE]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_command_writes_the_same_rows_without_docstrings(tmp_path):
    (tmp_path / "s.csv").write_text("score,label\n" + "0.1,0\n0.9,1\n0.4,0\n0.8,1\n" * 5)
    written = {}
    for level in ("", "2"):
        environment = {**os.environ, "PYTHONOPTIMIZE": level, "NUMBA_DISABLE_JIT": "1"}
        words = ["evaluate", "s.csv", "--shards", "2", "--output", f"rows{level}.csv"]
        done = subprocess.run(
            [*COMMAND, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        written[level] = Path(tmp_path, f"rows{level}.csv").read_bytes()
    assert written[""] == written["2"]
