"""The command line: words in, one command run, an exit status out.

Exit status: 0 done (dead letters included); 2 bad arguments, or input found wrong before the job starts;
1 the job failed later; 3 nothing was evaluated; 4 by --fail-if; 130 interrupted, 143 terminated. What a user
can cause is one sentence on stderr, never a traceback. Beam is imported only by the commands that run a job,
so that `--help` is instant.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ..core.errors import ConfigError, InputError, RocsteadyError
from ..core.process.console import ConsoleFormatter, say, show_error, show_warning
from ..core.process.near_names import near_names
from ..core.process.option_parser import OptionParser
from ..core.process.standard_streams import flush_out, open_closed_streams
from ..core.version import __version__
from .evaluate.parser import EVALUATE_EPILOG, RUNNERS, add_csv_safe, add_evaluate, add_kafka_option
from .prequential.parser import PREQUENTIAL_EPILOG, add_prequential
from .stopping import MainThreadOnly, end_at_once

COMMANDS = (
    "demo", "evaluate", "prequential", "compare", "report", "replay", "rows", "inspect", "state", "doctor",
)  # fmt: skip

_ENDINGS = (".csv", ".tsv", ".parquet", ".jsonl", ".gz", ".state")

_EPILOG = """examples:
  rocsteady demo
  rocsteady evaluate scores.csv --label clicked --score p --output rows.csv
  rocsteady evaluate 'day-*.parquet' --slice country --window last:10000 --output rows.parquet
  rocsteady report rows.parquet --output report.html
  rocsteady inspect model.state
  rocsteady doctor --runner flink --flink_master localhost:8081
  rocsteady state export --control ask.json --output monday
"""

_DOCTOR_EPILOG = """examples:
  rocsteady doctor
  rocsteady doctor --runner flink --flink_master flink.example.com:8081 \\
      --environment_type EXTERNAL --environment_config localhost:50000

Give it the options of the job. A line that begins with NOT says what is missing, and ends with what mends it.
When nothing is, a job of one element goes through the runner, and its worker says what it has. Exit status 0:
all is there; 1: something is not."""

_REPLAY_EPILOG = """examples:
  an hour in a second, evaluated as it goes:
    rocsteady replay flights.parquet --time landed --speed 3600 | \\
        rocsteady evaluate - --time landed --output -
  how many events a second an evaluation can take:
    rocsteady replay day.csv --time sent --speed max | rocsteady evaluate - --output rows.jsonl
  files that appear in a folder, and are followed there:
    rocsteady replay day.csv --time sent --speed 60 --output arriving --file-every 5s &
    rocsteady evaluate arriving --follow --output rows.jsonl
  messages of a topic:
    rocsteady replay day.csv --time sent --speed max --output kafka://localhost:9092/scored

JSON lines are played as they are. In records of CSV and Parquet the time becomes RFC 3339, and what reads
like a number is one. Files whose times rise are streamed, others sorted in memory. Rate and delay are told
on stderr."""

_REPORT_EPILOG = """examples:
  rocsteady report rows.parquet --output report.html
  rocsteady report 'rows-*.parquet' --curves curves.parquet --dead-letters rejected.jsonl -o report.html
  rocsteady report rows.csv --title "Churn models, 2013" -o churn.html
  rocsteady report out/rows.parquet --comparisons out/comparisons.parquet --means out/means.parquet -o r.html

The file needs nothing else: open it in a browser, send it, put it on a server. The plotting library comes
with pip install 'rocsteady[report]'."""

_ROWS_EPILOG = """examples:
  rocsteady rows rows/ --output rows.parquet
  rocsteady rows kafka://localhost:9092/rows --output rows.parquet

A topic is read up to what it holds now. Of rows with the same model, slice, pane and number the first is
kept; two of them that differ are an error, which names both."""

_COMPARE_EPILOG = """examples:
  two models of a file, over its carriers:
    rocsteady evaluate scored.csv --slice carrier --every 1d --time sent --output rows.parquet
    rocsteady compare rows.parquet --over carrier --output comparisons.csv
  by several measures, at another level:
    rocsteady compare rows.parquet --over carrier --measure auc --measure h --alpha 0.01 --output c.parquet

