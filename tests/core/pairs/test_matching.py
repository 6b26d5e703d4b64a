"""A matcher of whole batches finds what a search of the whole stream finds: instances, order, state."""

from __future__ import annotations

import itertools
import struct

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
    """The instances of columns, in the form of the oracle's: NaN as None."""
    texts = [column.to_list() for column in found.slices]
    slices = [tuple(text or "" for text in each) for each in zip(*texts, strict=True)] or [()] * len(found)
    pairs = found.pairs
    columns = pairs.labels, pairs.scores, pairs.against, pairs.times
    rows = zip(found.models.to_list(), *(column.tolist() for column in columns), slices, strict=True)
    return [tuple(None if value != value else value for value in row) for row in rows]


def decoded(data):
    """Read a wire form as the documentation of `core.pairs.matching` describes it.

    Return the greatest time, the models, and the events that wait.
    """
    at = 0

    def numbers(form):
        nonlocal at
        start, at = at, at + struct.calcsize(f"<{form}")
        return struct.unpack_from(f"<{form}", data, start)

    def text(length="I"):
        (size,) = numbers(length)
        return numbers(f"{size}s")[0].decode()

    def texts(count):
        return tuple(text() for _ in range(count))

    (greatest,) = numbers("q")
    models = [texts(2) for _ in range(*numbers("I"))]
    events = []
    for _ in range(*numbers("I")):
        number, time, score, label, is_champion, columns = numbers("qqdb?I")
        stem, id_, model = text(), text("Q"), text()
        slices, met = texts(columns), texts(*numbers("I"))
        events.append((number, time, score, label, is_champion, stem, id_, model, slices, met))
    assert at == len(data)
    return greatest, models, events


def with_ranks(events):
    """Events that wait, with ranks in place of numbers: a matcher that was loaded has other numbers."""
    ranks = {number: rank for rank, number in enumerate(sorted({0, *(number for number, *_ in events)}))}
    return [(ranks[number], *rest) for number, *rest in events]


def restarted(matcher):
    """A matcher that was loaded from the bytes of another one, and has the same bytes."""
    data = b"".join(matcher.pack())
    reader = Reader(data)
    loaded = Matcher.read(reader, matcher.against)
    reader.end()
    assert b"".join(loaded.pack()) == data
    return loaded


def check_state(matcher, expected, before=None):
    """Compare a matcher with what the oracle says.

    before  for a matcher that was loaded, what the oracle said at the restart
    """
    data = b"".join(matcher.pack())
    greatest, models, events = decoded(data)
    assert (greatest, models) == (expected.greatest, expected.models)
    assert with_ranks(events) == with_ranks(expected.held)
    repeated, contradicted = expected.repeated, expected.contradicted
    if before is None:
        assert events == expected.held
    else:
        repeated, contradicted = repeated - before.repeated, contradicted - before.contradicted
    assert (matcher.repeated, matcher.contradicted) == (repeated, contradicted)
    assert len(matcher) == len(expected.held)
    assert len(data) / 3 - 16 <= matcher.wire_bytes <= 1.2 * len(data) + 16


def check(batches, against, restarts=(), clocks=()):
    """Feed batches to two matchers; compare both with the oracle after each batch and moment of the clock.

    restarts  the numbers of batches after which one of the two matchers is restarted
    clocks    by the number of a batch, a moment of the clock that follows the batch
    Return the instances, and how many events were repeated and contradicted.
    """
    happenings, last = [], []
    for number, batch in enumerate(batches):
        happenings += [batch, clocks[number]] if number in clocks else [batch]
        last += [len(happenings) - 1] if number in restarts else []
    *told, end = pair_matcher.told(happenings, against)
    whole, loaded, before = Matcher(against), Matcher(against), None
    for place, (happening, expected) in enumerate(zip(happenings, told, strict=True)):
        for matcher in (whole, loaded):
            is_batch = isinstance(happening, EventBatch)
            found = matcher.match(happening) if is_batch else matcher.go_on_to(happening)
            assert instances(found) == expected.found
        check_state(whole, expected)
        check_state(loaded, expected, before)
        if place in last:
            loaded, before = restarted(loaded), expected
            check_state(loaded, expected, before)
    assert instances(whole.finish()) == end.found
    assert instances(loaded.finish()) == end.found
    check_state(whole, end)
    check_state(loaded, end, before)
    return [row for each in (*told, end) for row in each.found], [end.repeated, end.contradicted]


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
    one_by_one = draw(st.sampled_from([False] * 4 + [True]))
    cuts = range(len(rows)) if one_by_one else sorted(draw(st.sets(st.integers(0, len(rows)), max_size=6)))
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
def test_batches_by_id_give_what_a_search_of_the_whole_stream_gives(stream):
    check(*stream)


def test_a_late_event_at_the_end_of_a_batch_waits_for_the_next_event():
    rows = [("a", "i", 1, 9, "u", 0), ("champion", "j", 1, 2, "u", 0)]
    check([batch_of(rows), batch_of([("a", "j", 1, 3, "u", 0)])], Against("champion", within=1))
    check([batch_of(rows), batch_of([("a", "j", 1, 3, "u", 0)])], Against("champion", within=1), {0})


def test_a_model_that_comes_as_a_champion_is_given_up_is_not_compared_with_it():
    rows = [("champion", "i", 1, 0, "u", 0), ("a", "j", 1, 5, "u", 0), ("champion", "k", 1, 9, "u", 0)]
    found, _ = check([batch_of(rows)], Against("champion", within=1))
    assert [(row.model, row.score is None) for row in found] == [("a", False), ("a", True)]


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
def test_batches_by_record_give_what_a_search_of_the_whole_stream_gives(rows, cut, in_order, several):
    if in_order:
        rows = sorted(rows, key=lambda row: row[-1])
    batches = [
        batch_of(part, sources=[f"file {row[2]}" for row in part] if several else None)
        for part in (rows[:cut], rows[cut:])
    ]
    check(batches, Against("champion", ("a", "b", "champion"), by_record=True), {0})


@pytest.mark.parametrize("names", [PLAIN, COLUMNS])
@pytest.mark.parametrize("within", [0, 40, 3_000, None])
def test_long_streams_by_id_give_what_a_search_of_the_whole_stream_gives(names, within):
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
