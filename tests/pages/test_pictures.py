"""The pictures of docs/concepts are those that the code draws, and each is readable by a screen reader."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import concept_pictures, streams_pictures, window_pictures
from tests.support import ROOT

IMAGES = ROOT / "docs" / "img"
PICTURES = {**streams_pictures.PICTURES, **concept_pictures.PICTURES, **window_pictures.PICTURES}
PAGES = [
    page for page in sorted((ROOT / "docs" / "concepts").glob("*.md")) if page.stem not in ("index", "peers")
]
SHOWN = re.compile(r"!\[([^\]]+)\]\(\.\./img/([\w-]+)\.svg\)")
NAME = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_one_that_the_code_draws(name: str) -> None:
    assert (IMAGES / f"{name}.svg").read_text("utf-8") == PICTURES[name]().svg()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_a_title_and_a_description_and_keeps_its_words_inside(name: str) -> None:
    picture = ElementTree.parse(IMAGES / f"{name}.svg").getroot()
    width, height = map(float, picture.attrib["viewBox"].split()[2:])
    assert picture.findtext(f"{NAME}title")
    assert len(picture.findtext(f"{NAME}desc") or "") > 60
    for words in picture.iter(f"{NAME}text"):
        assert 0 < float(words.attrib["x"]) < width, words.text
        assert 0 < float(words.attrib["y"]) < height, words.text


def test_every_picture_is_shown_on_one_page() -> None:
    shown = [name for page in PAGES for _, name in SHOWN.findall(page.read_text("utf-8"))]
    assert set(PICTURES) <= set(shown)
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_a_picture_a_question_and_what_it_means(page: Path) -> None:
    text = page.read_text("utf-8")
    assert SHOWN.search(text)
    assert "architecture/" in text or page.stem == "streams"
    if page.stem != "streams":
        assert "**The question.**" in text
        assert "## What this means for you" in text