Rows of one moment (their due time, or else their ordinal) are compared: every pair of models by the sign
test and Wilcoxon's signed ranks, p-values also corrected for the number of pairs (Holm), and all models by
Friedman's test and Nemenyi's critical difference. A p-value holds for one look: at 45 checkpoints a
difference that is none is found in 31% of all streams. Slices of one stream are no independent streams."""

_STATE_EPILOG = """examples:
  a stream that can be asked for its state, and the asking:
    rocsteady evaluate arriving --follow --control ask.json --output rows.jsonl
    rocsteady state export --control ask.json --output monday
  what an export holds, and a job that goes on from it:
    rocsteady inspect monday
    rocsteady evaluate tuesday.csv --import-state monday --output rows.csv
  for a job with 128 shards on another machine:
    rocsteady state import monday --shards 128 --output monday-128"""


class _Parser(OptionParser):
    """An argument parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see {self.prog} --help)")


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of the command line, and of it the parts of the commands that take Beam's options."""
    shape: dict[str, Any] = {
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    parser = _Parser(
        prog="rocsteady",
        description="How well classifiers rank and decide, at every moment and for every model.",
        epilog=_EPILOG,
        **shape,
    )
    parser.add_argument("--version", action="version", version=f"rocsteady {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    demo = commands.add_parser(
        "demo",
        help="a year of real flights, predicted online by several learners, evaluated as it goes",
        description="Train online learners on a year of real flights and evaluate them as the year goes.",
        epilog="example:\n  rocsteady demo --output flights",
        **shape,
    )
    demo.add_argument(
        "--output",
        metavar="DIR",
        default="rocsteady-demo",
        help="folder for report, rows, curves and dead letters [rocsteady-demo]",
    )
    evaluate = commands.add_parser(
        "evaluate",
        help="evaluate the models in files: rows of AUC, H-measure, KS, kappa, ...",
        description="Evaluate the models in files of scored and labelled events.",
        epilog=EVALUATE_EPILOG,
        **shape,
    )
    add_evaluate(evaluate)
    replay = commands.add_parser(
        "replay",
        help="play files as JSON lines at a chosen speed, by their own event times",
        description="Play files as JSON lines, in order of their own event times, at a chosen speed.",
        epilog=_REPLAY_EPILOG,
        **shape,
    )
    _add_replay(replay)
    report = commands.add_parser(
        "report",
        help="one self-contained page of charts, tables and words about rows of measures",
        description="Write one self-contained HTML page about the rows that `rocsteady evaluate` wrote.",
        epilog=_REPORT_EPILOG,
        **shape,
    )
    _add_report(report)
    rows = commands.add_parser(
        "rows",
        help="what a topic or a folder of rows holds as one file, each row once",
        description="Write the rows of topics, folders and files to one file, sorted, each once: a job that "
        "was restarted may have written some of them twice.",
        epilog=_ROWS_EPILOG,
        **shape,
    )
    _add_rows(rows)
    compare = commands.add_parser(
        "compare",
        help="which model is better, by tests over slices: sign, Wilcoxon, Friedman with Nemenyi",
        description="Compare models by the rows of their slices, at every moment: tests of significance.",
        epilog=_COMPARE_EPILOG,
        **shape,
    )
    _add_compare(compare)
    prequential = commands.add_parser(
        "prequential",
        help="train and test learners over k folds of a stream, measure and compare them",
        description="Train and test k copies of learners on a stream, measure them, and say which "
        "is better by which test.",
        epilog=PREQUENTIAL_EPILOG,
        **shape,
    )
    add_prequential(prequential)
    inspect = commands.add_parser(
        "inspect",
        help="say in words what a stored state holds",
        description="Say in words what a stored state holds.",
        epilog="example:\n  rocsteady inspect model.state",
        **shape,
    )
    inspect.add_argument(
        "state", metavar="STATE", help="the folder of an export, a file in it, or one with a snapshot"
    )
    state = commands.add_parser(
        "state",
        help="the state of a running job to files, and back over another number of shards",
        description="Write the state of a running job to a folder, or spread an export over other shards.",
        epilog=_STATE_EPILOG,
        **shape,
    )
    _add_state(state, shape)
    doctor = commands.add_parser(
        "doctor",
        help="say what a runner needs, what of it is missing, and what mends it",
        description="Say what a runner needs, what of it is missing, and the command that mends it.",
        epilog=_DOCTOR_EPILOG,
        **shape,
    )
    doctor.add_argument("--runner", default="local", help=RUNNERS)
    doctor.add_argument(
        "--compile", action="store_true", help="compile every kernel first, as for an image of workers"
    )
    doctor.add_argument("--no-job", action="store_true", help="do not run a job of one element at the end")
    return parser, {"evaluate": evaluate, "prequential": prequential, "doctor": doctor}


def _add_state(parser: argparse.ArgumentParser, shape: dict[str, Any]) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=_Parser)
    export = actions.add_parser(
        "export", help="ask a running stream for its state", epilog=_STATE_EPILOG, **shape
    )
    add = export.add_argument
    add("--control", required=True, metavar="PATH", help="the file that the job was given with --control")
    add("--output", required=True, metavar="DIR", help="a new folder, which the job sees too")
    add("--timeout", default="60s", metavar="60s", help="wait so long for each next shard [60s]")
    bring = actions.add_parser(
        "import", help="check an export, and spread it over other shards", epilog=_STATE_EPILOG, **shape
    )
    add = bring.add_argument
    add("folder", metavar="DIR", help="the folder of an export")
    add("--output", required=True, metavar="DIR", help="a new folder, for --import-state")
    add("--shards", metavar="N", help="of the evaluators [as many as there are]")
    add("--own-shard", action="append", default=[], metavar="MODEL",
        help="gets a shard of its own; repeatable")  # fmt: skip
    add("--no-own-shard", action="append", default=[], metavar="MODEL",
        help="loses its own shard, and goes where the hash of its name says; repeatable")  # fmt: skip
    add("--join-shards", metavar="N", help="of the join of labels [as many as there are]")


