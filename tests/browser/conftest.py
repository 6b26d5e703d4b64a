"""One Playwright and one Chromium for all tests of a process."""

from __future__ import annotations

import pytest

from tests.support.browser.chromium import driver, launched


@pytest.fixture(scope="session")
def playwright():
    with driver() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright):
    with launched(playwright) as started:
        yield started
