"""Logs do not flood: of like lines one passes in a while, and tells how many did not."""

from __future__ import annotations

import logging

import pytest
from rocsteady.core.process.console import RareLog


@pytest.fixture
def log(caplog):
    """A logger, and a clock that stands until it is set."""
    now = [0.0]
    logger = logging.getLogger("rocsteady.test_rare_log")
    rare = RareLog(60, clock=lambda: now[0])
    logger.addFilter(rare)
    yield logger, now, lambda: [record.getMessage() for record in caplog.records]
    logger.removeFilter(rare)


def test_one_of_a_kind_passes_and_the_next_counts_the_others(log):
    logger, now, said = log
    for element in range(1_000):
        logger.warning("element %d is odd", element)
    logger.warning("another thing")
    assert said() == ["element 0 is odd", "another thing"]
    now[0] = 60.0
    logger.warning("element %d is odd", 7)
    logger.warning("element %d is odd", 8)
    assert said()[2:] == ["element 7 is odd (and 999 more such lines)"]
    now[0] = 121.0
    logger.warning("another thing")
    assert said()[3:] == ["another thing"]


def test_levels_are_kinds_of_their_own(log):
    logger, _, said = log
    logger.warning("odd")
    logger.error("odd")
    assert said() == ["odd", "odd"]