def _add_replay(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("sources", nargs="+", metavar="SOURCE", help="files or globs: .csv .csv.gz .parquet .jsonl .jsonl.gz")
    add("--time", required=True, metavar="COL", help="RFC 3339, dates, or numbers in --time-unit")
    add("--time-unit", choices=("s", "ms", "us", "ns"), default="s", help="of numeric times [s]")
    add(
        "--time-format",
        metavar="FORMAT",
        help="of times that are texts, or numbers such as 20240102, as Python's strptime reads it, such as "
        "'%%d/%%m/%%Y %%H:%%M' [RFC 3339, dates, or numbers]",
    )
    add("--speed", default="1", help="seconds of event time in a second: 60 or 60x; max: no waiting [1]")
    add(
        "--output",
        default="-",
        metavar="DIR",
        help="a new folder of files, a topic kafka://host:port/topic, or - for stdout [-]",
    )
    add(
        "--kafka-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the Kafka client, librdkafka, or @FILE with such lines; repeatable",
    )
    add("--file-every", metavar="10s", help="a file in DIR so often, or each 100,000 records [10s]")
    add("--start", metavar="TIME", help="leave out what is earlier")
    add("--limit", metavar="N", help="end after N records")
    add(
        "--text",
        action="append",
        default=[],
        metavar="COL[,COL]",
        help="columns that are text though they look like numbers, such as ids; repeatable",
    )


def _add_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "rows",
        nargs="+",
        metavar="ROWS",
        help="files or globs of rows: .parquet .csv .csv.gz .jsonl .jsonl.gz",
    )
    add("-o", "--output", required=True, metavar="PATH", help="the page: a file that ends in .html")
    add("--curves", nargs="+", action="extend", default=[], metavar="FILE", help="of evaluate --curves")
    add(
        "--dead-letters",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="of evaluate --dead-letters, to be counted by reason",
    )
    add(
        "--comparisons",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="of compare, or of prequential: who is better than whom, since when and by which test",
    )
    add(
        "--means",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="means over folds, of prequential",
    )
    add("--title", metavar="TEXT", help="stands above the page")
    add(
        "--confidence",
        metavar="P",
        help="that the rows' intervals were made with [as a Parquet file says, else 0.95]",
    )


def _add_rows(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="kafka://host:port/topic, a folder such as rows/, or files",
    )
    add("-o", "--output", required=True, metavar="PATH", help=".parquet .csv .csv.gz .jsonl .jsonl.gz")
    add_csv_safe(add)
    add_kafka_option(add)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "sources",
        nargs="+",
        metavar="ROWS",
        help="rows of at least two models: files, a folder such as rows/, kafka://host:port/topic",
    )
    add("-o", "--output", required=True, metavar="PATH", help=".parquet .csv .csv.gz .jsonl .jsonl.gz")
    add(
        "--over",
        default="fold",
        metavar="COL",
        help="the slice column whose values are the folds or streams of the tests [fold]",
    )
    add("--measure", action="append", default=[], metavar="NAME", help="such as h; repeatable [auc]")
    add("--alpha", metavar="P", help="the level at which one is said to be better [0.05]")
    add_csv_safe(add)
    add_kafka_option(add)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status. Without `argv` the process is the command's own."""
    open_closed_streams()
    if argv is not None:
        return _main(argv, ends_process=False)
    sys.excepthook = show_error
    status = _main(sys.argv[1:], ends_process=True)
    _silence_what_is_torn_down()
    if status > 128 and any(not thread.daemon for thread in threading.enumerate()[1:]):
        sys.stderr.flush()
        os._exit(status)  # interrupted, and an engine's threads would keep the process for minutes
    return status


def _silence_what_is_torn_down() -> None:
    """Let nobody speak any more: all is said, and a runner's threads fall over when their server is ended."""
    logging.disable()
    threading.excepthook = lambda _: None
    sys.stderr = MainThreadOnly(sys.stderr)


