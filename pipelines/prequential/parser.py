"""The options of `rocsteady prequential` as its parser knows them: `options` reads them."""

from __future__ import annotations

import argparse

from ..evaluate.parser import RUNNERS, add_fail_if, add_measures, add_windows

PREQUENTIAL_EPILOG = """examples:
  four learners, ten folds each, on the price of electricity:
    rocsteady prequential electricity.csv.gz --label class --positive UP --learner majority \\
        --learner naive-bayes --learner hoeffding --learner logistic --folds 10 --window last:1000 \\
        --every 1000 --output out
  a classifier of your own (a function or class without arguments, or with seed=), beside itself with noise:
    rocsteady prequential data.parquet --learner mine=package.module:make --learner hoeffding --output out
  seven classes, by cross-validation over scikit-learn's SGD, which learns from 100 instances at a time:
    rocsteady prequential covtype.csv.gz --label Cover_Type --multiclass --method cv --batch 100 \\
        --learner sgd=sklearn.linear_model:SGDClassifier --learner majority --output out

  a stream that is made up, whose concept drifts:
    rocsteady prequential 'generate://sea:500?count=50000&seed=3&drift=25000' --learner hoeffding \\
        --learner naive-bayes --window adaptive --output out

Learners: majority, majority:N, majority:all, persistent, logistic, naive-bayes, hoeffding, adaptive-forest,
aum, polynomial-auc, or [NAME=]module:factory. Made-up streams: sea[:WIDTH], hyperplane[:N:SPEED],
rbf[:N:SPEED], led[:WIDTH], agrawal[:WIDTH], with count, seed, drift, width and noise. Every other option is
handed to Beam. DIR gets rows.parquet, comparisons.parquet, means.parquet, dead_letters.parquet and
report.html."""


def add_prequential(parser: argparse.ArgumentParser) -> None:
    """Add sources and options, group by group, as --help shows them."""
    add = parser.add_argument
    add(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="files or globs: .csv .csv.gz .parquet .jsonl .jsonl.gz; or "
        "generate://NAME?count=N, a stream that is made up",
    )
    add("--output", required=True, metavar="DIR", help="the folder for the tables and the page")
    learners = parser.add_argument_group("learners and folds").add_argument
    learners("--learner", action="append", required=True, metavar="NAME", help="see below; repeatable")
    learners(
        "--method",
        choices=("bootstrap", "cv", "split"),
        default="bootstrap",
        help="bootstrap: a fold trains on an instance Poisson(1) times; cv: all folds but one train on "
        "it; split: one fold trains on it [bootstrap]",
    )
    learners("--folds", default="10", metavar="K", help="copies of every learner, 2 or more [10]")
    learners(
        "--no-prequential",
        action="store_true",
        help="test what a fold does not train on [a fold tests exactly what it trains on, just before]",
    )
    learners("--seed", default="1", metavar="N", help="deals folds anew, and seeds random learners [1]")
    learners("--noise", default="0", metavar="P", help="predictions are flipped with this probability [0]")
    learners("--batch", default="1", metavar="N", help="instances that a fold tests and learns at a time [1]")
    learners(
        "--trust-learners",
        action="store_true",
        help="let --learner NAME=FILE.pickle be read, which runs the code in it [refused]",
    )
    columns = parser.add_argument_group("columns").add_argument
    columns("--label", default="label", metavar="COL", help="1/0, 1/-1 or true/false, or see below [label]")
    columns(
        "--positive", metavar="VALUE", help="this label is positive, every other non-missing one negative"
    )
    columns("--multiclass", action="store_true", help="labels are classes, of which none is the positive one")
    columns("--time", metavar="COL", help="RFC 3339 (no zone = UTC), dates, or numbers in --time-unit")
    columns("--time-unit", choices=("s", "ms", "us", "ns"), default="s", help="of numeric times [s]")
    columns(
        "--time-format",
        metavar="FORMAT",
        help="of times that are texts, or numbers such as 20240102, as Python's strptime reads it, such as "
        "'%%d/%%m/%%Y %%H:%%M' [RFC 3339, dates, or numbers]",
    )
    columns("--id", metavar="COL", help="deals an instance to folds [its file and place in it]")
    columns(
        "--feature",
        action="append",
        default=[],
        metavar="COL",
        help="repeatable [every column but those above]",
    )
    columns(
        "--category",
        action="append",
        default=[],
        metavar="COL",
        help="this feature is text though it looks like a number; repeatable",
    )
    add_windows(parser, window="last:1000", every="1000", whose="of the stream")
    add_measures(parser)
    tests = parser.add_argument_group("tests").add_argument
    tests(
        "--compare",
        action="append",
        default=[],
        metavar="NAME",
        help="a measure by which learners are compared over folds; repeatable [auc and accuracy; of classes "
        "accuracy and kappa]",
    )
    tests("--alpha", metavar="P", help="the level at which one is said to be better [0.05]")
    job = parser.add_argument_group("the job").add_argument
    job("--title", metavar="TEXT", help="stands above the page")
    job("--cache-bytes", metavar="N", help="memory for live state in a worker")
    add_fail_if(job)
    job("--runner", default="local", help=RUNNERS)
    parser.set_defaults(curves=None, curves_every=None, report=None, predicted=None)
