"""The table of commands: the name, the words of the help, the arguments and the function of each."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any

from ..core.process.console import OptionParser
from ..core.version import __version__
from .arguments import (
    ALPHA,
    CHECKPOINT_NEW,
    CONFIDENCE,
    CSV_SAFE,
    DEPENDENT,
    KAFKA_OPTION,
    REFERENCE,
    RUNNER,
    STALE,
    TABLE,
    TIME_FORMAT,
    TIME_UNIT,
    TITLE,
    Argument,
    Group,
    repeatable,
    switch,
)
from .evaluate.parser import EVALUATE, EVALUATE_EPILOG
from .prequential.parser import PREQUENTIAL, PREQUENTIAL_EPILOG
from .serve.parser import SERVE, SERVE_EPILOG, WATCH, WATCH_EPILOG


@dataclass(frozen=True)
class Command:
    """A command, or an action of a command.

    run         module:function within pipelines, imported when the command runs, so that help is instant.
                The function takes the parsed arguments and returns the exit status. With `takes_beam` the
                function also takes the remaining words, Beam's options. An action has "": the function of
                its command runs the action.
    summary     the command's line in the help of the whole command line
    about       the description in the command's own help
    epilog      the end of the command's own help: examples and remarks
    actions     the actions that may follow the command's name; each action has arguments of its own
    """

    name: str
    run: str
    summary: str
    about: str | None
    epilog: str
    arguments: tuple[Argument | Group, ...] = ()
    actions: tuple[Command, ...] = ()
    takes_beam: bool = False

    def usage(self, path: str) -> str:
        """Return the form of the command line; `path` is the text before the arguments.

        Options are left out: those of `rocsteady evaluate` would fill 30 lines.
        """
        places = [each for each in self.arguments if isinstance(each, Argument) and each.is_positional]
        words = [f"{each.metavar}{'...' * (each.takes == 'words')}" for each in places]
        words += ["|".join(action.name for action in self.actions)] if self.actions else []
        words += ["[OPTIONS]", *["[OPTIONS OF BEAM]"] * self.takes_beam]
        return " ".join([path, *words])


_EPILOG = """examples:
  rocsteady demo
  rocsteady evaluate scores.csv --label clicked --score p --output rows.csv
  rocsteady evaluate 'day-*.parquet' --slice country --window last:10000 --output rows.parquet
  rocsteady show rows.parquet
  rocsteady report rows.parquet --output report.html
  rocsteady inspect model.state
  rocsteady doctor --runner flink --flink_master localhost:8081
  rocsteady state export --control ask.json --output monday
"""

_DEMO_EPILOG = """examples:
  rocsteady demo
  rocsteady demo --live

The first run trains the learners, for about a minute. --live needs the extra serve too. It plays the year, a
day a second, and shows a page that grows. The same command goes on where the last one was ended or killed."""

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
  rocsteady report rows.csv --alerts alerts.csv --title "Churn models, 2013" -o churn.html
  rocsteady report rows.parquet --roll-ups roll_ups.parquet --pairs pairs.parquet -o fleet.html
  rocsteady report out/rows.parquet --comparisons out/comparisons.parquet --means out/means.parquet -o r.html

The file needs nothing else: open it in a browser, send it, put it on a server."""

_SHOW_EPILOG = """examples:
  rocsteady show rows.parquet
  rocsteady show 'rows-*.csv' --reference 30d
  rocsteady show rows/ --reference 2026-01-01..2026-02-01

The question is whether the latest full window of a model ranks worse than its reference. The answers are
corrected for the number of models and slices. `rocsteady report` shows the same with charts."""

_ROWS_EPILOG = """examples:
  rocsteady rows rows/ --output rows.parquet
  rocsteady rows kafka://localhost:9092/rows --output rows.parquet

A topic is read up to what it holds now. Of rows with the same model, slice, pane and number the first is
kept; two of them that differ are an error, which names both."""