def _main(arguments: Sequence[str], *, ends_process: bool) -> int:
    with _Interruptible(ends_process=ends_process) as interruption, _quiet_libraries():
        try:
            status = _run([*arguments])
            flush_out()
        except BrokenPipeError:  # the reader of our output went away: nobody is left to tell
            return 1
        except (KeyboardInterrupt, Exception) as error:
            if interruption.signal is not None or isinstance(error, KeyboardInterrupt):
                return interruption.say()
            if isinstance(error, ConfigError | InputError):
                return _say(error, 2)
            if isinstance(error, RocsteadyError):
                return _say(error, 1)
            if isinstance(error, OSError):
                return _say(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
            raise
        return status


_ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
if sys.platform != "win32":
    _ENDING[signal.SIGHUP] = "the terminal hung up"


class _Interruptible:
    """While it is entered, SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt in the main thread.

    It remembers which, because an engine may make another error of the exception: where one of them came,
    any error is its consequence. The second one ends the process at once where that is the command's own:
    raised in the middle of an engine's own end, it left a traceback of gRPC, or a process that never ended.
    """

    def __init__(self, *, ends_process: bool) -> None:
        self.signal: signal.Signals | None = None
        self._ends_process = ends_process
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Interruptible:
        if threading.current_thread() is threading.main_thread():
            for number in _ENDING:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup: it stays ignored
                    self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG002
        if self.signal is not None and self._ends_process:
            end_at_once(number)
        self.signal = signal.Signals(number)
        raise KeyboardInterrupt

    def say(self) -> int:
        """Tell what happened; return the status that a shell expects."""
        number = self.signal or signal.SIGINT
        return _say(f"{_ENDING[number]}; no unfinished output is left", 128 + number)


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Let nobody but us log: Beam remarks on its optional parts, and buries an error in tracebacks."""
    handler = logging.StreamHandler()
    handler.setFormatter(ConsoleFormatter("rocsteady: %(message)s"))
    handler.addFilter(lambda record: record.name.startswith("rocsteady"))
    root = logging.getLogger()
    before, root.handlers[:] = root.handlers[:], [handler]
    stderr, showwarning = sys.stderr, warnings.showwarning
    warnings.showwarning = show_warning
    try:
        yield
    finally:
        root.handlers[:] = before
        warnings.showwarning = showwarning
        sys.stderr = stderr  # an interruption keeps it from Beam's threads


def _say(message: object, status: int) -> int:
    say(message)
    return status


def _run(arguments: list[str]) -> int:
    parser, of_beam = _parsers()
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    _refuse_unknown_command(arguments)
    _refuse_dashed_file(arguments)
    if arguments[0] in of_beam:
        arguments = _with_joined_values(arguments, of_beam[arguments[0]])
    options, rest = parser.parse_known_args(arguments)
    if options.command == "evaluate":
        from .evaluate.command import evaluate_command

        return evaluate_command(options, rest)
    if options.command == "prequential":
        from .prequential.command import prequential_command

        return prequential_command(options, rest)
    if options.command == "doctor":
        from .doctor import doctor_command

        return doctor_command(options, rest)
    if rest:
        raise ConfigError(f"argument {rest[0]!r} is not known (see rocsteady {options.command} --help)")
    if options.command == "report":
        from .report.report import report_command

        return report_command(options)
    if options.command == "rows":
        from .rows import rows_command

        return rows_command(options)
    if options.command == "compare":
        from .compare import compare_command

        return compare_command(options)
    if options.command == "replay":
        from .replay import replay_command

        return replay_command(options)
    if options.command == "state":
        from .state import state_command

        return state_command(options)
    if options.command == "inspect":
        from .inspect import inspect_command

        return inspect_command(options.state)
    from .demo.command import demo_command

    return demo_command(options.output)


def _refuse_unknown_command(arguments: Sequence[str]) -> None:
    if arguments[0].startswith("-") or arguments[0] in COMMANDS:
        return
    name = arguments[0]
    near = near_names(name, COMMANDS)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
    raise ConfigError(f"command {name!r} is not known; {hint}")


def _refuse_dashed_file(arguments: Sequence[str]) -> None:
    """Raise ConfigError for a name of a file that reads like an option."""
    for argument in arguments:
        if argument == "--":
            return
        named = argument.startswith("-") and "=" not in argument and argument.lower().endswith(_ENDINGS)
        if named and (not argument.startswith("--") or Path(argument).exists()):
            raise ConfigError(f"{argument} reads like an option; for the file of that name say ./{argument}")


def _with_joined_values(arguments: list[str], command: argparse.ArgumentParser) -> list[str]:
    """Tie options that are not ours to their values; only if there are any, Beam is asked about them."""
    own = command._option_string_actions
    if {"-h", "--help"} & {*arguments} or all(
        word.split("=")[0] in own or not word.startswith("--") for word in arguments
    ):
        return arguments
    from ..runners.presets import RunnerError, join_values

    try:
        return join_values(arguments, own)
    except RunnerError as mistake:
        raise ConfigError(f"{mistake} (see {command.prog} --help)") from None
