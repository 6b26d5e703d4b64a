"""A Sphinx extension: the first use of each glossary term on a page is a link to the glossary.

The terms are the headings of the third level of docs/glossary.md. Below a heading, `<!-- also: A, B -->`
lists other spellings, and `<!-- no links -->` marks a word that is too common to become a link.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

GLOSSARY = "glossary"
"""The name of the glossary's page."""

_TERM = re.compile(r"^### (.+)\n((?:<!-- .+ -->\n)*)", re.MULTILINE)
_OTHERS = re.compile(r"<!-- also: (.+) -->")
_UNLINKED = "<!-- no links -->"
_NOT_PROSE = (
    nodes.reference, nodes.title, nodes.rubric, nodes.term, nodes.Invisible, nodes.FixedTextElement,
    nodes.literal, nodes.raw, addnodes.desc_signature,
)  # fmt: skip
"""Text in these elements never becomes a link."""


@dataclass(frozen=True)
class Term:
    """A term of the glossary: its heading, all its spellings, and whether pages link it."""

    name: str
    spellings: tuple[str, ...]
    linked: bool

    @property
    def anchor(self) -> str:
        """The fragment of the term's address on the glossary's page."""
        return str(nodes.make_id(self.name))


def terms_of(glossary: str) -> list[Term]:
    """Return the terms that a glossary's text defines, in its order."""
    terms = []
    for name, comments in _TERM.findall(glossary):
        others = [spelling for found in _OTHERS.findall(comments) for spelling in found.split(", ")]
        terms.append(Term(name, (name, *others), _UNLINKED not in comments))
    return terms


class Finder:
    """Finds linked terms in text: whole words, their plurals in s, the longest spelling first.

    Spellings are found in any case. One that has a word with two capitals, such as AUC, is found as it is.
    """

    def __init__(self, terms: list[Term]) -> None:
        self._terms = {_key(spelling): term for term in terms if term.linked for spelling in term.spellings}
        longest_first = sorted(self._terms, key=len, reverse=True)
        words = "|".join(re.escape(spelling).replace(r"\ ", r"\s+") for spelling in longest_first)
        self._use = re.compile(rf"(?<![\w-])({words})(?:s|es)?(?![\w-])", re.IGNORECASE)

    def find(self, text: str) -> list[tuple[int, int, Term]]:
        """Return begin, end and term of each use in a text, in order."""
        found = []
        for use in self._use.finditer(text):
            spelling = " ".join(use[1].split())
            term = self._terms.get(spelling) or self._terms.get(spelling.lower())
            if term is not None:
                found.append((use.start(), use.end(), term))
        return found


def _key(spelling: str) -> str:
    """Return a spelling in lower case, or as it is if one of its words has two capitals."""
    abbreviated = any(sum(map(str.isupper, word)) > 1 for word in spelling.split())
    return spelling if abbreviated else spelling.lower()


class LinkTerms(SphinxPostTransform):
    """Makes the first use of each term on a page a link."""

    default_priority = 900
    """After Sphinx has resolved its own references: their text is a link already."""

    def run(self, **_: Any) -> None:
        """Link the terms of the document. Sphinx calls this for each page that it writes."""
        page = self.env.current_document.docname
        if page == GLOSSARY:
            return
        finder = Finder(terms_of(_source(self.app).read_text("utf-8")))
        address = self.app.builder.get_relative_uri(page, GLOSSARY)
        linked: set[str] = set()
        _join_lines(self.document)
        for text in list(self.document.findall(nodes.Text)):
            parts: list[nodes.Node] = []
            end = 0
            for begin, until, term in finder.find(text) if _is_prose(text) else ():
                if term.name not in linked:
                    linked.add(term.name)
                    target = f"{address}#{term.anchor}"
                    link = nodes.reference("", text[begin:until], internal=True, refuri=target)
                    parts += [nodes.Text(text[end:begin]), link]
                    end = until
            if parts:
                text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def _join_lines(document: nodes.document) -> None:
    """Join texts that follow each other: a term may begin in one line of Markdown and end in the next."""
    for paragraph in list(document.findall(nodes.TextElement)):
        children: list[nodes.Node] = []
        for child in paragraph.children:
            if isinstance(child, nodes.Text) and children and isinstance(children[-1], nodes.Text):
                children[-1] = nodes.Text(children[-1] + child)
            else:
                children.append(child)
        if len(children) < len(paragraph.children):
            paragraph.children = []
            paragraph.extend(children)


def _is_prose(text: nodes.Text) -> bool:
    element = text.parent
    while element is not None:
        if isinstance(element, _NOT_PROSE):
            return False
        element = element.parent
    return True


def note_glossary(app: Sphinx, _: nodes.document) -> None:
    """Make every page depend on the glossary: a new term may be used on any of them."""
    app.env.note_dependency(str(_source(app)))


def _source(app: Sphinx) -> Path:
    return Path(app.srcdir) / f"{GLOSSARY}.md"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension. Sphinx calls this for each name in `extensions`."""
    app.connect("doctree-read", note_glossary)
    app.add_post_transform(LinkTerms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
