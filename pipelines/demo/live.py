"""`rocsteady demo --live`: a page that moves. It shows the year of flights, a day a second.

The parts are those of other commands. Landings come by the clock of `rocsteady replay`. The live job of
`rocsteady evaluate --pairs --alert --checkpoint` evaluates them. It writes rows, pair rows and alerts. The
page of `rocsteady serve` follows these files. The same command continues from the job's checkpoint. After the
end of the year the page stays.
"""

from __future__ import annotations

import socket
from pathlib import Path

from pyarrow import parquet

from ...core.alerts.grammar import parse_alert
from ...core.errors import ConfigError, InputError
from ...core.pairs.pair_settings import PairSettings
from ...core.process.console import say
from ...core.rows.pairs import pair_name
from ...core.settings.against import Against
from ...core.settings.evaluator import EvaluatorSettings
from ...core.settings.table import TableSettings
from ...core.settings.windows import EverySeconds, LastDuration
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ...core.state.compile_ahead import compiled_ahead
from ...runners.presets import choose_runner
from ...transforms.events.fields import EventFields
from ...transforms.events.lateness import Timing
from ...transforms.sources.streams.stream_input import StreamInput
from ...transforms.state.checkpoints import CheckpointFolder
from ...transforms.tables.read import read_tables
from ..arguments import address_of
from ..evaluate.job import Alerts, Checkpoints, Evaluation, Streams
from ..evaluate.live.run import evaluate_live
from ..evaluate.pairs import Pairs
from ..report.alerts import Event, alerts_of
from ..serve.command import following, until_signal
from ..serve.guard import is_loopback
from ..serve.keeper import Keeper
from ..serve.pages import Look
from ..serve.server import check_packages, serving
from ..stopping import StopOnSignal
from ..words import day
from .landings import FROZEN, LEARNER, keep_landings
from .learners import train
from .played import Played
from .start import made, tell, training_line

DAY_A_SECOND = 86_400.0
"""How many seconds of event time pass in a second."""

RULE = "difference_high < 0 for 30d"
"""The rule of the alerts, on the pair of the frozen copy and the learner.

No number of the rule is fitted to the year: 0 is no difference, and 30 days are the window. A rule on the AUC
alone would also open in a month that is hard for every learner.
"""

_PAIR = pair_name(FROZEN, LEARNER)

_TITLE = "Flights of 2013: a learner, and its copy frozen on 1 February"
_FIELDS = EventFields(model="model", time="time", id="id")
_WINDOW, _EVERY = LastDuration("30d"), EverySeconds("1d")
_SETTINGS = TableSettings(EvaluatorSettings(_WINDOW, _EVERY, order="time:0s"), shards=1)
_COMPARISON = PairSettings(window=_WINDOW, every=_EVERY)
_AGAINST = Against(LEARNER, within=0)
_TIMING = Timing(lateness=_SETTINGS.evaluator.lateness)
_PORT = 8080
_CHECKPOINT_SECONDS = 1.0


def run_live(
    output: str, serve: str | None, *, anew: bool, first: int | None = None, speed: float = DAY_A_SECOND
) -> int:
    """Play the year, or the rest of it, evaluate it, and serve its page until a signal; return the status.

    output  the folder of rows, rows of the pair, alerts and checkpoints
    serve   [HOST]:PORT of the page; None = port 8080, or a free port if 8080 is taken
    anew    whether the year begins again from its start
    first   limits the year to the first departures
    speed   seconds of event time in a second
    """
    check_packages("rocsteady demo --live", "demo,serve")
    if not output:
        raise InputError("--output '': name a folder")
    host, port = _address(serve)
    folder = Path(output)
    with made(folder), compiled_ahead(_SETTINGS):
        with training_line() as report:
            training = train(report, first=first)
            keep_landings(folder / "landings.parquet", training, report, first=first)
        tell(training)
        rows, pairs, alerts = (str(folder / f"{what}.jsonl") for what in ("rows", "pairs", "alerts"))
        checkpoints = CheckpointFolder(str(folder / "checkpoint"))
        if not _goes_on(checkpoints, anew=anew):
            for path in (rows, pairs, alerts):  # the page would show those of an earlier year
                Path(path).unlink(missing_ok=True)
        streams = _streams(folder / "landings.parquet", speed)
        job = Evaluation(
            sources=(),
            fields=_FIELDS,
            settings=_SETTINGS,
            output=rows,
            dead_letters=None,
            cache_bytes=DEFAULT_CACHE_BYTES,
            runner=choose_runner("local"),
            timing=_TIMING,
            alerts=Alerts((parse_alert(RULE),), alerts),
            pairs=Pairs(pairs, _AGAINST, _COMPARISON, most_shards=1),
            streams=streams,
            checkpoints=Checkpoints(checkpoints.folder, _CHECKPOINT_SECONDS),
        )
        keeper = Keeper(Look(_TITLE, followed=("alerts", "pairs"), chart_first=True))
        with (
            serving(keeper, "--serve", host, port, None) as address,
            following(keeper, [(rows, "rows"), (pairs, "pairs"), (alerts, "alerts")]),
        ):
            say(f"open {address} in a browser: the year 2013 goes by there, a day a second")
            status = evaluate_live(job, streams)
            if status or not checkpoints.newest(lambda found: found.ended):
                return status  # a signal has stopped the job
            say(_end(alerts))
            say(f"the year is over, and its page stays at {address} until Ctrl-C")
            with StopOnSignal() as signals:
                until_signal(signals)
    return 0


def _goes_on(checkpoints: CheckpointFolder, *, anew: bool) -> bool:
    """Return whether there is a checkpoint from which the job can continue.

    If `anew`, remove all checkpoints.

    Raises InputError if another process uses the folder.
    """
    checkpoints.check()
    with checkpoints.held():
        if anew:
            checkpoints.clear()
        return checkpoints.newest(lambda found: found) is not None


def _address(serve: str | None) -> tuple[str, int]:
    """Return host and port of the page. Raises ConfigError for a host that other machines see."""
    if serve is None:
        try:
            socket.create_server(("127.0.0.1", _PORT)).close()
        except OSError:
            return "127.0.0.1", 0
        return "127.0.0.1", _PORT
    host, port = address_of("--serve", serve)
    if not is_loopback(host):
        raise ConfigError(
            f"--serve {serve} is seen by other machines, and the demo asks nobody for a token; say :{port}, "
            "or serve its rows with rocsteady serve --host --token"
        )
    return host, port


def _streams(landings: Path, speed: float) -> Streams:
    """Return the landings of a file as a stream."""
    table = parquet.read_table(landings)
    played = Played(table, _FIELDS, landings.name, str(table.schema.metadata), speed)
    return Streams([StreamInput(played, 0, 1, "event", _FIELDS, 0, timing=_TIMING)], "live")


def _end(alerts: str) -> str:
    """Return a sentence on the alerts of the pair."""
    found = []
    if Path(alerts).stat().st_size:
        found = alerts_of(read_tables([alerts], "alerts")[0])
    spans = [
        f"from {_day(alert.opened)} to {_day(alert.closed) if alert.closed else 'the end'}"
        for alert in reversed(found)
    ]
    return f"{_PAIR}: " + (f"an alert {', and '.join(spans)}" if spans else "no alert")


def _day(event: Event) -> str:
    return "an unknown day" if event.time is None else day(event.time)
