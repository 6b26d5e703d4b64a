"""`rocsteady serve`: follows rows, and serves a page about them that changes as they come."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...core.errors import ConfigError
from ...core.process.console import say
from ...core.verdicts.choice import reference_of
from ...transforms.tables.followed import check_followed, follow_tables
from ..arguments import checked_number, whole_number
from ..monitoring.otlp import sent
from ..outputs import is_text
from ..report.command import confidence_of
from ..report.facts import TITLE
from ..stopping import StopOnSignal
from .gauges import page_series
from .guard import token_of
from .keeper import Keeper
from .pages import Look
from .reading import Source
from .server import check_packages, serving

LEAST_ROWS = 1_000

_LOOK_SECONDS = 0.2


def serve_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options; the command ends at a signal."""
    check_packages("rocsteady serve")
    if not is_text(options.title or ""):
        raise ConfigError(f"--title {options.title!a} is not UTF-8; give another")
    port = checked_number(
        f"--port {options.port!r}", options.port, int, lambda port: 0 <= port < 65_536, "a port, 0 to 65535"
    )
    token = token_of("--token", options.token, options.host)
    most = whole_number("--rows-held", options.rows_held, LEAST_ROWS)
    confidence, _ = confidence_of(options.confidence, [])
    tables = {
        "alerts": options.alerts,
        "roll-ups": options.roll_ups,
        "pairs": options.pairs,
        "curves": options.curves,
    }
    followed = tuple(what for what, places in tables.items() if places)
    look = Look(options.title or TITLE, confidence, reference_of(options.reference), followed)
    asked = [(options.source, "rows"), *((path, what) for what in followed for path in tables[what])]
    for path, _ in asked:
        check_followed(path, options.kafka_option)
    keeper = Keeper(look, most)
    with (
        StopOnSignal() as signals,
        serving(keeper, "--host", options.host, port, token) as address,
        sent(options.otlp, page_series(keeper)),
    ):
        say(f"{address} shows {options.source} as it grows; Ctrl-C ends it")
        with following(keeper, asked, options.kafka_option):
            until_signal(signals)
    return 0


@contextmanager
def following(keeper: Keeper, asked: Sequence[tuple[str, str]], kafka: Sequence[str] = ()) -> Iterator[None]:
    """Let a keeper follow sources while the block runs.

    asked  (path, kind of its records, such as "rows") of each source
    kafka  librdkafka's options for topics
    """
    stop = threading.Event()
    keeper.start([Source(path, what, follow_tables(path, what, kafka, stop)) for path, what in asked])
    try:
        yield
    finally:
        stop.set()
        keeper.stop()


def until_signal(signals: StopOnSignal) -> None:
    """Wait until a signal asks the process to stop."""
    while not signals.is_asked("the server ends"):
        time.sleep(_LOOK_SECONDS)
