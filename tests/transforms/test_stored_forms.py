"""Stored bytes of every version are read and mean what they meant; today's code writes the newest corpus."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.support.stored import corpus
from tests.support.stored.readers import FORMS, PACKAGE, in_the_package

CORPORA = {path.name: corpus.read(path) for path in corpus.files()}
NEWEST = CORPORA[corpus.NEWEST.name]
MOST_BYTES = 100_000
ANEW = "python -m tests.support.stored.corpus writes it anew"


def modules_that_assign(name: str) -> Iterator[str]:
    """Yield the modules of the package that assign a name, as paths with dots."""
    assigned = re.compile(rf"^(?:\w+, )*{name}(?:, \w+)* = ", re.MULTILINE)
    for folder in ("core", "transforms", "pipelines"):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            if assigned.search(path.read_text("utf-8")):
                yield ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def values_of(name: str) -> dict[str, Any]:
    """Return the values of a name by the modules that assign it."""
    return {each: getattr(import_module(f"rocsteady.{each}"), name) for each in modules_that_assign(name)}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("file", CORPORA)
def test_stored_bytes_say_what_they_said(file: str, name: str) -> None:
    if name not in CORPORA[file]:
        pytest.skip(f"{name} came after {file}")
    stored = CORPORA[file][name]
    assert len(stored.samples) == len(stored.says) > 0
    for sample, then in zip(stored.samples, stored.says, strict=True):
        assert corpus.agrees(then, corpus.said(name, FORMS[name].read(sample)))


@pytest.mark.parametrize("name", FORMS)
def test_what_the_newest_corpus_holds_is_written_today(name: str) -> None:
    stored = NEWEST[name]
    for sample in stored.samples:
        again = corpus.rewritten(name, FORMS[name].read(sample))
        assert again in (sample, None), ANEW
    samples = FORMS[name].samples()
    says = [corpus.said(name, FORMS[name].read(sample)) for sample in samples]
    assert corpus.agrees(stored.says, says), ANEW
    assert corpus.agrees(says, stored.says), ANEW


def test_every_reader_and_every_version_has_bytes_in_the_newest_corpus() -> None:
    assert NEWEST.keys() == FORMS.keys(), ANEW
    assert set().union(*CORPORA.values()) == FORMS.keys()
    readers = {name.partition(":")[0] for name in in_the_package()}
    assert OF_OTHER_MODULES.keys() | readers >= set(modules_that_assign("VERSION"))
    assert {name.partition(":")[0] for name in OF_OTHER_MODULES.values()} <= readers
    assert corpus.NEWEST.stat().st_size < MOST_BYTES


OF_OTHER_MODULES = {"core.events.wire": "core.events.batch:EventBatch.unpack"}
"""Modules with a version whose readers are in another module."""


def test_every_version_is_1_before_the_first_release() -> None:
    versions = values_of("VERSION")
    assert len(versions) > 20
    if not corpus.released(corpus.CHANGELOG.read_text("utf-8")):
        assert set(versions.values()) == {1}, versions


def test_no_two_forms_begin_alike() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (PACKAGE / "core").rglob("*.py"))
    assigned = re.findall(r'^ *\w+(?:, \w+)* = (.*b"RS.*)', text, re.MULTILINE)
    magics = [each for line in assigned for each in re.findall('"(RS..)"', line)]
    assert len(magics) > 20
    assert len(set(magics)) == len(magics), sorted(magics)


def test_a_released_corpus_stays() -> None:
    before = corpus.NEWEST.read_bytes()
    dated = corpus.released(f"# Log\n\n## 9.0.0 (unreleased)\n\n## {corpus.__version__} (2026-12-24)\n")
    assert dated == [corpus.__version__]
    with pytest.raises(SystemExit, match=r"is released: corpus-.*\.json stays"):
        corpus.write(dated)
    assert corpus.NEWEST.read_bytes() == before


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True), ({"a": 1}, {"b": 2}, False), ([1, 2], [1, 2, 3], False),
        ([0.1], [0.1 + 1e-12], True), ([0.1], [0.1 + 1e-6], False), ({"a": [1]}, {"a": [2]}, False),
        ("nan", 0.5, False), (1, True, True),
    ],
)  # fmt: skip
def test_fields_may_be_added_and_nothing_else(then: Any, now: Any, same: bool) -> None:
    assert corpus.agrees(then, now) is same
