"""The arguments of `rocsteady evaluate`, in the groups that --help shows. `options` reads their values."""

from __future__ import annotations

from ...core.rows.measure_table import MEASURE_TABLE, PROBABILITIES
from ...core.settings.evaluator import EvaluatorSettings, declared
from ...core.settings.table import SPANS, TableSettings
from ..arguments import (
    CACHE_BYTES,
    CHECKPOINT_NEW,
    CSV_SAFE,
    DEPENDENT,
    FAIL_IF,
    KAFKA_OPTION,
    OTLP,
    POSITIVE,
    REFERENCE,
    RUNNER,
    STALE,
    TIME_FORMAT,
    TIME_UNIT,
    TIMES,
    Argument,
    Either,
    Group,
    option_of,
    repeatable,
    switch,
)

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
  more than two classes, with a column of scores for each, p_cat, p_dog and p_owl:
    rocsteady evaluate s.csv --class-scores 'p_*' --label animal --output rows.csv
  predictions, and labels that came up to three days later:
    rocsteady evaluate predictions.parquet --time made --id order --labels labels.parquet \\
        --label-time known --ttl 3d --output rows.parquet --dead-letters left_over.parquet
  predictions and their labels as they come, in one pipe:
    producer | rocsteady evaluate - --time made --id order --label-records kind=label --label-time known \\
        --ttl 3d --output rows.jsonl
  events as they come, from a program, in files of a folder, or in a topic:
    tail -f events.jsonl | rocsteady evaluate - --every 1000 --output -
    rocsteady evaluate arriving --follow --every 1000 --output rows.jsonl
    rocsteady evaluate kafka://localhost:9092/scored --time time --output kafka://localhost:9092/rows
  be told when a model ranks badly, and when it ranks worse than a week before:
    rocsteady evaluate s.csv --time sent --every 1h --output rows.parquet --alerts alerts.csv \\
        --alert 'auc_high < 0.8 for 3 rows' --alert 'auc drops by 0.02 against 7d'

  a challenger against the champion: scores of both in a record, or models of one file by the events' ids:
    rocsteady evaluate s.csv --score new --against old --label y --pairs pairs.csv
    rocsteady evaluate scores.parquet --id order --time sent --champion v1 --pairs pairs.csv --output r.csv

Exit status 0: done; 3: records came and none was applied; 4: a rule of --fail-if holds; 2: arguments or input
were found wrong before the job; 1: the job failed later. With 3 and 4 all outputs are written.

