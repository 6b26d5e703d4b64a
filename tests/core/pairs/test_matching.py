"""A matcher of whole batches finds what one finds that takes event after event: instances, order, state."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.encoding.fields import Reader
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.pairs.matching import Matcher
from rocsteady.core.settings.against import Against

from tests.support.oracles import pair_matcher
from tests.support.thorough import examples

PLAIN = ["champion", "a", "b", "c"]
COLUMNS = ["a", "b", "champion", "x/a", "x/champion", "x/b", "y/b", "y/champion"]
"""Two names of a column without a stem, and models of three stems."""


def instances(found):
    """The instances of columns, in the form of the slow matcher's: without the champion, NaN as None."""
    texts = [column.to_list() for column in found.slices]
    slices = [tuple(text or "" for text in each) for each in zip(*texts, strict=True)] or [()] * len(found)
    pairs = found.pairs
    columns = pairs.labels, pairs.scores, pairs.against, pairs.times
    rows = zip(found.models.to_list(), *(column.tolist() for column in columns), slices, strict=True)
    return [tuple(None if value != value else value for value in row) for row in rows]


def slow_instances(found):
    rows = ((row[0], *row[2:]) for row in found)
    return [tuple(None if value != value else value for value in row) for row in rows]


def state_of(matcher):
    """What a state means: events that wait, in their order, with ranks for their numbers; models; time."""
    waiting = [((*key, None), held) for key, held in matcher._champions.items()]
    waiting += [
        ((*key, model), held) for key, models in matcher._waiting.items() for model, held in models.items()
    ]
    numbers = sorted({held.number for _, held in waiting if held.number})
    ranks = {0: 0} | {number: rank for rank, number in enumerate(numbers, 1)}
    models = {stem: [*known] for stem, known in matcher._models.items() if known}
    held = [(place, tuple(held.event), ranks[held.number], [*held.met]) for place, held in waiting]
    return held, models, matcher._greatest


def again(matcher, kind):
    """The matcher of a snapshot; a snapshot of either matcher is one of the other."""
    return kind.read(Reader(b"".join(matcher.pack())), matcher.against)


def check(batches, against, restarts=(), clocks=()):
    """Feed batches to both matchers; compare all after each. Return the instances and both counters."""
    slow, fast = pair_matcher.Matcher(against), Matcher(against)
    out, counts = [], [0, 0]
    for number, batch in enumerate(batches):
        expected = slow_instances(slow.match(batch))
        assert instances(fast.match(batch)) == expected
        out += expected
        if number in clocks:
            moment = clocks[number]
            expected = slow_instances(slow.go_on_to(moment))
            assert instances(fast.go_on_to(moment)) == expected
            out += expected
        assert state_of(fast) == state_of(slow)
        assert (fast.repeated, fast.contradicted, len(fast)) == (slow.repeated, slow.contradicted, len(slow))
        if number in restarts:
            counts = [counts[0] + slow.repeated, counts[1] + slow.contradicted]
            slow, fast = again(fast, pair_matcher.Matcher), again(slow, Matcher)
            assert state_of(fast) == state_of(slow)
    expected = slow_instances(slow.finish())
    assert instances(fast.finish()) == expected
    assert state_of(fast) == state_of(slow)
    return [*out, *expected], [counts[0] + slow.repeated, counts[1] + slow.contradicted]


def batch_of(rows, *, timed=True, sources=None):
    """A batch of (model, id, label, time, slice, position)."""
    models, ids, labels, times, texts, positions = zip(*rows, strict=True) if rows else [[]] * 6
    return EventBatch(
        TextColumn.of([*models]),
        np.arange(len(rows), dtype=float) / 7,
        np.array(labels, np.int8),
        times=np.array(times, np.int64) if timed else None,
        ids=IdColumn.of([*ids]),
        slices=(("s", TextColumn.of([*texts])),),
        positions=np.array(positions, np.int64),
        sources=None if sources is None else TextColumn.of(sources),
    )