_ROLL_UP_EPILOG = """examples:
  the whole fleet at every hour, and the models of a team:
    rocsteady evaluate scored.csv --time sent --every 1h --output rows.parquet
    rocsteady roll-up rows.parquet --by models --by 'team1/*' --output roll_ups.parquet
  do the countries of a model differ, and which of them is the worst:
    rocsteady evaluate scored.csv --time sent --every 1d --slice country --output rows.parquet
    rocsteady roll-up rows.parquet --by slices --output roll_ups.csv

Rows of one grid point (due) are rolled up; the last row of each model, which has none, is left out."""

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

_REPLAY = (
    Argument("sources", "SOURCE", "files or globs: .csv .csv.gz .parquet .jsonl .jsonl.gz", takes="words"),
    Argument("--time", "COL", "RFC 3339, dates, or numbers in --time-unit", required=True),
    TIME_UNIT,
    TIME_FORMAT,
    Argument("--speed", None, "seconds of event time in a second: 60 or 60x; max: no waiting", "1"),
    Argument("--output", "DIR",
        "a new folder of files, a topic kafka://host:port/topic, or - for stdout", "-"),
    KAFKA_OPTION,
    Argument("--file-every", "10s", "a file in DIR so often, or each 100,000 records [10s]"),
    Argument("--start", "TIME", "leave out what is earlier"),
    Argument("--limit", "N", "end after N records"),
    repeatable("--text", "COL[,COL]",
        "columns that are text though they look like numbers, such as ids; repeatable"),
)  # fmt: skip


_DEMO = (
    Argument("--output", "DIR", "folder for report, rows, curves and dead letters", "rocsteady-demo"),
    switch("--live", "a page in a browser that moves: a learner, and its copy that is frozen"),
    Argument("--serve", "[HOST]:PORT", "of the page of --live [:8080, or a free port where that is taken]"),
    CHECKPOINT_NEW,
)  # fmt: skip


def _files(name: str, about: str) -> Argument:
    return Argument(name, "FILE", about, takes="repeated values")


_REPORT = (
    Argument("rows", "ROWS", "files or globs of rows: .parquet .csv .csv.gz .jsonl .jsonl.gz", takes="words"),
    Argument("-o --output", "PATH", "the page: a file that ends in .html", required=True),
    _files("--curves", "of evaluate --curves"),
    _files("--dead-letters", "of evaluate --dead-letters, to be counted by reason"),
    _files("--alerts", "of evaluate --alerts: marked in the charts, and listed"),
    _files("--roll-ups", "of evaluate --roll-ups, or of roll-up: what groups say together, over time"),
    _files("--pairs", "of evaluate --pairs: which challenger ranks better than its champion"),
    _files("--comparisons",
        "of compare, or of prequential: who is better than whom, since when and by which test"),
    _files("--means", "means over folds, of prequential"),
    TITLE,
    REFERENCE,
    CONFIDENCE,
)  # fmt: skip

_SHOW = (
    Argument("sources", "ROWS", "files, a folder such as rows/, or kafka://host:port/topic", takes="words"),
    REFERENCE,
    CONFIDENCE,
    KAFKA_OPTION,
)  # fmt: skip

_ROWS = (
    Argument("sources", "SOURCE", "kafka://host:port/topic, a folder such as rows/, or files", takes="words"),
    TABLE,
    CSV_SAFE,
    KAFKA_OPTION,
)  # fmt: skip

_COMPARE = (
    Argument("sources", "ROWS",
        "rows of at least two models: files, a folder such as rows/, kafka://host:port/topic",
        takes="words"),
    TABLE,
    Argument("--over", "COL", "the slice column whose values are the folds or streams of the tests", "fold"),
    repeatable("--measure", "NAME", "such as h; repeatable [auc; of models with classes auc_macro]"),
    ALPHA,
    CSV_SAFE,
    KAFKA_OPTION,
)  # fmt: skip

