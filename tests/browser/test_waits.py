"""No test of a browser waits for a time: on a busy machine any time is too short."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
SUPPORT = ("browser", "demo_year", "live_job", "served", "site_build", "terminal")
WAITING = [*(TESTS / "browser").rglob("*.py")]
WAITING += [path for path in (TESTS / "support").rglob("*.py") if path.stem in SUPPORT]


def fixed_waits(tree):
    """Yield the lines that wait for a time; a sleep between two looks, in a loop, is none of them."""
    looks = {id(call) for loop in ast.walk(tree) if isinstance(loop, ast.While) for call in ast.walk(loop)}
    for call in ast.walk(tree):
        name = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        if name == "wait_for_timeout" or (name == "sleep" and id(call) not in looks):
            yield call.lineno


def test_the_tests_of_a_browser_and_their_support_wait_for_states_alone():
    found = {path.name: [*fixed_waits(ast.parse(path.read_text("utf-8")))] for path in WAITING}
    assert {f"{name}.py" for name in SUPPORT} <= set(found)
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_fixed_wait_is_found_and_a_sleep_between_two_looks_is_none():
    code = """
time.sleep(1)
page.wait_for_timeout(50)
while not there():
    time.sleep(0.1)
    page.wait_for_timeout(50)
"""
    assert sorted(fixed_waits(ast.parse(code))) == [2, 3, 6]
