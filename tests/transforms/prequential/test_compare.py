"""The transform gives what its machines give, whatever order reports come in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rocsteady.core.compare.comparisons import ComparisonRow, FoldMean
from rocsteady.transforms.prequential.folds import CompareFolds
from rocsteady.transforms.sinks.comparisons import comparisons_to_arrow, means_to_arrow

from tests.support.pages.fold_reports import SETTINGS, compared, reports_of
from tests.support.processes.beam_runs import RUNNERS_AND_CACHES, InOrder, Keep, kept, pipeline

REPORTS = [report.pack() for report in reports_of(checkpoints=4, instances=60)]


@pytest.mark.slow
@pytest.mark.parametrize(("runner", "cache_bytes"), RUNNERS_AND_CACHES)
def test_rows_are_those_of_the_machines_on_every_runner(runner, cache_bytes, tmp_path: Path):
    order = np.random.default_rng(8).permutation(len(REPORTS))
    given = [REPORTS[place] for place in order] + REPORTS[:3]
    with pipeline(runner) as p:
        found = p | InOrder(given, bytes) | CompareFolds(SETTINGS, cache_bytes)
        found.comparisons | "Keep comparisons" >> Keep(tmp_path, "comparisons")
        found.means | "Keep means" >> Keep(tmp_path, "means")
    comparisons = [ComparisonRow(*row.value) for row in kept(tmp_path, "comparisons")]
    means = [FoldMean(*row.value) for row in kept(tmp_path, "means")]
    expected = compared(SETTINGS, REPORTS)
    assert sorted(map(repr, comparisons)) == sorted(map(repr, expected.comparisons))
    assert sorted(map(repr, means)) == sorted(map(repr, expected.means))
    for row in kept(tmp_path, "means"):
        assert row.time == FoldMean(*row.value).time
    assert comparisons_to_arrow(comparisons).num_rows == len(comparisons) > 0
    assert means_to_arrow(means).column("mean").null_count == 0
