"""Delivers alerts to recipients, apart from the job.

A command that does not end, or a server that does not answer, does not delay the job.

Each recipient has a queue and a thread, and is called for one alert after another, in order. A job that goes
on puts its alerts into queues of at most `most` alerts, and never waits: an alert that finds a full queue is
not delivered. At the end the job waits as long as calls succeed. After `_PATIENCE` seconds without a success,
or on an interrupt, the job gives up the calls that are left.

A failure never fails the job. It is counted, and reported on stderr: once in `_TELL_SECONDS` for each kind of
failure.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from ...core.process.console import name_text, say
from ...transforms.sinks.kinds import ALERTS
from ...transforms.sinks.table import cleaned, text_lines
from ..words import counted
from .recipients import AlertCall, CallError, Recipient

MOST_WAITING = 10_000
"""The most alerts that wait for a recipient while the job goes on: 10 MB."""

_PATIENCE = 60.0
"""A job that has ended gives up after so many seconds without a successful call."""

_PROMPT = 5.0
"""Seconds that calls may take in all, after Ctrl-C or a failure of the job."""

_TELL_SECONDS = 60.0

_LOOK_SECONDS = 0.2
"""Seconds between two checks whether to give up."""

_SILENT_SECONDS = 2.0
"""After so many seconds of waiting at the end, the command says what it waits for."""


def calls_of(alerts: pa.Table) -> Iterator[AlertCall]:
    """Yield a call for each alert of a table (ALERT_SCHEMA), in the table's order."""
    lines = b"".join(text_lines(cleaned(alerts, csv_safe=False), as_csv=False)).split(b"\n")
    identity = alerts.select([*ALERTS.identity, "state"])
    place = identity.schema.get_field_index("pane_start")
    identity = identity.set_column(place, "pane_start", identity.column(place).cast(pa.int64()))
    for body, record in zip(lines, identity.to_pylist(), strict=False):  # the last line is empty
        key = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]
        where = name_text(record["model"]) + f" [{name_text(record['slice'])}]" * bool(record["slice"])
        if record["class"] is not None:
            where += f", class {name_text(record['class'])}"
        yield AlertCall(f"{where}, row {record['row']:,}", body, key)


class _Calls:
    """The queue, the thread and the counts of one recipient."""

    def __init__(self, recipient: Recipient, most: int | None) -> None:
        self._recipient = recipient
        self._most = most
        self._waiting: deque[AlertCall] = deque()
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._running: AlertCall | None = None
        self._told: dict[str, tuple[float, int]] = {}
        self.left = self.done = self.failed = 0
        self.newest_success = time.monotonic()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def put(self, calls: Sequence[AlertCall]) -> None:
        """Add calls to the queue; calls beyond the length of the queue fail."""
        with self._changed:
            room = len(calls) if self._most is None else max(0, self._most - self.left)
            self._waiting.extend(calls[:room])
            self.left += len(calls[:room])
            self.done += len(calls[room:])
            self.failed += len(calls[room:])
            self._changed.notify_all()
        for call in calls[room:]:
            self._tell(CallError("queue", f"{self._most:,} alerts wait already"), call)

    def waiting(self) -> list[AlertCall]:
        """Return the calls that have not ended, in order."""
        with self._changed:
            return [*([] if self._running is None else [self._running]), *self._waiting]

    def wait(self, seconds: float) -> None:
        """Wait until no call is left, or until so many seconds have passed."""
        with self._changed:
            self._changed.wait_for(lambda: not self.left, seconds)

    def give_up(self) -> None:
        """End the call that is running, and let the calls that are left fail."""
        with self._changed:
            self._ended.set()
            left, self.left = self.left, 0
            self.done += left
            self.failed += left
            self._waiting.clear()
            self._changed.notify_all()
        if left:
            say(f"{self._recipient.name}: {counted(left, 'alert')} not delivered when the job ended")
        self._thread.join(1.0)  # a command is killed meanwhile; a connection is left to its daemon thread

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended.is_set())
                if self._ended.is_set():
                    return
                call = self._running = self._waiting.popleft()
            try:
                self._recipient.call(call, self._ended)
            except CallError as failure:
                self._end(call, failure)
            else:
                self._end(call, None)

    def _end(self, call: AlertCall, failure: CallError | None) -> None:
        with self._changed:
            if self._ended.is_set():  # the call was given up, and was counted at that time
                return
            self.left -= 1
            self.done += 1
            self._running = None
            if failure is None:
                self.newest_success = time.monotonic()
            else:
                self.failed += 1
            self._changed.notify_all()
        if failure is not None:
            self._tell(failure, call)

    def _tell(self, failure: CallError, call: AlertCall) -> None:
        """Print a failure, unless a failure of its kind was printed a short time ago."""
        now = time.monotonic()
        with self._changed:
            last, held = self._told.get(failure.kind, (now - _TELL_SECONDS, 0))
            is_due = now - last >= _TELL_SECONDS
            self._told[failure.kind] = (now, 0) if is_due else (last, held + 1)
        if is_due:
            more = f" (and {held:,} more such failures)" if held else ""
            say(f"{self._recipient.name}: the alert of {call.name} was not delivered: {failure}{more}")


