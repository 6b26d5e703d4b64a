"""The first values of a slice of a model have slices of their own, the later ones share one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.settings.table import OTHER, escape_slice, parse_slice
from rocsteady.core.table.slices import SliceNumbers

from tests.support.thorough import examples

Event = tuple[str, str | None, str | None]
"""Model, carrier, origin."""

values = st.sampled_from([None, "", "UA", "DL", OTHER, "a=b,c\\", "ü", "AA", "B6"])
some_events = st.lists(st.tuples(st.sampled_from("mn"), values, values), max_size=50)
NAMES: tuple[tuple[str, ...], ...] = (
    (),
    ("carrier",),
    ("origin",),
    ("carrier", "origin"),
    ("origin", "carrier"),
)


class Maker:
    """The evaluators that were made, by name."""

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []

    def make(self, model: str, label: str) -> int:
        assert (model, label) not in self.names
        self.names.append((model, label))
        return len(self.names) - 1

    def reloaded(self, cap: int) -> SliceNumbers:
        numbers = SliceNumbers(cap)
        assert all(numbers.add(*name, number) for number, name in enumerate(self.names))
        assert not any(numbers.add(*name, 99) for name in self.names)
        return numbers


def expected_labels(events: list[Event], names: tuple[str, ...], cap: int) -> tuple[list[str], int]:
    """Return every event's slice by the definition, and how many went to that of others for the cap."""
    own: dict[str, list[tuple[str, ...]]] = {}
    labels, beyond = [], 0
    for model, carrier, origin in events:
        fields = {"carrier": carrier or "", "origin": origin or ""}
        these = tuple(fields[name] for name in names)
        known = own.setdefault(model, [])
        if names and set(these) != {OTHER} and these not in known:
            if len(known) < cap:
                known.append(these)
            else:
                these, beyond = (OTHER,) * len(names), beyond + 1
        labels.append(
            ",".join(f"{name}={escape_slice(value)}" for name, value in zip(names, these, strict=True))
        )
    return labels, beyond


@given(some_events, st.integers(1, 6), st.lists(st.integers(0, 50), max_size=5), st.booleans())
@settings(max_examples=examples(200))
def test_every_event_is_in_the_slice_that_the_definition_says(
    events: list[Event], cap: int, cuts: list[int], restarts: bool
) -> None:
    numbers, maker, beyond = SliceNumbers(cap), Maker(), 0
    found: dict[tuple[str, ...], list[str]] = {names: [] for names in NAMES}
    for a, b in pairwise([0, *sorted(cuts), 50]):
        models, *columns = (TextColumn.of([event[field] for event in events[a:b]]) for field in range(3))
        if not len(models):
            continue
        for names in NAMES:
            asked = [columns[("carrier", "origin").index(name)] for name in names]
            for number in numbers.of(models, names, asked, maker.make).tolist():
                found[names].append(maker.names[number][1])
        if restarts:
            beyond += numbers.beyond
            numbers = maker.reloaded(cap)
    expected = {names: expected_labels(events, names, cap) for names in NAMES}
    assert found == {names: labels for names, (labels, _) in expected.items()}
    assert beyond + numbers.beyond == sum(count for _, count in expected.values())


def test_a_column_of_a_hundred_thousand_values_makes_as_many_slices_as_the_cap() -> None:
    numbers, maker = SliceNumbers(100), Maker()
    for start in range(0, 100_000, 10_000):
        texts = tuple(map(str, range(start, start + 10_000)))
        models = TextColumn(np.zeros(10_000, np.int32), ("m",))
        numbers.of(models, ("user",), [TextColumn(np.arange(10_000), texts)], maker.make)
    assert len(maker.names) == 101
    assert numbers.beyond == 99_900
    assert sum(map(len, numbers._of.values())) == 101


def test_the_order_of_a_packet_decides_who_is_admitted_and_not_that_of_its_dictionary() -> None:
    column = TextColumn(np.array([2, 1, 0, 1, 2]), ("a", "b", "c"))
    maker = Maker()
    found = SliceNumbers(2).of(TextColumn(np.zeros(5, np.int32), ("m",)), ("x",), [column], maker.make)
    assert [maker.names[number][1] for number in found.tolist()] == ["x=c", "x=b", "x=other", "x=b", "x=c"]


@given(st.lists(st.tuples(st.text(min_size=1, max_size=4), st.text(max_size=4)), max_size=3))
def test_the_name_of_a_slice_is_read_as_it_was_written(pairs: list[tuple[str, str]]) -> None:
    label = ",".join(f"{escape_slice(name)}={escape_slice(value)}" for name, value in pairs)
    assert parse_slice(label) == pairs


@pytest.mark.parametrize("label", ["a", "=b", "a=b,", "a=b,c", "a=b=c", "\\", "a=\\", ",a=b"])
def test_what_is_no_name_of_a_slice_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match="is no name of a slice"):
        SliceNumbers(1).add("m", label, 0)
