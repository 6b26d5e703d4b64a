"""A process says once that it waits for kernels, and not where the waiting is short."""

from __future__ import annotations

import time

import pytest
from rocsteady.core.kernels import announcement
from rocsteady.core.kernels.announcement import Announcement


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is on stderr, once there is something: another thread writes it. "" after a minute."""
    for _ in range(60_000):
        if text := capsys.readouterr().err:
            return text
        time.sleep(0.001)
    return ""


def test_a_long_wait_is_told_before_it_ends_and_once(capsys):
    waiting = Announcement(silent_seconds=0.0)
    with waiting:
        assert waiting.is_waiting
        assert "rocsteady: compiling the kernels" in said(capsys)
        with waiting:  # for a kernel that the first one calls
            pass
        assert waiting.is_waiting
    with waiting:
        pass
    assert not waiting.is_waiting
    assert capsys.readouterr().err == ""


def test_short_waits_are_added_up(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(announcement.time, "monotonic", lambda: now)
    waiting = Announcement(silent_seconds=60.0)  # more than this test takes: its clock is the one above
    for _ in range(3):
        with waiting:
            now += 15.0
        now += 1000.0
    assert capsys.readouterr().err == ""
    with waiting:
        now += 15.0
    monkeypatch.undo()
    with waiting:
        assert "compiling the kernels" in said(capsys)


def test_nothing_is_said_after_a_wait(capsys):
    waiting = Announcement(silent_seconds=3600.0)
    with waiting:
        pass
    waiting._say()  # an alarm that rings as it is switched off
    assert capsys.readouterr().err == ""
