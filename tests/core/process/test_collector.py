"""Blocks in which the garbage collector does not run."""

from __future__ import annotations

import gc

import pytest
from rocsteady.core.process.collector import without_collections


@pytest.mark.parametrize("collects", [True, False])
def test_no_collection_begins_in_the_block_and_all_is_as_before_behind_it(collects):
    phases: list[str] = []
    (gc.enable if collects else gc.disable)()
    gc.callbacks.append(lambda phase, _: phases.append(phase))
    try:
        with without_collections(), without_collections():
            assert not gc.isenabled()
            kept = [[number] for number in range(10_000)]
            assert phases == []
        assert gc.isenabled() == collects
        with pytest.raises(ZeroDivisionError), without_collections():
            1 / (len(kept) - 10_000)
        assert gc.isenabled() == collects
    finally:
        gc.callbacks.pop()
        gc.enable()
