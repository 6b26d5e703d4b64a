"""The options of `rocsteady evaluate` as its parser knows them; `options` says what they mean."""

from __future__ import annotations

import argparse
from collections.abc import Callable

EVALUATE_EPILOG = """examples:
  every model of a file, all of its events, a row each 10,000 of them and a last one:
    rocsteady evaluate scores.csv.gz --score p --label y --window all --every 10000 --output rows.csv
  a row every 1,000 events over the last 10,000, per country and per country and device:
    rocsteady evaluate 'day-*.parquet' --slice country --slice country,device --every 1000 --output r.csv
  a row every hour of event time over the last seven days; and a window that shrinks when ranking changes:
    rocsteady evaluate s.csv --time sent --window last:7d --every 1h --output rows.parquet
    rocsteady evaluate s.csv --time sent --window adaptive --output rows.parquet
  H-measure as in R's hmeasure, labels that are words, rejected records kept:
    rocsteady evaluate s.csv --positive bad --cost severity --dead-letters rejected.jsonl --output -
  ROC curves beside the rows, of each 5,000 events:
    rocsteady evaluate s.csv --window last:5000 --output rows.csv --curves curves.parquet --curves-every 5000
  predictions, and labels that came up to three days later:
    rocsteady evaluate predictions.parquet --time made --id order --labels labels.parquet \\
        --label-time known --ttl 3d --output rows.parquet --dead-letters left_over.parquet
  events as they come, from a program, or in files of a folder:
    tail -f events.jsonl | rocsteady evaluate - --every 1000 --output -
    rocsteady evaluate arriving --follow --every 1000 --output rows.jsonl
  be told when a model ranks badly, and when it ranks worse than a week before:
    rocsteady evaluate s.csv --time sent --every 1h --output rows.parquet --alerts alerts.csv \\
        --alert 'auc_high < 0.8 for 3 rows' --alert 'auc drops by 0.02 against 7d'

Exit status 0: done; 3: records came and none was applied; 4: a rule of --fail-if holds; 2: arguments or input
were found wrong before the job; 1: the job failed later. With 3 and 4 all outputs are written.

Every other option is handed to Beam. Positions of dead letters count the records of a source from 0.
A stream is never sorted as a whole: of stdin, and with --follow, --order time is time:0s."""

