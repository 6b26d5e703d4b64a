"""Photograph a part of the demo's report: `python -m benchmarks.readme_picture REPORT PNG`.

The picture shows the report's first sentence and the models that rank worse. Needs Playwright, a Chromium and
Pillow (`pip install '.[browser,test]'`).
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

WIDTH, MARGIN, SCALE = 1180, 14, 1.5
LINES = 3
COLOURS = 64
"""Colours of the picture. The page has few; a palette makes the file three times smaller."""


def photograph(report: str, picture: str) -> None:
    chromium = os.environ.get("ROCSTEADY_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 3_600}, color_scheme="light", device_scale_factor=SCALE
        )
        page.goto(Path(report).resolve().as_uri())
        page.wait_for_function("document.documentElement.dataset.ready === '1'")
        page.wait_for_timeout(1_000)
        top = page.locator("#overview-title").bounding_box()
        bottom = page.locator("#overview-table tbody tr").nth(LINES - 1).bounding_box()
        assert top
        assert bottom
        clip = {
            "x": 0.0,
            "y": top["y"] - MARGIN,
            "width": float(WIDTH),
            "height": bottom["y"] + bottom["height"] - top["y"] + MARGIN,
        }
        shot = page.screenshot(clip=clip)  # type: ignore[arg-type]
        browser.close()
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS).save(picture, optimize=True)


if __name__ == "__main__":
    photograph(*sys.argv[1:3])
