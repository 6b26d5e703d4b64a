"""Photograph a part of the demo's report: `python -m benchmarks.readme_picture REPORT PNG`.

Needs Playwright and a Chromium (`pip install '.[browser]'`).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, MARGIN = 1180, 14


def photograph(report: str, picture: str) -> None:
    chromium = os.environ.get("ROCSTEADY_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 3_600}, color_scheme="light")
        page.goto(Path(report).resolve().as_uri())
        page.wait_for_function("document.documentElement.dataset.ready === '1'")
        page.wait_for_timeout(1_000)
        top = page.locator("#overview-title").bounding_box()
        bottom = page.locator("#overview .about-verdicts").bounding_box()
        assert top
        assert bottom
        clip = {
            "x": 0.0,
            "y": top["y"] - MARGIN,
            "width": float(WIDTH),
            "height": bottom["y"] - top["y"] + MARGIN,
        }
        page.screenshot(path=picture, clip=clip)  # type: ignore[arg-type]
        browser.close()


if __name__ == "__main__":
    photograph(*sys.argv[1:3])
