"""A Chromium that is on the machine, driven by Playwright; a page that may load nothing and must not err.

Where either is missing, tests skip with the reason; with ROCSTEADY_REQUIRE_BROWSER=1 they fail.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.requirements import lacking

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
    browser = playwright.chromium.launch(executable_path=chromium_path(), args=ARGUMENTS, **options)
    try:
        yield browser
    finally:
        browser.close()


@contextmanager
def opened(browser, path, *, fragment="", width=1280, height=900, ready=True, before="", **options):
    """Open a file in a window of its own; at the end nothing was requested, nothing erred, nothing popped up.

    `before` is run in the page before its own code.
    """
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
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
            page.wait_for_function("document.documentElement.dataset.ready === '1'", timeout=60_000)
        yield page
        page.wait_for_timeout(50)
        assert said == []
        assert [url for url in requested if not _same(url, address)] == []
    finally:
        context.close()


def _same(url, address):
    return url.partition("#")[0] == address
