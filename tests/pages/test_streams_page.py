"""What docs/concepts/streams.md says of times is true."""

from __future__ import annotations

from rocsteady.core.join.join_settings import JoinSettings


def test_what_a_joined_stream_waits_is_as_the_page_says():
    eighth, hour = JoinSettings.of("8h", 0).waking, 3_600_000_000
    assert eighth == hour + 1
    for second, lead, waits in (("first", 0, 0), ("first", "2h", 2), ("last", 0, 8), ("last", "2h", 10)):
        assert JoinSettings.of("8h", lead, second=second).runner_delay == waits * hour + eighth
