"""Prism as it was compiled runs a stateful job."""

from __future__ import annotations

from counting_job import SUMS, sum_pairs
from requirements import servers
from rocsteady.runners.servers.packages import prism_path


def test_prism_runs_a_stateful_job(tmp_path):
    servers("prism")
    options = ["--runner=PrismRunner", f"--prism_location={prism_path()}", "--environment_type=LOOPBACK"]
    assert sum_pairs(options, tmp_path / "sums") == SUMS
