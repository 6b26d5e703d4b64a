"""No test of a browser waits for a time: on a busy machine any time is too short."""

from __future__ import annotations

import ast

from tests.support import ROOT

SUPPORT = (
    "browser/chromium.py", "browser/demo_year.py", "pages/served.py", "pages/site_build.py",
    "processes/live_job.py", "processes/terminal.py",
)  # fmt: skip
WAITING = [*(ROOT / "tests/browser").rglob("*.py"), *(ROOT / "tests/support" / name for name in SUPPORT)]


def fixed_waits(tree):
    """Yield the lines that wait for a time; a sleep between two looks, in a loop, is none of them."""
    looks = {id(call) for loop in ast.walk(tree) if isinstance(loop, ast.While) for call in ast.walk(loop)}
    for call in ast.walk(tree):
        name = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        if name == "wait_for_timeout" or (name == "sleep" and id(call) not in looks):
            yield call.lineno


def test_the_tests_of_a_browser_and_their_support_wait_for_states_alone():
    found = {path.name: [*fixed_waits(ast.parse(path.read_text("utf-8")))] for path in WAITING}
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
