"""CITATION.cff is of the Citation File Format 1.2.0, and names this version and the papers of docs/papers."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.support import ROOT

CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
PAPERS = sorted(path.stem for path in (ROOT / "docs" / "papers").glob("*[0-9].md"))

# Of the format's schema, what this file uses.
KEYS = {
    "abstract", "authors", "cff-version", "keywords", "license", "message", "references", "title", "type",
    "version",
}  # fmt: skip
OF_A_REFERENCE = {
    "authors", "collection-title", "doi", "end", "issue", "journal", "notes", "start", "title", "type", "url",
    "volume", "year",
}  # fmt: skip
DOI = re.compile(r"10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-\.\(\)\[\]\\]+")
"""As the format's schema has it."""


def test_it_has_what_the_format_requires_and_no_key_that_it_does_not_know() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert {"authors", "cff-version", "message", "title"} <= set(CITATION) <= KEYS
    assert CITATION["type"] == "software"
    assert all(isinstance(word, str) for word in CITATION["keywords"])


def test_it_says_of_rocsteady_what_pyproject_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for name, key in {"title": "name", "version": "version", "license": "license"}.items():
        assert CITATION[name] == project[key]
    assert CITATION["abstract"] == f"{project['description']}."
    assert CITATION["authors"] == project["authors"]


@pytest.mark.parametrize("reference", CITATION["references"], ids=lambda reference: reference["title"][:40])
def test_a_reference_has_authors_a_year_a_place_and_a_doi(reference: dict[str, Any]) -> None:
    assert {"authors", "title", "type", "year", "doi"} <= set(reference) <= OF_A_REFERENCE
    place = {"article": "journal", "conference-paper": "collection-title"}[reference["type"]]
    assert isinstance(reference[place], str)
    assert DOI.fullmatch(reference["doi"])
    for author in reference["authors"]:
        assert set(author) == {"family-names", "given-names"}
        assert all(isinstance(name, str) for name in author.values())
    for number in {"year", "volume", "issue", "start", "end"} & set(reference):
        assert type(reference[number]) is int


def test_the_references_are_the_papers_that_are_run_again() -> None:
    """A page is named after an author and the year in which the document became public."""
    found = []
    for reference in CITATION["references"]:
        names = [author["family-names"].lower() for author in reference["authors"]]
        found += [
            page
            for page in PAPERS
            if page.rstrip("0123456789") in names
            and int(page[-4:]) + 2 >= reference["year"] >= int(page[-4:])
        ]
    assert sorted(found) == PAPERS
    assert len(found) == len(CITATION["references"])
