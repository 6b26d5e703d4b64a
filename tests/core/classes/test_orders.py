"""Orders that are kept current have their invariants, and give the figures of a scan of the same events."""

from __future__ import annotations

import numpy as np
import pytest
from rocsteady.core.classes.current import CurrentPairs
from rocsteady.core.classes.events import ClassEvents
from rocsteady.core.classes.figures import figures_of_window
from rocsteady.core.classes.orders import WIDTH, buckets_for
from rocsteady.core.measures.event_buffer import EventBuffer
from rocsteady.core.measures.steps import ENTERS, ROW_DUE, Steps


def check(orders, labels, scores):
    """Check the invariants of orders that hold these events."""
    np.testing.assert_array_equal(orders.counts, np.bincount(labels, minlength=len(orders.counts)))
    for c in range(len(orders.counts)):
        used = orders.used[c]
        assert used >= 1
        assert sorted(orders.at[c].tolist()) == list(range(orders.at.shape[1]))
        keys, codes = [], []
        assert orders.firsts[c, 0] == -np.inf
        assert np.isinf(orders.firsts[c, used:]).all()
        for position in range(used):
            bucket = orders.at[c, position]
            size = orders.sizes[c, bucket]
            assert size < WIDTH
            assert size > 0 or used == 1
            scores_in = orders.keys[c, bucket, :size]
            assert (scores_in >= orders.firsts[c, position]).all()
            assert (scores_in <= orders.firsts[c, position + 1]).all()
            assert np.isinf(orders.keys[c, bucket, size:]).all()
            within = np.bincount(orders.codes[c, bucket, :size], minlength=len(orders.counts))
            np.testing.assert_array_equal(orders.within[c, :, position], within)
            keys += scores_in.tolist()
            codes += orders.codes[c, bucket, :size].tolist()
        assert not orders.within[c, :, used:].any()
        assert sorted(zip(keys, codes, strict=True)) == sorted(
            zip(scores[:, c].tolist(), labels.tolist(), strict=True)
        )


@pytest.mark.parametrize("kind", ["random", "tied", "drifting", "constant", "sorted", "jumping"])
@pytest.mark.parametrize("size", [1, 5, 700])
def test_orders_have_the_events_of_the_window_and_its_pairs(kind, size):
    rng = np.random.default_rng(size)
    events, classes = 6 * size + 50, 3
    labels = rng.integers(0, classes, events)
    scores = rng.normal(size=(events, classes)) + (labels[:, np.newaxis] == np.arange(classes))
    if kind == "tied":
        scores = np.round(scores)
    elif kind == "drifting":
        scores += np.arange(events)[:, np.newaxis] / size
    elif kind == "constant":
        scores[:] = 1.0
    elif kind == "sorted":
        scores = np.sort(scores, axis=0)[::-1].copy()
    elif kind == "jumping":
        scores[events // 3 :] *= 1e-3
        scores[2 * events // 3 :, 0] = np.nextafter(0, 1)
    buffer = EventBuffer(ClassEvents(labels[:0], scores[:0]))
    current = CurrentPairs(classes, buffer)
    for start in range(0, events, size // 3 + 7):
        part = ClassEvents(labels, scores).part(slice(start, start + size // 3 + 7))
        leaving = np.zeros(part.size, np.int64)
        leaving[max(0, size - len(buffer)) :] = 1
        flags = np.full(part.size, ENTERS, np.int8)
        flags[-1] |= ROW_DUE
        lines = current.follow(part, Steps(np.arange(part.size), flags, leaving, np.zeros(0, np.int64)))
        held = buffer.events()
        assert held.size <= size
        check(current._orders, held.labels, held.scores)
        found = figures_of_window(held.labels, held.scores)
        if found is None:
            assert np.isnan(lines[-1, 0])
        else:
            assert tuple(lines[-1, :3]) == (found.values.macro, found.values.weighted, found.values.m)
        assert (current._orders.used <= buckets_for(held.size) + 1).all()


@pytest.mark.parametrize("size", [2, 400])
def test_an_event_may_leave_from_any_place(size):
    rng = np.random.default_rng(size)
    labels, scores = rng.integers(0, 3, size), np.round(rng.normal(size=(size, 3)), 1)
    buffer = EventBuffer(ClassEvents(labels[:0], scores[:0]))
    buffer.add(ClassEvents(labels, scores))
    current = CurrentPairs(3, buffer)
    for held in range(size - 1, -1, -1):
        place = (0, held, int(rng.integers(0, held + 1)))[held % 3]
        labels, scores = np.delete(labels, place), np.delete(scores, place, axis=0)
        line = current.take_out(place)
        np.testing.assert_array_equal(line, current.now())
        np.testing.assert_array_equal(buffer.events().labels, labels)
        np.testing.assert_array_equal(buffer.events().scores, scores)
        check(current._orders, labels, scores)
        found = figures_of_window(labels, scores)
        if found is None:
            assert np.isnan(line[0])
        else:
            assert tuple(line[:3]) == (found.values.macro, found.values.weighted, found.values.m)
