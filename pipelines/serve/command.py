"""`rocsteady serve`: follows rows, and serves a page about them that goes on as they come."""

from __future__ import annotations

import argparse
import threading
import time

from ...core.errors import ConfigError
from ...core.process.console import say
from ...core.verdicts.choice import reference_of
from ...transforms.tables.followed import check_followed, follow_tables
from ..arguments import checked_number, whole_number
from ..outputs import is_text
from ..report.command import confidence_of
from ..report.facts import TITLE
from ..stopping import StopOnSignal
from .guard import token_of
from .keeper import Keeper
from .pages import Look
from .reading import Source
from .server import check_packages, serving

LEAST_ROWS = 1_000

_LOOK_SECONDS = 0.2


def serve_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options; it ends at a signal."""
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
    stop = threading.Event()
    asked = [(options.source, "rows"), *((path, what) for what in followed for path in tables[what])]
    for path, _ in asked:
        check_followed(path, options.kafka_option)
    sources = [
        Source(path, what, follow_tables(path, what, options.kafka_option, stop)) for path, what in asked
    ]
    keeper = Keeper(look, most)
    with StopOnSignal() as signals, serving(keeper, "--host", options.host, port, token) as address:
        say(f"{address} shows {options.source} as it grows; Ctrl-C ends it")
        keeper.start(sources)
        try:
            while not signals.is_asked("the server ends"):
                time.sleep(_LOOK_SECONDS)
        finally:
            stop.set()
            keeper.stop()
    return 0
