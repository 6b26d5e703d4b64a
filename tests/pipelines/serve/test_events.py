"""What a browser holds that follows the events: the rows of the history, whatever is cut and begins anew."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.rows.arrow import ROW_SCHEMA
from rocsteady.pipelines.report.report_rows import report_rows
from rocsteady.pipelines.serve.app import ROWS_AT_ONCE, Events
from rocsteady.pipelines.serve.keeper import Keeper
from rocsteady.pipelines.serve.pages import Look

from tests.support.pages.report_tables import NASTY, evaluated_rows, filled
from tests.support.pages.served import Follower, numbers, parsed


@cache
def in_time():
    rows = evaluated_rows(("good", NASTY), n=2_000)
    return rows.take(pa.array(np.argsort(rows.column("seq").to_numpy(), kind="stable")))


def waiting(events):
    """The events that a browser gets now."""
    return iter(events.next, None)


class ByHand(Keeper):
    """A keeper whose publishing a test decides."""

    def give(self, table):
        self.gathered.history.add(table)

    def publish(self, *, judge):
        if judge or self.published.epoch.name != self._epoch_name():
            self.make_page()
        else:
            self.grow()

    def held(self, names):
        """The columns of all rows in the order of a page, made anew."""
        rows = report_rows(self.gathered.history.table)
        return {name: rows.columns[name] for name in names}


def same(follower, keeper):
    for name, values in keeper.held(follower.columns).items():
        assert np.array_equal(follower.columns[name], values, equal_nan=True), name


def test_a_page_that_was_open_from_the_start_has_every_row():
    keeper, follower = ByHand(Look()), Follower()
    follower.take_page(keeper.published)
    events = Events(keeper, follower.at)
    grown = 0
    for start in range(0, len(in_time()), 7):
        keeper.give(in_time().slice(start, 7))
        keeper.publish(judge=start % 3 == 0)
        for event in map(parsed, waiting(events)):
            grown += event["event"] == "rows"
            follower.take(event, keeper.published)
        same(follower, keeper)
    assert grown > 5
    assert len(follower.columns["seq"]) == len(in_time())


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_page_that_is_cut_off_at_any_event_goes_on_where_it_was(data):
    keeper, follower = ByHand(Look(), most=data.draw(st.sampled_from([60, 1_000]))), Follower()
    follower.take_page(keeper.published)
    events, last = Events(keeper, follower.at), follower.at
    at = 0
    while at < len(in_time()):
        size = data.draw(st.integers(1, 30))
        keeper.give(in_time().slice(at, size))
        at += size
        keeper.publish(judge=data.draw(st.booleans()))
        told = [*map(parsed, waiting(events))]
        for event in told[: data.draw(st.integers(0, len(told)))]:
            follower.take(event, keeper.published)
            last = event["id"]
        if data.draw(st.booleans()):
            events = Events(keeper, last)
        else:
            for event in told:  # what came twice changes nothing
                follower.take(event, keeper.published)
                last = event["id"]
    for event in map(parsed, waiting(Events(keeper, last))):
        follower.take(event, keeper.published)
    same(follower, keeper)


def test_a_page_of_a_server_that_was_started_anew_takes_the_new_page():
    first, second = ByHand(Look()), ByHand(Look())
    for keeper, size in ((first, 20), (second, 30)):
        keeper.give(in_time().slice(0, size))
        keeper.publish(judge=True)
    follower = Follower()
    follower.take_page(first.published)
    for event in map(parsed, waiting(Events(second, follower.at))):
        follower.take(event, second.published)
    same(follower, second)


@pytest.mark.parametrize("after", ["", "x", "-", "a-b-c", "a-1--5", "a-1-999999999999999999999", "é-1-²"])
def test_an_id_that_no_server_gave_gets_the_page(after):
    keeper = ByHand(Look())
    keeper.give(in_time())
    keeper.publish(judge=True)
    (event,) = map(parsed, waiting(Events(keeper, after)))
    assert event["event"] == "page"
    assert json.loads(event["data"])["epoch"] == keeper.published.epoch.name


def test_a_position_beyond_the_rows_gets_the_page():
    keeper = ByHand(Look())
    keeper.give(in_time())
    keeper.publish(judge=True)
    after = f"{keeper.published.epoch.name}-{len(in_time()) + 1}"
    (event,) = map(parsed, waiting(Events(keeper, after)))
    assert event["event"] == "page"


def test_many_rows_come_in_several_events():
    keeper, follower = ByHand(Look(), most=10**6), Follower()
    keeper.give(filled([("m", 10)]))
    keeper.publish(judge=True)
    follower.take_page(keeper.published)
    table = filled([("m", 2 * ROWS_AT_ONCE + 20)])
    keeper.give(table.slice(10))
    keeper.publish(judge=False)
    told = [*map(parsed, waiting(Events(keeper, follower.at)))]
    assert [event["event"] for event in told] == ["page", "rows", "rows", "rows"]
    for event in told:
        follower.take(event, keeper.published)
    same(follower, keeper)


def test_a_column_as_of_an_earlier_moment_is_what_it_was():
    keeper = ByHand(Look())
    keeper.give(in_time().slice(0, 40))
    keeper.publish(judge=True)
    epoch, then = keeper.published.epoch, keeper.published.position
    before = {name: epoch.column(name, then) for name in keeper.published.page.names}
    told_before = epoch.between(10, 30, keeper.published.page.names)
    for start in range(40, len(in_time()), 3):
        keeper.give(in_time().slice(start, 3))
        if keeper.published.epoch.name != keeper._epoch_name():
            break
        keeper.publish(judge=False)
    assert epoch.position > then
    assert {name: epoch.column(name, then) for name in before} == before
    assert epoch.between(10, 30, keeper.published.page.names) == told_before


def test_every_column_that_a_page_shows_is_there():
    keeper = ByHand(Look())
    keeper.give(in_time())
    keeper.publish(judge=True)
    now = keeper.published
    rows = report_rows(in_time())
    for name in now.page.names:
        found = numbers(now.epoch.column(name, now.position))
        expected = rows.reason_codes.astype(float) if name == "reason" else rows.columns[name]
        assert np.array_equal(found, expected, equal_nan=True), name


def test_rows_of_several_settings_are_several_models():
    hourly, daily = (
        in_time().set_column(
            ROW_SCHEMA.get_field_index("config"), "config", pa.array([config] * len(in_time()))
        )
        for config in ("a" * 12, "b" * 12)
    )
    keeper, follower = ByHand(Look()), Follower()
    follower.take_page(keeper.published)
    events = Events(keeper, follower.at)
    for start in range(0, len(in_time()), 20):
        for table in (hourly, daily):
            keeper.give(table.slice(start, 20))
        keeper.publish(judge=False)
        for event in map(parsed, waiting(events)):
            follower.take(event, keeper.published)
    same(follower, keeper)
    assert len(follower.counts) == 2 * len(
        {*zip(*(in_time().column(n).to_pylist() for n in ("model", "slice")), strict=True)}
    )
