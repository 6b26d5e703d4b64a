"""Beam's cache of state is told the sizes that it would find itself."""

from __future__ import annotations

import pytest
from apache_beam.runners.worker import statecache
from apache_beam.runners.worker.statecache import StateCache
from rocsteady.transforms.beam import state_sizes
from rocsteady.transforms.beam.state_sizes import measure_bytes, size_of

TWICE = b"two of one object" * 9


@pytest.mark.parametrize(
    "value",
    [[], [b""], [b"snapshot" * 1_000], [b"a", b"bc" * 50, b"a"], [TWICE, TWICE], [b"a", "b"], (b"a",), b"a"],
    ids=lambda value: f"{type(value).__name__} {str(value)[:20]}",
)
def test_sizes_are_those_of_beam(value):
    assert size_of(value) == state_sizes._of_any(value)


def test_the_cache_of_a_process_holds_as_much_as_before(monkeypatch):
    monkeypatch.setattr(statecache, "get_deep_size", state_sizes._of_any)
    used = []
    for prepare in (lambda: None, measure_bytes):
        prepare()
        cache = StateCache(1 << 20)
        for key in range(100):
            cache.put(key, [bytes(1_000 * key)])
        used.append((cache.describe_stats(), [cache.peek(key) is None for key in range(100)]))
    assert used[0] == used[1]


def test_the_cache_of_beam_measures_by_the_name_that_is_replaced():
    assert "get_deep_size" in StateCache.put.__code__.co_names
