"""A Chromium that is on the machine, driven by Playwright; a page that may load nothing and must not err.

A test waits for a state that the page says, and never for a time: on a busy machine any time is too short.
PATIENCE ends what hangs.

Where either is missing, tests skip with the reason; with ROCSTEADY_REQUIRE_BROWSER=1 they fail.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.requirements import lacking

PATIENCE = 120.0
"""Seconds after which a wait for a state of a page is given up: for what hangs, not for what is slow."""

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip


def _missing(what: str, remedy: str) -> Any:
    lacking(f"{what}: {remedy}", required_by="ROCSTEADY_REQUIRE_BROWSER")


def chromium_path() -> str:
    """The Chromium to drive: $ROCSTEADY_CHROMIUM, or what the system has."""
    asked = os.environ.get("ROCSTEADY_CHROMIUM")
    found = (
        asked or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    )
    if found is None or not Path(found).exists():
        _missing("no Chromium is on this machine", "apt-get install chromium, or set ROCSTEADY_CHROMIUM")
    return str(found)


@contextmanager
def driver():
    """Start Playwright; once in a process."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("Playwright is not installed", "pip install '.[browser]'")
    chromium_path()
    with sync_playwright() as playwright:
        yield playwright


@contextmanager
def launched(playwright, **options):
    """Start Chromium."""
    browser = playwright.chromium.launch(
        executable_path=chromium_path(), args=ARGUMENTS, timeout=PATIENCE * 1_000, **options
    )
    try:
        yield browser
    finally:
        browser.close()


def context_of(browser, **options):
    """Return a context whose waits all have our patience."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE * 1_000)
    return context


def frames(page):
    """Let the page draw two frames and do what waits behind them; what it says meanwhile has come then."""
    page.evaluate(
        """() => new Promise((done) => {
            requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
        })"""
    )


_NEAR_IS_DRAWN = """() => [...document.querySelectorAll(".plot")].every((one) => {
    const box = (one.closest("figure.small") || one.closest("section") || one).getBoundingClientRect();
    const isNear = one.checkVisibility() && box.bottom > -100 && box.top < innerHeight + 100;
    return !isNear || one.dataset.medium;
})"""


def near_is_drawn(page):
    """Wait until every chart in view, or close to it, is drawn."""
    page.wait_for_function(_NEAR_IS_DRAWN)


def brought(page, selector):
    """Bring an element into view, and wait until it is there and the charts near it are drawn."""
    page.locator(selector).first.scroll_into_view_if_needed()
    page.wait_for_function(
        f"""(selector) => {{
            const box = document.querySelector(selector).getBoundingClientRect();
            return box.bottom > 0 && box.top < innerHeight && ({_NEAR_IS_DRAWN})();
        }}""",
        arg=selector,
    )


def arrived(page, selector, within):
    """Wait until an element is so many pixels from the window's top at most, and charts near it are drawn."""
    page.wait_for_function(
        f"""([selector, within]) => {{
            const {{ top }} = document.querySelector(selector).getBoundingClientRect();
            return Math.abs(top) <= within && ({_NEAR_IS_DRAWN})();
        }}""",
        arg=[selector, within],
    )


@contextmanager
def opened(browser, path, *, fragment="", width=1280, height=900, ready=True, before="", **options):
    """Open a file in a window of its own; at the end nothing was requested, nothing erred, nothing popped up.

    `before` is run in the page before its own code.
    """
    context = context_of(browser, viewport={"width": width, "height": height}, **options)
    address = Path(path).resolve().as_uri()
    said, requested = [], []
    context.route(
        "**/*", lambda route: route.continue_() if _same(route.request.url, address) else route.abort()
    )
    page = context.new_page()
    if before:
        page.add_init_script(before)
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: requested.append(request.url))

    def dismiss(dialog):
        said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", dismiss)
    try:
        page.goto(address + fragment)
        if ready:
            page.wait_for_function("document.documentElement.dataset.ready === '1'")
        yield page
        if options.get("java_script_enabled", True):
            frames(page)  # an error of what the page was about comes before
        assert said == []
        assert [url for url in requested if not _same(url, address)] == []
    finally:
        context.close()


def _same(url, address):
    return url.partition("#")[0] == address
