"""EventBuffer holds what a list holds that follows the same steps, event by event."""

from __future__ import annotations

import numpy as np
import pytest
from rocsteady.core.classes.events import ClassEvents
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.measures.event_buffer import EventBuffer
from rocsteady.core.measures.steps import ENTERS, EVENT, ROW_DUE, Steps
from rocsteady.core.pairs.window_instances import NOTHING, PairInstances


def random_steps(rng, held, late):
    """Steps over a window that holds `held` events; some events do not enter."""
    events, flags, leaving, shifts = [], [], [], []
    for event in range(int(rng.integers(1, 40))):
        gone = int(rng.integers(0, min(held, 3) + 1))
        enters = rng.random() < 0.9
        held += enters - gone
        shift = int(rng.integers(0, held)) if enters and rng.random() < late else 0
        events.append(event)
        flags.append(EVENT | ENTERS * enters | ROW_DUE * (rng.random() < 0.3))
        leaving.append(gone)
        shifts.append(shift)
    columns = np.array(events), np.array(flags, np.int8), np.array(leaving)
    return Steps(*columns, np.array(shifts) if any(shifts) else np.zeros(0, np.int64))


@pytest.mark.parametrize("late", [0.0, 0.1, 1.0])
def test_a_buffer_holds_what_a_list_holds_at_every_row(late):
    rng = np.random.default_rng(int(10 * late))
    buffer, held, number = EventBuffer(NOTHING), [], 0
    for _ in range(60):
        steps = random_steps(rng, len(held), late)
        n, start = len(steps.flags), 7
        scores = np.arange(number, number + n) + 0.5
        times = np.arange(number, number + n) if number > 300 else None
        batch = PairInstances((np.arange(n) % 2).astype(np.int8), scores, -scores, times)
        number += n
        steps = steps._replace(events=steps.events + start)
        shifts = steps.shifts.tolist() or [0] * n
        rows = buffer.follow_to_rows(batch, steps, start)
        for step in range(n):
            del held[: steps.leaving[step]]
            if steps.flags[step] & ENTERS:
                time = NO_TIME if times is None else int(times[step])
                held.insert(len(held) - shifts[step], (float(scores[step]), time))
            if steps.flags[step] & ROW_DUE:
                assert next(rows) == step
                assert buffer.events().scores.tolist() == [score for score, _ in held]
        assert next(rows, None) is None
        events = buffer.events()
        assert (len(buffer), (-events.against).tolist()) == (len(held), [score for score, _ in held])
        if events.times is not None:
            assert events.times.tolist() == [time for _, time in held]


def test_events_have_weight_1_where_others_have_weights():
    buffer = EventBuffer(ClassEvents(np.zeros(0, np.int64), np.empty((0, 2))))
    one = ClassEvents(np.array([1]), np.array([[0.25, 0.75]]))
    buffer.add(one)
    buffer.add(one._replace(weights=np.array([3.0])))
    buffer.add(one)
    buffer.take_out(1)
    assert (buffer.events().weights.tolist(), buffer.events().scores.shape) == ([1.0, 1.0], (2, 2))
