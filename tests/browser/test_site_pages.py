"""The site in a browser: navigation, search without a network, the width of a phone, dark, nothing errs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser.chromium import context_of
from tests.support.pages.site_build import built, served

pytestmark = pytest.mark.slow  # a build takes 15 s

SECTIONS = ["Tutorials", "How-to guides", "Concepts", "Reference", "Papers", "Benchmarks", "Architecture"]
WIDER_THAN_ITS_WINDOW = "document.documentElement.scrollWidth > window.innerWidth"
LIGHTNESS = """(selector) => {
    const style = getComputedStyle(document.querySelector(selector));
    const parts = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const lightness = (color) => parts(color).reduce((sum, each) => sum + each, 0);
    return [lightness(getComputedStyle(document.body).backgroundColor), lightness(style.color)];
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory)


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as address:
        yield address


@contextmanager
def window(
    browser: Any, address: str, *, width: int = 1280, height: int = 900, **options: Any
) -> Iterator[Any]:
    """A window that reaches the site alone; at the end no page has erred, and none has asked for more."""
    context = context_of(browser, viewport={"width": width, "height": height}, **options)
    elsewhere: list[str] = []
    said: list[str] = []

    def decide(route: Any) -> None:
        url = route.request.url
        if url.startswith((address, "data:")):
            route.continue_()
        else:
            elsewhere.append(url)
            route.abort()

    context.route("**/*", decide)
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    try:
        yield page
        assert said == []
        assert elsewhere == []
    finally:
        context.close()


def names(site: Path) -> list[str]:
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def test_the_sidebar_leads_to_every_section_and_each_page_to_the_next(browser: Any, address: str) -> None:
    with window(browser, address) as page:
        page.goto(f"{address}/index.html")
        sidebar = page.locator(".sidebar-tree")
        for section in SECTIONS:
            sidebar.get_by_role("link", name=section).first.click()
            page.wait_for_function(
                "(name) => document.querySelector('h1')?.innerText.startsWith(name)", arg=section
            )
        page.goto(f"{address}/tutorials/index.html")
        page.locator(".next-page").click()
        page.wait_for_url(lambda url: "/tutorials/" in url and not url.endswith("index.html"))
        page.locator(".prev-page").click()
        page.wait_for_url("**/tutorials/index.html")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("watermark", "glossary.html"),
        ("kappa-m", "concepts/kappa-m.html"),
        ("savepoint", "how-to/flink.html"),
        ("dead letter", "reference/reasons.html"),
        ("--order", "reference/"),
        ("EvaluateModels", "reference/"),
        ("ks_threshold", "reference/columns.html"),
    ],
)
def test_search_finds_a_word_and_shows_where_it_stands(
    browser: Any, address: str, asked: str, found: str
) -> None:
    with window(browser, address) as page:
        page.goto(f"{address}/index.html")
        page.locator(".sidebar-search").fill(asked)
        page.keyboard.press("Enter")
        page.locator("#search-results .search-summary", has_text="Search finished").wait_for()
        targets = page.locator("#search-results li a").evaluate_all("links => links.map(link => link.href)")
        assert any(found in target for target in targets[:10]), targets
        page.locator("#search-results li p.context").first.wait_for()


def test_search_works_from_a_folder_without_a_server(browser: Any, site: Path) -> None:
    context = context_of(browser, offline=True)
    try:
        page = context.new_page()
        page.goto((site / "search.html").as_uri() + "?q=watermark")
        page.locator("#search-results li a").first.wait_for()
    finally:
        context.close()


def test_no_page_errs_or_is_wider_than_a_phone(browser: Any, address: str, site: Path) -> None:
    with window(browser, address, width=360, height=640) as page:
        wide = []
        for name in names(site):
            page.goto(f"{address}/{name}")
            wide += [name] * page.evaluate(WIDER_THAN_ITS_WINDOW)
        assert wide == []


def test_on_a_phone_the_menu_opens_and_leads_on(browser: Any, address: str) -> None:
    with window(browser, address, width=360, height=640) as page:
        page.goto(f"{address}/index.html")
        link = page.locator(".sidebar-tree").get_by_role("link", name="Concepts").first
        assert page.evaluate("document.querySelector('.sidebar-drawer').getBoundingClientRect().right") <= 0
        page.locator(".mobile-header .nav-overlay-icon").click()
        link.click()
        page.wait_for_url("**/concepts/index.html")


def test_dark_is_taken_from_the_system_and_can_be_chosen(browser: Any, address: str) -> None:
    def is_dark(page: Any) -> bool:
        ground, ink = page.evaluate(LIGHTNESS, "article p")
        assert abs(ground - ink) > 300  # of 765: text stands out
        return bool(ground < ink)

    with window(browser, address, color_scheme="dark") as page:
        page.goto(f"{address}/concepts/streams.html")
        assert is_dark(page)
        picture = page.locator("article img").first.evaluate("each => getComputedStyle(each).backgroundColor")
        assert picture == "rgb(255, 255, 255)"  # pictures are drawn in dark ink
    with window(browser, address, color_scheme="light") as page:
        page.goto(f"{address}/concepts/streams.html")
        assert not is_dark(page)
        button = page.locator("button.theme-toggle").locator("visible=true").first
        button.click()
        for _ in range(2):  # light, dark, as the system
            if not is_dark(page):
                button.click()
        assert is_dark(page)
        page.goto(f"{address}/index.html")
        assert is_dark(page)  # the choice is kept