class Delivery:
    """Calls the recipients of a job for its alerts.

    A context: at its end, the calls that are left are given up.

    most  the number of alerts that may wait for a recipient; None = any number
    """

    def __init__(self, recipients: Sequence[Recipient], most: int | None = MOST_WAITING) -> None:
        self._recipients = [_Calls(recipient, most) for recipient in recipients]

    def __enter__(self) -> Delivery:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None and issubclass(kind, Exception):  # the job failed, but its alerts are true
                self.finish(lambda: True)
        finally:
            self.give_up()

    def give_up(self) -> None:
        """End the calls that run now, and count all calls that are left as failed."""
        for calls in self._recipients:
            calls.give_up()

    def put(self, alerts: pa.Table) -> None:
        """Let each recipient be called once for each of these alerts (ALERT_SCHEMA).

        The method does not wait for the calls.
        """
        if self._recipients:
            each = {call.key: call for call in calls_of(alerts)}
            for calls in self._recipients:
                calls.put([*each.values()])

    def waiting(self) -> list[list[tuple[str, str, str]]]:
        """Return, for each recipient, the calls that have not ended, as JSON values."""
        return [
            [(name, body.decode(), key) for name, body, key in calls.waiting()] for calls in self._recipients
        ]

    def go_on_with(self, waiting: Sequence[Sequence[tuple[str, str, str]]]) -> None:
        """Make the calls that an earlier process did not end, given as `waiting` returned them."""
        for calls, left in zip(self._recipients, waiting, strict=False):
            calls.put([AlertCall(name, body.encode(), key) for name, body, key in left])

    def finish(self, is_hurried: Callable[[], bool] = lambda: False) -> None:
        """Wait until all calls are done, or are given up as the head of this module says.

        is_hurried  returns whether the job was asked to end soon
        """
        started, hurried = time.monotonic(), None
        said = False
        for calls in self._recipients:
            while calls.left:
                now = time.monotonic()
                if hurried is None and is_hurried():
                    hurried = now
                since, limit = max(started, calls.newest_success), _PATIENCE
                if hurried is not None:
                    since, limit = hurried, _PROMPT
                if now - since >= limit:
                    break
                if not said and now - started >= _SILENT_SECONDS:
                    said = True
                    say(f"{counted(calls.left, 'alert')} to be delivered; Ctrl-C leaves them out")
                calls.wait(_LOOK_SECONDS)
            calls.give_up()

    def counts(self) -> Counter[str]:
        """Return the numbers of calls that ended, and of those that failed."""
        done = sum(calls.done for calls in self._recipients)
        return Counter(alert_calls=done, alert_calls_failed=sum(calls.failed for calls in self._recipients))
