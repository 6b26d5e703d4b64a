"""A signal ends what runs, once; a step that must not be cut ends before."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from rocsteady.pipelines.stopping import Interruptible, SignalsHeld

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@contextmanager
def raising(number: signal.Signals):
    """The signal raises KeyboardInterrupt in the main thread, also where nohup lets a process ignore it."""
    before = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def held_step(number: signal.Signals, parts: list[str], *, blocked: bool) -> None:
    """Send this process a signal in the middle of a step, with the signal blocked in this thread or not."""
    with SignalsHeld() as held:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {number} if blocked else set())
        os.kill(os.getpid(), number)
        for _ in range(60_000):  # until a thread has taken the signal; an end, for a signal that is lost
            if held.signal is None:
                time.sleep(0.001)
        parts.append("after the signal")
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    parts.append("after the end")


@pytest.fixture
def another_thread():
    """A thread that blocks no signal: the system gives it what the main thread blocks."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.usefixtures("another_thread")
@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("number", ENDING)
def test_a_held_signal_has_its_effect_at_the_end(number, blocked):
    parts: list[str] = []
    with raising(number):
        with pytest.raises(KeyboardInterrupt):
            held_step(number, parts, blocked=blocked)
        assert signal.getsignal(number) is signal.default_int_handler
    assert parts == ["after the signal"]


@pytest.mark.parametrize("number", ENDING)
def test_an_interrupt_that_c_code_ignores_is_not_lost(number, capsys):
    """As where LLVM says that it has compiled a kernel."""
    at_end = []

    @ctypes.CFUNCTYPE(None)
    def called_by_c():
        os.kill(os.getpid(), number)
        time.sleep(0.001)
        at_end.append("not reached")

    def work():
        called_by_c()
        for _ in range(60_000):  # an end, for an interrupt that is lost
            time.sleep(0.001)

    with raising(number), Interruptible(ends_process=True) as interruption:
        with pytest.raises(KeyboardInterrupt):
            work()
        assert interruption.say() == 128 + number
    assert (at_end, len(capsys.readouterr().err.splitlines())) == ([], 1)
    assert sys.unraisablehook is not interruption._take_ignored


def test_nothing_happens_without_a_signal():
    with raising(signal.SIGINT), SignalsHeld() as held:
        pass
    assert held.signal is None