_ROLL_UP = (
    Argument("sources", "ROWS",
        "rows on a grid of times (--every 1h): files, a folder such as rows/, kafka://host:port/topic",
        takes="words"),
    repeatable("--by", "GROUPS",
        "models: one group of all models; slices: a group for each model and column of slices; 'team1/*': "
        "the models of a pattern; repeatable [models]"),
    TABLE,
    replace(STALE, about=STALE.about.removesuffix(" [1d]"), default="1d"),
    DEPENDENT,
    CONFIDENCE,
    CSV_SAFE,
    KAFKA_OPTION,
)  # fmt: skip

_MONITORING_EPILOG = """examples:
  rocsteady monitoring monitoring
  rocsteady monitoring monitoring --scrape :9100 --scrape models.example.com:8080 --auc-below 0.7

A live job serves its metrics with evaluate --prometheus :9100, and rocsteady serve at its own port."""

_MONITORING = (
    Argument("folder", "DIR", "gets prometheus.yml, rules.yml and dashboard.json"),
    repeatable("--scrape", "[HOST]:PORT", "where a command serves its metrics; repeatable [:9100]"),
    repeatable("--scrape-flink", "[HOST]:PORT",
        "where a TaskManager of Flink serves its own, by its reporter for Prometheus; repeatable"),
    Argument("--auc-below", "X", "an alert for each model whose interval of the AUC lies below", "0.6"),
)  # fmt: skip

_EXPORT = (
    Argument("--control", "PATH", "the file that the job was given with --control", required=True),
    Argument("--output", "DIR", "a new folder, which the job sees too", required=True),
    Argument("--timeout", "60s", "wait so long for each next shard", "60s"),
)  # fmt: skip

_IMPORT = (
    Argument("folder", "DIR", "the folder of an export"),
    Argument("--output", "DIR", "a new folder, for --import-state", required=True),
    Argument("--shards", "N", "of the evaluators [as many as there are]"),
    repeatable("--own-shard", "MODEL", "gets a shard of its own; repeatable"),
    repeatable("--no-own-shard", "MODEL",
        "loses its own shard, and goes where the hash of its name says; repeatable"),
    Argument("--join-shards", "N", "of the join of labels [as many as there are]"),
)  # fmt: skip

