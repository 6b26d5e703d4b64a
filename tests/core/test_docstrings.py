"""Every example in a docstring of the core, and of the package's face, is true."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest
import rocsteady
import rocsteady.core

MODULES = [
    "rocsteady",
    *(found.name for found in pkgutil.walk_packages(rocsteady.core.__path__, "rocsteady.core.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    failed, _ = doctest.testmod(import_module(name))
    assert failed == 0


def test_the_core_has_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = [test for name in MODULES for test in finder.find(import_module(name)) if test.examples]
    assert len(tests) >= 150
    assert sum(len(test.examples) for test in tests) >= 315