Every other option is handed to Beam. Positions of dead letters count the records of a source from 0.
A stream is never sorted as a whole: of stdin, and with --follow, --order time is time:0s."""


def default_text(settings: type, name: str) -> str | None:
    """Return the default of a setting as an option's text; None for a setting without a default.

    >>> default_text(EvaluatorSettings, "cost")
    'beta:2,2'
    """
    default = getattr(settings, name)
    if isinstance(default, tuple):
        return ":".join(f"{end:g}" for end in default)
    return None if default is None else str(default)


def setting_option(settings: type, name: str) -> Argument:
    """Return the option of a declared setting."""
    setting = declared(settings)[name]
    if getattr(settings, name) is False:
        return switch(option_of(name), setting.about)
    return Argument(option_of(name), setting.metavar, setting.about, default_text(settings, name))


def windows(window: str, every: str, whose: str, *more: Argument) -> Group:
    """Return the group of options on windows, rows and order.

    window, every  the defaults
    whose          whose events the option `every` counts, for the help
    """
    return Group("windows and rows", (
        Argument("--window", None,
            "last:N events, last:7d (by --time; s, m, h, d), fading:N or fading:7d (a weight halves every N "
            "events, or so often), adaptive[:DELTA[:placement|error|brier]] (ADWIN: shrinks when ranking, "
            "errors or Brier score change), all [%(default)s]. Beyond 2.4 million events held by a model a "
            "row costs a pass over them: give a large --every", window),
        Argument("--every", "N|1h",
            f"a row every N events {whose}, or at each point of a grid of --time at which its window has "
            "changed", every),
        Argument("--order", "ORDER",
            "position | time | time:10m | arrival [time when --time is given, else position]. By time, "
            "events of equal time apply in order of --id, and without one in an arbitrary order, the same in "
            "every run; time:10m leaves out what is more than 10 minutes behind the greatest time before it "
            "in its file"),
        Argument("--max-ahead", "1d",
            "events dated further ahead of the clock on the wall are dead letters [however far]"),
        *more,
    ))  # fmt: skip


_COSTLY = [
    measure.name + " (also needs --probabilities)" * (PROBABILITIES in measure.needs)
    for measure in MEASURE_TABLE
    if measure.reads and not measure.beside
]

MEASURES = Group("measures", (
    Argument("--measures", "NAME,...",
        f"names of measures, or all [all but the costly ones: {', '.join(_COSTLY)}]"),
    *(setting_option(EvaluatorSettings, name) for name in declared(EvaluatorSettings)),
))  # fmt: skip

_COLUMNS = Group("columns", (
    repeatable("--score", "COL",
        "higher = more likely positive [score]; repeatable: each column is then a model of its own, COL, or "
        "MODEL/COL where there is a column of models or --model-name"),
    Argument("--label", "COL", "1/0, 1/-1 or true/false, or see --positive and --class-scores", "label"),
    POSITIVE,
    Argument("--class-scores", "'p_*'",
        "more than two classes: the columns of the scores of each class, instead of --score; the star stands "
        "for the name of the class, which --label gives. Or a list, p_cat,p_dog, or cat=COL,dog=COL"),
    Argument("--multi-label", "'y_*'",
        "with --class-scores, an event may be of any number of classes: the columns that say so of each "
        "class, 1/0 or true/false, instead of --label"),
    Either((
        Argument("--model", "COL", '[column "model" if there is one]'),
        Argument("--model-name", "NAME", "one model for all events [the file's name]"),
    )),
    Argument("--time", "COL",
        f"{TIMES}; events of equal time apply in order of --id, then of their own content, not of their "
        "place in the file"),
    TIME_UNIT,
    TIME_FORMAT,
    Argument("--weight", "COL", "what an event counts, a number > 0 [each counts 1]"),
    Argument("--id", "COL", "orders events of one time; without it their order is arbitrary"),
    Argument("--predicted", "COL",
        "predicted class; labels are then classes and kappa is multi-class, and AUC and the other measures "
        "that need a positive class need --positive"),
    repeatable("--slice", "COL[,COL]",
        "rows for each value too, such as country=NZ, or of the cross COL,COL country=NZ,device=phone; "
        'slice "" is the whole model; repeatable'),
    *(setting_option(TableSettings, name) for name in declared(TableSettings) if name not in SPANS),
))  # fmt: skip

_LABELS = Group("labels that come later", (
    repeatable("--labels", "SOURCE",
        "files or globs of labels; or topics, where SOURCE is a topic; or folders, with --follow; "
        "repeatable"),
    Argument("--label-records", "COL=VALUE",
        "records of stdin with this value in this column are labels, such as kind=label; the others are "
        "predictions"),
    Argument("--label-time", "COL", "when the label came to be known [the column of --time]"),
    Argument("--ttl", "7d", "a label counts that comes at most so long after its prediction [7d]"),
    Argument("--label-lead", "0s", "or so long before it [as long as --ttl]"),
    Argument("--second-label", None,
        "which of two labels of an id counts; dead-letter: the first, the other is a mistake [first]",
        choices=("first", "last", "dead-letter")),
),
    "SOURCE then holds predictions; a label serves every prediction of its id, of any\n"
    "model, made within ttl of it. The time of an event is its label's.")  # fmt: skip

_PAIRS = Group("models compared with a champion", (
    Argument("--pairs", "PATH",
        "where rows of pairs go: both AUCs of the window's instances, their difference with DeLong's "
        "interval, and a verdict on all instances so far that holds at any time [none]"),
    Argument("--champion", "MODEL", "compare every other model with this one, over the events of one --id"),
    Argument("--against", "COL",
        "a further column of scores: compare the models of the other --score columns with its model, over "
        "the same records"),
    Argument("--pair-within", "1d",
        "an event waits so long, by --time, for the event of its id in the other model [1d; with --labels "
        "0s; without --time to the end of the input]"),
    Argument("--anytime-at", "N", "the verdict is sharpest after so many instances [10000]"),
),
    "An instance that one of both scored alone counts in only_model or only_against.")  # fmt: skip

_JOB = Group("the job", (
    Argument("--dead-letters", "PATH", "where malformed records go [counted and summarised]"),
    Argument("--curves", "PATH", "ROC curves, their hulls and the calibration, a row a point [none]"),
    Argument("--curves-every", "N",
        "curves every N events of a model and slice and at its end, or end: at its end alone [as many "
        "events as the window holds, but at least 10000; end where the window is not last:N]"),
    Argument("--curves-points", None,
        "thinned: a point within 1/200 of the point before it, in both rates, is left out, and the area "
        "under the points differs from the AUC by up to 1/200; all: a point for each score of the window "
        "[thinned]",
        choices=("thinned", "all")),
    repeatable("--roll-up", "GROUPS",
        "what the rows of a group say together at each point of --every 1h: models, one group of all models; "
        "slices, a group for each model and column of --slice; 'team1/*', models of a pattern; repeatable"),
    Argument("--roll-ups", "PATH", "where roll-up rows go"),
    STALE,
    DEPENDENT,
    repeatable("--alert", "RULE",
        "opens an alert and closes it: 'auc_high < 0.8 for 3 rows', 'kappa_m < 0 for 2h until kappa_m > "
        "0.1', 'auc drops by 0.02 against 7d' (or 500 rows, or 2013-01-01..2013-02-01), 'auc surely < 0.8 at "
        "1e6' (evidence, with one false alarm in 1e6 blocks at most), 'auc surely drops by 0.02 against "
        "2026-01..2026-02 at 1e6'; at its end may stand "
        "\"where slice = '' and model like 'team1/*'\" and 'at most 3 a day'; repeatable"),
    Argument("--false-alarms", "'N per M'",
        "of rules such as 'auc surely < 0.8': at most N in M events over all models and slices, in the mean; "
        "the rules share it, and a rule with 'at 1e6' has its own rate, one in so many blocks of evidence"),
    Argument("--alerts", "PATH", "where alerts go [the last 20 are printed at the end]"),
    Argument("--alert-exec", "CMD",
        "run for each alert that opens or closes, without a shell, with the alert as a line of JSON on its "
        "stdin; killed after 30 s"),
    Argument("--alert-post", "URL",
        "post each alert there as JSON, with an Idempotency-Key; repeated where the server does not answer"),
    Argument("--parts", None,
        "format of the files in an output that is a folder", "jsonl", choices=("jsonl", "parquet")),
    CSV_SAFE,
    KAFKA_OPTION,
    Argument("--report", "PATH", "one self-contained page about it all, such as report.html [none]"),
    Argument("--title", "TEXT", "stands above the page of --report or --serve"),
    REFERENCE,
    switch("--follow",
        "SOURCE is a folder: read each file as it appears there, once; JSON lines may grow until the next "
        "file comes, others are finished by rename; go on until there is a file _END, or until Ctrl-C, "
        "which ends stdin too: the last rows come, and the summary; the same on runners flink and prism"),
    Argument("--kafka-format", None,
        "what the messages of topics that are read are: json, an object or an array of objects; arrow, an "
        "Arrow IPC stream of events in columns, which costs less [json]",
        choices=("json", "arrow")),
    Argument("--start", "WHERE",
        "in a topic: earliest, latest, or a time of its messages, RFC 3339 [earliest]"),
    Argument("--until", "WHERE",
        "read a topic up to latest, where it ends now, or up to a time of its messages [for ever]"),
    Argument("--partition-idle", "30s",
        "by --time, a partition of a topic that is silent for so long is not waited for; events of it that "
        "come behind the others are then late [all partitions are waited for]"),
    Argument("--until-idle", "60s", "with --follow: end after so long without anything new [never]"),
    Argument("--serve", "[HOST]:PORT",
        "of a stream in this process: serve a page that shows the rows while they are made, as rocsteady "
        "serve does: :8080 is for this machine alone [none]"),
    Argument("--serve-token", "@FILE",
        "who may look at the page: a file whose first line is a secret, or the secret itself; needed beyond "
        "this machine"),
    Argument("--prometheus", "[HOST]:PORT",
        "serve counters for Prometheus there while the job runs in this process: :9100 is for this machine "
        "alone, 0.0.0.0:9100 for all that reach it [none]"),
    Argument("--prometheus-models", "N",
        "with --prometheus and --otlp: show the newest row of so many models and so many slices, the first "
        "that come", "100"),
    OTLP,
    Argument("--export-state", "DIR",
        "write the state behind the last event to a new folder, instead of last rows: a job with "
        "--import-state DIR goes on from there as if its input followed in this one"),
    Argument("--import-state", "DIR", "begin with the state that an export left [empty]"),
    Argument("--control", "PATH",
        "of a stream: a file by which rocsteady state export asks for the state while it runs"),
    Argument("--checkpoint", "DIR",
        "of a stream with --runner local: keep the state and the offsets in this folder, so that the same "
        "command goes on where a job was killed; Ctrl-C stops such a job, without last rows [none]"),
    Argument("--checkpoint-every", "30s", "how often the state is written [30s]"),
    CHECKPOINT_NEW,
    Argument("--shards", "N", "models are spread over so many keys", "64"),
    repeatable("--own-shard", "MODEL",
        "this model gets a shard of its own, beside the others: for one with most of the events; "
        "repeatable"),
    CACHE_BYTES,
    FAIL_IF,
    RUNNER,
))  # fmt: skip

EVALUATE = (
    Argument("sources", "SOURCE",
        "files or globs: .csv .csv.gz .parquet .jsonl .jsonl.gz; or a folder that has folders key=value, "
        "which are columns; or a topic, kafka://host:port/topic; or - for JSON lines on stdin, as they come; "
        "or, with --follow, a folder", takes="words"),
    Argument("--output", "PATH",
        ".csv, .parquet or .jsonl; - is JSON lines on stdout; kafka://host:port/topic a message a row; "
        "rows/, with its slash, a folder of files. Of stdin and --follow, .csv, .jsonl and - are there from "
        "the start and get each row when it is made; other files are written at the end [a table of the "
        "models, worst first, on stdout]"),
    _COLUMNS,
    _LABELS,
    windows("last:10000", "100", "of a model and slice",
        *(setting_option(TableSettings, name) for name in SPANS)),
    MEASURES,
    _PAIRS,
    _JOB,
)  # fmt: skip