COMMANDS = (
    Command("demo", "demo.command:demo_command",
        "a year of real flights, predicted online by several learners, evaluated as it goes",
        "Train online learners on a year of real flights and evaluate them as the year goes.",
        _DEMO_EPILOG, _DEMO),
    Command("evaluate", "evaluate.command:evaluate_command",
        "evaluate the models in files: rows of AUC, H-measure, KS, kappa, ...",
        "Evaluate the models in files of scored and labelled events.",
        EVALUATE_EPILOG, EVALUATE, takes_beam=True),
    Command("replay", "replay:replay_command",
        "play files as JSON lines at a chosen speed, by their own event times",
        "Play files as JSON lines, in order of their own event times, at a chosen speed.",
        _REPLAY_EPILOG, _REPLAY),
    Command("report", "report.command:report_command",
        "one self-contained page of charts, tables and words about rows of measures",
        "Write one self-contained HTML page about the rows that `rocsteady evaluate` wrote.",
        _REPORT_EPILOG, _REPORT),
    Command("serve", "serve.command:serve_command",
        "a page in a browser that follows rows as they come",
        "Serve a page about rows that grows while they come: overview, charts, alerts and slices.",
        SERVE_EPILOG, SERVE),
    Command("monitoring", "monitoring.command:monitoring_command",
        "a Grafana dashboard, and settings and alert rules of Prometheus",
        "Write a Grafana dashboard, and settings and alert rules of Prometheus, for metrics of live jobs.",
        _MONITORING_EPILOG, _MONITORING),
    Command("show", "show:show_command",
        "which models rank worse than they did: a table of rows that are there, for people",
        "Print a line for every model in files of rows, worst first: 20 lines at most.",
        _SHOW_EPILOG, _SHOW),
    Command("watch", "serve.watch_command:watch_command",
        "the same table, drawn anew in the terminal as rows come",
        "Show a line for every model, worst first, and draw the table anew as rows come.",
        WATCH_EPILOG, WATCH),
    Command("rows", "tables:rows_command",
        "what a topic or a folder of rows holds as one file, each row once",
        "Write the rows of topics, folders and files to one file, sorted, each once: a job that was "
        "restarted may have written some of them twice.",
        _ROWS_EPILOG, _ROWS),
    Command("roll-up", "roll_up:roll_up_command",
        "what many models, or the slices of a model, say together: means, spread, the worst of them",
        "Write what the rows of a group say together: a roll-up row a group and grid point.",
        _ROLL_UP_EPILOG, _ROLL_UP),
    Command("compare", "tables:compare_command",
        "which model is better, by tests over slices: sign, Wilcoxon, Friedman with Nemenyi",
        "Compare models by the rows of their slices, at every moment: tests of significance.",
        _COMPARE_EPILOG, _COMPARE),
    Command("prequential", "prequential.command:prequential_command",
        "train and test learners over k folds of a stream, measure and compare them",
        "Train and test k copies of learners on a stream, measure them, and say which is better by which "
        "test.",
        PREQUENTIAL_EPILOG, PREQUENTIAL, takes_beam=True),
    Command("inspect", "state:inspect_command",
        "say in words what a stored state holds", "Say in words what a stored state holds.",
        "examples:\n  rocsteady inspect model.state\n  rocsteady inspect kept",
        (Argument("state", "STATE",
            "the folder of an export or of checkpoints, a file in it, or one with a snapshot"),)),
    Command("state", "state:state_command",
        "the state of a running job to files, and back over another number of shards",
        "Write the state of a running job to a folder, or spread an export over other shards.",
        _STATE_EPILOG,
        actions=(
            Command("export", "", "ask a running stream for its state", None, _STATE_EPILOG, _EXPORT),
            Command("import", "", "check an export, and spread it over other shards", None, _STATE_EPILOG,
                _IMPORT),
        )),
    Command("doctor", "doctor:doctor_command",
        "say what a runner needs, what of it is missing, and what mends it",
        "Say what a runner needs, what of it is missing, and the command that mends it.",
        _DOCTOR_EPILOG,
        (
            RUNNER,
            switch("--compile", "compile every kernel first, as for an image of workers"),
            switch("--no-job", "do not run a job of one element at the end"),
        ), takes_beam=True),
)  # fmt: skip


_SHAPE: dict[str, Any] = {
    "formatter_class": argparse.RawDescriptionHelpFormatter,
    "allow_abbrev": False,
}


def command_parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of the command line, and the commands' parsers by name."""
    parser = OptionParser(
        prog="rocsteady",
        description="How well classifiers rank and decide, at every moment and for every model.",
        epilog=_EPILOG,
        **_SHAPE,
    )
    parser.add_argument("--version", action="version", version=f"rocsteady {__version__}")
    return parser, _add(parser, "command", COMMANDS)


def _add(
    parser: argparse.ArgumentParser, what: str, commands: tuple[Command, ...]
) -> dict[str, argparse.ArgumentParser]:
    """Add commands as the choices of a parser's next word; return the commands' parsers by name."""
    words = parser.add_subparsers(dest=what, metavar=what.upper(), required=True, parser_class=OptionParser)
    parts: dict[str, argparse.ArgumentParser] = {}
    for command in commands:
        usage = None if command.actions else command.usage(f"{parser.prog} {command.name}")
        parts[command.name] = part = words.add_parser(
            command.name,
            help=command.summary,
            usage=usage,
            description=command.about,
            epilog=command.epilog,
            **_SHAPE,
        )
        for argument in command.arguments:
            argument.add_to(part)
        if command.actions:
            _add(part, "action", command.actions)
    return parts
