"""The site builds without a warning, has every page in its navigation, and no link of it leads nowhere."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.pages.site_build import ROOT, built

pytestmark = pytest.mark.slow  # a build takes 15 s

CODE = {"code", "dt", "pre", "script", "style"}
"""Elements that show text as it is typed; `dt` has signatures."""

MADE_BY_SPHINX = {"genindex.html", "py-modindex.html", "search.html"}


class Page(HTMLParser):
    """What a page points to, the places that a link may name, and its words outside code."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.words = ""
        self._code: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses of a tag."""
        given = {name: value or "" for name, value in attrs}
        if tag in CODE:
            self._code.append(tag)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and "href" in given:
            self.loaded.append(given["href"])
        elif "src" in given:
            self.loaded.append(given["src"])

    def handle_endtag(self, tag: str) -> None:
        """Note where code ends."""
        if self._code[-1:] == [tag]:
            self._code.pop()

    def handle_data(self, data: str) -> None:
        """Note text that is no code."""
        if not self._code:
            self.words += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def inside(page: Path, address: str) -> tuple[Path, str]:
    """The file that a relative address names, and the place in it."""
    parts = urlsplit(address)
    path = Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
    return (path / "index.html" if path.is_dir() else path), unquote(parts.fragment)


def test_every_page_of_docs_is_a_page_of_the_site(site: Path, pages: dict[Path, Page]) -> None:
    written = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    made = {path.relative_to(site) for path in pages}
    assert len(written) > 50
    assert written <= made


def test_every_page_is_reached_from_the_front_page(site: Path, pages: dict[Path, Page]) -> None:
    """By the links of pages; the index and the search of Sphinx's own have a place in each page."""
    reached, left = set(), [site / "index.html"]
    while left:
        page = left.pop()
        if page in reached or page not in pages:
            continue
        reached.add(page)
        left += [inside(page, link)[0] for link in pages[page].links if not urlsplit(link).scheme]
    assert [path.name for path in pages if path not in reached and path.name not in MADE_BY_SPHINX] == []


def test_no_link_leads_nowhere(site: Path, pages: dict[Path, Page]) -> None:
    links = [
        (page, link)
        for page, found in pages.items()
        for link in found.links
        if not urlsplit(link).scheme and link != "#"
    ]
    assert len(links) > 1_000
    dead = []
    for page, link in links:
        path, place = inside(page, link)
        if not path.exists() or (place and path in pages and place not in pages[path].places):
            dead.append((page.relative_to(site).as_posix(), link))
    assert dead == []


def test_no_markup_is_left_in_the_words_of_a_page(site: Path, pages: dict[Path, Page]) -> None:
    """What is left is text that its author meant to be code, a link, a table, or bold."""
    assert [
        (page.relative_to(site).as_posix(), found[0])
        for page, parts in pages.items()
        for found in re.finditer(r".{,40}(?:`|\]\(|\*\*|\|[ -]*--|\{\w+\}| at 0x).{,40}", parts.words)
    ] == []


def test_a_page_loads_nothing_from_elsewhere(pages: dict[Path, Page]) -> None:
    assert [(page.name, address) for page, found in pages.items() for address in found.loaded
            if urlsplit(address).scheme not in ("", "data")] == []  # fmt: skip