@st.composite
def streams(draw):
    """Events of few ids, in and out of order; ids and slice values are missing now and then."""
    names = draw(st.sampled_from([PLAIN, COLUMNS]))
    sorted_ = draw(st.booleans())
    ids = [None, "", *(f"i{number}" for number in range(draw(st.integers(1, 12))))]
    now, rows = draw(st.sampled_from([0, 0, 0, 2**62])), []
    for _ in range(draw(st.integers(0, 50))):
        now += draw(st.sampled_from([0, 0, 1, 2, 5]))
        at = now if sorted_ else now - draw(st.integers(0, 6))
        label = draw(st.sampled_from([1, 1, 1, 0]))
        text = draw(st.sampled_from([None, "", "u", "v"]))
        rows.append((draw(st.sampled_from(names)), draw(st.sampled_from(ids)), label, at, text, 0))
    cuts = sorted(draw(st.sets(st.integers(0, len(rows)), max_size=6)))
    within = draw(st.sampled_from([None, 0, 1, 3, 8, 2**62 - 1]))
    columns = () if names is PLAIN else ("a", "b", "champion")
    timed = draw(st.booleans())
    bounds = itertools.pairwise([0, *cuts, len(rows)])
    batches = [batch_of(rows[first:end], timed=timed) for first, end in bounds]
    restarts = draw(st.sets(st.integers(0, len(cuts))))
    clocks = draw(st.dictionaries(st.integers(0, len(cuts)), st.integers(0, 60), max_size=2)) if timed else {}
    return batches, Against("champion", columns, within=within), restarts, clocks


@settings(deadline=None, max_examples=examples(400))
@given(streams())
def test_batches_by_id_give_what_event_after_event_gives(stream):
    check(*stream)


def test_a_late_event_at_the_end_of_a_batch_waits_for_the_next_event():
    rows = [("a", "i", 1, 9, "u", 0), ("champion", "j", 1, 2, "u", 0)]
    check([batch_of(rows), batch_of([("a", "j", 1, 3, "u", 0)])], Against("champion", within=1))
    check([batch_of(rows), batch_of([("a", "j", 1, 3, "u", 0)])], Against("champion", within=1), {0})


def test_a_model_that_comes_as_a_champion_is_given_up_is_not_compared_with_it():
    rows = [("champion", "i", 1, 0, "u", 0), ("a", "j", 1, 5, "u", 0), ("champion", "k", 1, 9, "u", 0)]
    found, _ = check([batch_of(rows)], Against("champion", within=1))
    assert [(row[0], row[2] is None) for row in found] == [("a", False), ("a", True)]


@settings(deadline=None, max_examples=examples(150))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(COLUMNS), st.just("i"), st.integers(0, 1), st.integers(0, 5),
            st.sampled_from([None, "", "u", "v"]), st.integers(0, 6),
        ),
        max_size=30,
    ),
    st.integers(0, 30),
    st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_batches_by_record_give_what_event_after_event_gives(rows, cut, in_order, several):
    if in_order:
        rows = sorted(rows, key=lambda row: row[-1])
    batches = [
        batch_of(part, sources=[f"file {row[2]}" for row in part] if several else None)
        for part in (rows[:cut], rows[cut:])
    ]
    check(batches, Against("champion", ("a", "b", "champion"), by_record=True), {0})


@pytest.mark.parametrize("names", [PLAIN, COLUMNS])
@pytest.mark.parametrize("within", [0, 40, 3_000, None])
def test_long_streams_by_id_give_what_event_after_event_gives(names, within):
    """Most events are matched in columns here, with some of each other kind among them."""
    rng = np.random.default_rng(within)
    rows = []
    for number in range(1_500):
        for name in names:
            if rng.random() < 0.8:
                lag = int(rng.integers(0, 30)) if rng.random() < 0.1 else 0
                label = int(rng.random() < 0.02) ^ (number % 2)
                id_ = None if rng.random() < 0.02 else f"i{number}"
                rows.append((name, id_, label, 2 * number + lag, "uvw"[number % 3], 0))
                if rng.random() < 0.02:
                    rows.append(rows[-1])
    rows.sort(key=lambda row: row[3])
    cuts = np.sort(rng.integers(0, len(rows), 5)).tolist()
    batches = [batch_of(rows[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    columns = () if names is PLAIN else ("a", "b", "champion")
    found, (repeated, contradicted) = check(batches, Against("champion", columns, within=within), {1, 3})
    assert min(repeated, contradicted) > 10
    assert sum(None not in row for row in found) > 1_000
    assert sum(None in row for row in found) > 300
