"""The glossary defines each term in two sentences at most, and the site links each term's first use to it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from extensions.terms import Finder, terms_of

from tests.support import ROOT

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
TERMS = terms_of(GLOSSARY)
LINKED = [term for term in TERMS if term.linked]
SELDOM_KNOWN = (
    "pane", "watermark", "bridge", "placement", "dead letter", "prevalence", "kappa-m", "grid point",
)  # fmt: skip
PAGE = """# AUC in a heading

`AUC` in code, [AUC in a link](https://example.com), and then AUC twice: AUC.
Dead letters of a watermark; another dead letter, and a non-shard.

```text
pane
```

A window has a placement
value. Auc is no word.

| bridge |
|---|
| runner |
"""
CONF = f"""
import sys
sys.path.append({str(ROOT / "docs")!r})
extensions = ["myst_parser", "extensions.terms"]
smartquotes = False
"""
LINK = re.compile(r'<a class="reference internal" href="(?:\.\./)?glossary\.html#([\w-]+)">([^<]+)</a>')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of the glossary, a page in a folder, and a page that has every spelling twice."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    every = "\n\n".join(spelling for term in TERMS for spelling in term.spellings * 2)
    (source / "folder").mkdir()
    pages = {
        "conf.py": CONF,
        "index.md": "# Site\n\n```{toctree}\nglossary\nevery\nfolder/page\n```\n",
        "glossary.md": re.sub(r"\]\([^)]*\)", "](https://example.com)", GLOSSARY),
        "every.md": f"# Every spelling\n\n{every}\n",
        "folder/page.md": PAGE,
    }
    for name, text in pages.items():
        (source / name).write_text(text, "utf-8")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "-n", str(source), str(built)], check=True)
    return built


def links(page: Path) -> list[tuple[str, str]]:
    return [(anchor, " ".join(words.split())) for anchor, words in LINK.findall(page.read_text("utf-8"))]


@pytest.mark.parametrize("name", SELDOM_KNOWN)
def test_a_term_that_few_readers_know_is_defined_and_linked(name: str) -> None:
    assert [(begin, end) for begin, end, _ in Finder(TERMS).find(name)] == [(0, len(name))]


def test_terms_stand_in_the_order_of_the_alphabet() -> None:
    names = [term.name.lower() for term in TERMS]
    assert names == sorted(names)
    letters = re.findall(r"^## (.)$", GLOSSARY, re.MULTILINE)
    assert letters == sorted({name[0].upper() for name in names})


def test_no_spelling_is_of_two_terms() -> None:
    spellings = [spelling.lower() for term in TERMS for spelling in term.spellings]
    assert sorted(set(spellings)) == sorted(spellings)


def test_a_definition_has_two_sentences_at_most_and_names_the_page_that_says_more() -> None:
    entries = re.split(r"^### ", GLOSSARY, flags=re.MULTILINE)[1:]
    assert len(entries) == len(TERMS)
    for entry in entries:
        text = re.sub(r"^##? .*|<!--.*-->", "", entry.partition("\n")[2], flags=re.MULTILINE)
        definition, more, rest = " ".join(text.split()).partition(" More: ")
        sentences = re.split(r"(?<=[.)])\s+(?=[A-Z])", definition)
        assert (more, len(sentences) <= 2, definition[-1]) == (" More: ", True, "."), entry
        assert re.fullmatch(r"\[[^\]]+\]\([\w/#.-]+\)\.", rest), entry
        assert max(len(sentence.split()) for sentence in sentences) <= 30, entry


def test_the_first_use_on_a_page_is_a_link_and_the_second_is_not(site: Path) -> None:
    assert links(site / "folder" / "page.html") == [
        ("auc", "AUC"),
        ("dead-letter", "Dead letters"),
        ("watermark", "watermark"),
        ("placement-value", "placement value"),
        ("bridge", "bridge"),
        ("runner", "runner"),
    ]


def test_every_linked_term_has_one_link_by_whichever_spelling_comes_first(site: Path) -> None:
    found = links(site / "every.html")
    assert sorted(anchor for anchor, _ in found) == sorted(term.anchor for term in LINKED)
    ids = set(re.findall(r'id="([\w-]+)"', (site / "glossary.html").read_text("utf-8")))
    assert {term.anchor for term in TERMS} <= ids


def test_the_glossary_does_not_link_itself(site: Path) -> None:
    assert [
        words for _, words in links(site / "glossary.html") if words in {term.name for term in TERMS}
    ] == []