RUNNERS = "local | prism | flink | dataflow | any Beam runner [local]"


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Add sources and options, group by group, as --help shows them."""
    add = parser.add_argument
    add(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="files or globs: .csv .csv.gz .parquet .jsonl .jsonl.gz; or - for JSON lines on stdin, as they "
        "come; or, with --follow, a folder",
    )
    add(
        "--output",
        required=True,
        metavar="PATH",
        help=".csv, .parquet or .jsonl; - is JSON lines on stdout; kafka://host:port/topic a message a row; "
        "rows/, with its slash, a folder of files. Of stdin and --follow, .csv, .jsonl and - "
        "are there from the start and get each row when it is made; other files are written at the end",
    )
    _add_columns(parser)
    _add_labels(parser)
    _add_rows(parser)
    _add_job(parser)


def add_kafka_option(add: Callable[..., object]) -> None:
    """Add --kafka-option to a parser, or a group of one, by its `add_argument`."""
    add(
        "--kafka-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of librdkafka, for kafka://, such as security.protocol=SASL_SSL; or @FILE with a line each, "
        "for passwords; repeatable",
    )


def add_csv_safe(add: Callable[..., object]) -> None:
    """Add --csv-safe to a parser, or a group of one, by its `add_argument`."""
    add(
        "--csv-safe",
        action="store_true",
        help="in outputs that are CSV: an apostrophe before text that begins with = + - @, a tab or a line "
        "break, which a spreadsheet may run as a formula [as it is]",
    )


def add_fail_if(add: Callable[..., object]) -> None:
    """Add --fail-if to a parser, or a group of one, by its `add_argument`."""
    add(
        "--fail-if",
        action="append",
        default=[],
        metavar="RULE",
        help="end with exit status 4 where a counter of the job is so: 'dead_letters > 1%%' (of the events "
        "read), 'late >= 5', 'applied < 1000'; outputs are written all the same; repeatable",
    )


def _add_columns(parser: argparse.ArgumentParser) -> None:
    columns = parser.add_argument_group("columns")
    add = columns.add_argument
    add("--score", default="score", metavar="COL", help="higher = more likely positive [score]")
    add("--label", default="label", metavar="COL", help="1/0, 1/-1 or true/false, or see --positive [label]")
    add("--positive", metavar="VALUE", help="this label is positive, every other non-missing one negative")
    model = columns.add_mutually_exclusive_group()
    model.add_argument("--model", metavar="COL", help='[column "model" if there is one]')
    model.add_argument("--model-name", metavar="NAME", help="one model for all events [the file's name]")
    add(
        "--time",
        metavar="COL",
        help="RFC 3339 (no zone = UTC), dates, or numbers in --time-unit; events of equal time apply in "
        "order of --id, then of their own content, not of their place in the file",
    )
    add("--time-unit", choices=("s", "ms", "us", "ns"), default="s", help="of numeric times [s]")
    add(
        "--time-format",
        metavar="FORMAT",
        help="of times that are texts, or numbers such as 20240102, as Python's strptime reads it, such as "
        "'%%d/%%m/%%Y %%H:%%M' [RFC 3339, dates, or numbers]",
    )
    add("--weight", metavar="COL", help="what an event counts, a number > 0 [each counts 1]")
    add("--id", metavar="COL", help="orders events of one time; without it their order is arbitrary")
    add(
        "--predicted",
        metavar="COL",
        help="predicted class; labels are then classes and kappa is multi-class, and AUC and the other "
        "measures that need a positive class need --positive",
    )
    add(
        "--slice",
        action="append",
        default=[],
        metavar="COL[,COL]",
        help="rows for each value too, such as country=NZ, or of the cross COL,COL country=NZ,device=phone; "
        'slice "" is the whole model; repeatable',
    )
    add(
        "--slice-cap",
        metavar="N",
        help="so many values of a model and a slice have their own; all that come later, and the value other "
        "itself, are country=other [10000]",
    )


def _add_labels(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "labels that come later",
        "SOURCE then holds predictions; a label serves every prediction of its id, of any\n"
        "model, made within ttl of it. The time of an event is its label's.",
    ).add_argument
    add(
        "--labels", action="append", default=[], metavar="SOURCE", help="files or globs of labels; repeatable"
    )
    add("--label-time", metavar="COL", help="when the label came to be known [the column of --time]")
    add("--ttl", metavar="7d", help="a label counts that comes at most so long after its prediction [7d]")
    add("--label-lead", metavar="0s", help="or so long before it [as long as --ttl]")
    add(
        "--second-label",
        choices=("first", "last", "dead-letter"),
        help="which of two labels of an id counts; dead-letter: the first, the other is a mistake [first]",
    )


def add_windows(
    parser: argparse.ArgumentParser, window: str, every: str, whose: str
) -> Callable[..., object]:
    """Add windows, rows and order to a parser, with these defaults; return what adds to the same group.

    whose  rows are every so many events of
    """
    add = parser.add_argument_group("windows and rows").add_argument
    add(
        "--window",
        default=window,
        help="last:N events, last:7d (by --time; s, m, h, d), fading:N or fading:7d (a weight halves every N "
        "events, or so often), adaptive[:DELTA[:placement|error|brier]] (ADWIN: shrinks when ranking, errors "
        f"or Brier score change), all [{window}]. Beyond 2.4 million events held by a model a row costs a "
        "pass over them: give a large --every",
    )
    add(
        "--every",
        default=every,
        metavar="N|1h",
        help=f"a row every N events {whose}, or at each point of a grid of --time at which its window has "
        f"changed [{every}]",
    )
    add(
        "--order",
        metavar="ORDER",
        help="position | time | time:10m | arrival [time when --time is given, else position]. By time, "
        "events of equal time apply in order of --id, and without one in an arbitrary order, the same in "
        "every run; time:10m leaves out what is more than 10 minutes behind the greatest time before it in "
        "its file",
    )
    add(
        "--max-ahead",
        metavar="1d",
        help="events dated further ahead of the clock on the wall are dead letters [however far]",
    )
    return add


def _add_rows(parser: argparse.ArgumentParser) -> None:
    add = add_windows(parser, "last:10000", "100", "of a model and slice")
    add(
        "--deduplicate",
        metavar="7d",
        help="a second event with the same model and --id, and a --time within so long of the first one's, "
        "does not count: for sources that deliver again [every event counts]",
    )
    add(
        "--idle-ttl",
        metavar="30d",
        help="a model and slice without an event for longer, by --time, gives a last row and leaves memory; "
        "if it returns, its window begins empty and its rows are numbered on [never]",
    )
    add_measures(parser)


def add_measures(parser: argparse.ArgumentParser) -> None:
    """Add what rows say to a parser."""
    add = parser.add_argument_group("measures").add_argument
    add(
        "--measures",
        metavar="NAME,...",
        help="names of measures, or all [all but the costly ones: cost_curve_area, average_precision, "
        "calibration_error (also needs --probabilities), partial_auc, partial_auc_mcclish, polynomial_auc]",
    )
    add("--cost", default="beta:2,2", help="beta:A,B | severity[:RATIO|:balanced] | uniform [beta:2,2]")
    add("--priors", default="window", help="window, or the share of positives [window]")
    add("--threshold", default="0.5", help="predicted positive means score >= this [0.5]")
    add("--confidence", default="0.95", help="of the AUC interval [0.95]")
    add("--probabilities", action="store_true", help="scores are probabilities: Brier score, log loss")
    add("--partial-fpr", default="0:0.1", metavar="LOW:HIGH", help="range of FPR of partial_auc [0:0.1]")
    add("--at-fpr", default="0.01", help="false positive rate of tpr_at_fpr [0.01]")
    add("--false-positive-cost", default="0.2", help="c of cost_threshold [0.2]")
    add("--flip-if-below-half", action="store_true", help="H of -score while AUC < 0.5, as R's hmeasure")


def _add_job(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the job").add_argument
    add("--dead-letters", metavar="PATH", help="where malformed records go [counted and summarised]")
    add("--curves", metavar="PATH", help="ROC curves, their hulls and the calibration, a row a point [none]")
    add(
        "--curves-every",
        metavar="N",
        help="curves every N events of a model and slice and at its end, or end: at its end alone [as many "
        "events as the window holds, but at least 10000; end where the window is not last:N]",
    )
    add(
        "--alert",
        action="append",
        default=[],
        metavar="RULE",
        help="opens an alert and closes it: 'auc_high < 0.8 for 3 rows', 'kappa_m < 0 for 2h until kappa_m > "
        "0.1', 'auc drops by 0.02 against 7d' (or 500 rows, or 2013-01-01..2013-02-01); repeatable",
    )
    add("--alerts", metavar="PATH", help="where alerts go [the last 20 are printed at the end]")
    add(
        "--parts",
        choices=("jsonl", "parquet"),
        default="jsonl",
        help="format of the files in an output that is a folder [jsonl]",
    )
    add_csv_safe(add)
    add_kafka_option(add)
    add("--report", metavar="PATH", help="one self-contained page about it all, such as report.html [none]")
    add("--title", metavar="TEXT", help="stands above the page of --report")
    add(
        "--follow",
        action="store_true",
        help="SOURCE is a folder: read each file as it appears there, finished by rename, once; go on until "
        "there is a file _END, or until Ctrl-C, which ends stdin too: the last rows come, and the summary; "
        "on runner flink or prism its files are JSON lines, in order of their names, and the last may grow",
    )
    add(
        "--start",
        metavar="WHERE",
        help="in a topic: earliest, latest, or a time of its messages, RFC 3339 [earliest]",
    )
    add(
        "--until",
        metavar="WHERE",
        help="read a topic up to latest, where it ends now, or up to a time of its messages [for ever]",
    )
    add(
        "--partition-idle",
        metavar="30s",
        help="by --time, a partition of a topic that is silent for so long is not waited for; events of it "
        "that come behind the others are then late [all partitions are waited for]",
    )
    add("--until-idle", metavar="60s", help="with --follow: end after so long without a new file [never]")
    add(
        "--prometheus",
        metavar="[HOST]:PORT",
        help="serve counters for Prometheus there while the job runs in this process: :9100 is for this "
        "machine alone, 0.0.0.0:9100 for all that reach it [none]",
    )
    add(
        "--prometheus-models",
        default="100",
        metavar="N",
        help="show AUC, its interval and H of the newest row of so many models, the first that come [100]",
    )
    add(
        "--export-state",
        metavar="DIR",
        help="write the state behind the last event to a new folder, instead of last rows: a job with "
        "--import-state DIR goes on from there as if its input followed in this one",
    )
    add("--import-state", metavar="DIR", help="begin with the state that an export left [empty]")
    add(
        "--control",
        metavar="PATH",
        help="of a stream: a file by which rocsteady state export asks for the state while it runs",
    )
    add("--shards", default="64", metavar="N", help="models are spread over so many keys [64]")
    add(
        "--own-shard",
        action="append",
        default=[],
        metavar="MODEL",
        help="this model gets a shard of its own, beside the others: for one with most of the events; "
        "repeatable",
    )
    add("--cache-bytes", metavar="N", help="memory for live state in a worker")
    add_fail_if(add)
    add("--runner", default="local", help=RUNNERS)
