"""The arguments of `rocsteady prequential`, in the groups that --help shows. `command` reads their values."""

from __future__ import annotations

from ..arguments import (
    ALPHA,
    CACHE_BYTES,
    FAIL_IF,
    POSITIVE,
    RUNNER,
    TIME_FORMAT,
    TIME_UNIT,
    TIMES,
    TITLE,
    Argument,
    Group,
    repeatable,
    switch,
)
from ..evaluate.parser import MEASURES, windows

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
  the same classes, with AUCs of each class and of all of them:
    rocsteady prequential covtype.csv.gz --label Cover_Type --class-scores '*' --learner naive-bayes \\
        --learner hoeffding --output out

  a stream that is made up, whose concept drifts:
    rocsteady prequential 'generate://sea:500?count=50000&seed=3&drift=25000' --learner hoeffding \\
        --learner naive-bayes --window adaptive --output out

Learners: majority, majority:N, majority:all, persistent, logistic, naive-bayes, hoeffding, adaptive-forest,
aum, polynomial-auc, or [NAME=]module:factory. Made-up streams: sea[:WIDTH], hyperplane[:N:SPEED],
rbf[:N:SPEED], led[:WIDTH], agrawal[:WIDTH], with count, seed, drift, width and noise. Every other option is
handed to Beam. DIR gets rows.parquet, comparisons.parquet, means.parquet, dead_letters.parquet and
report.html."""

_LEARNERS = Group("learners and folds", (
    repeatable("--learner", "NAME", "see below; repeatable", required=True),
    Argument("--method", None,
        "bootstrap: a fold trains on an instance Poisson(1) times; cv: all folds but one train on it; "
        "split: one fold trains on it", "bootstrap", choices=("bootstrap", "cv", "split")),
    Argument("--folds", "K", "copies of every learner, 2 or more", "10"),
    switch("--no-prequential",
        "test what a fold does not train on [a fold tests exactly what it trains on, just before]"),
    Argument("--seed", "N", "deals folds anew, and seeds random learners", "1"),
    Argument("--noise", "P", "predictions are flipped with this probability", "0"),
    Argument("--batch", "N", "instances that a fold tests and learns at a time", "1"),
    switch("--trust-learners", "let --learner NAME=FILE.pickle be read, which runs the code in it [refused]"),
))  # fmt: skip

_COLUMNS = Group("columns", (
    Argument("--label", "COL", "1/0, 1/-1 or true/false, or see below", "label"),
    POSITIVE,
    switch("--multiclass", "labels are classes, of which none is the positive one"),
    Argument("--class-scores", "'*'",
        "labels are classes, and learners give a score of each: a,b,c, or '*' for all classes of the first "
        "100,000 records"),
    Argument("--time", "COL", TIMES),
    TIME_UNIT,
    TIME_FORMAT,
    Argument("--id", "COL", "deals an instance to folds [its file and place in it]"),
    repeatable("--feature", "COL", "repeatable [every column but those above]"),
    repeatable("--category", "COL", "this feature is text though it looks like a number; repeatable"),
))  # fmt: skip

_TESTS = Group("tests", (
    repeatable("--compare", "NAME",
        "a measure by which learners are compared over folds; repeatable [auc and accuracy; with "
        "--class-scores auc_macro and accuracy; with --multiclass accuracy and kappa]"),
    ALPHA,
))  # fmt: skip

PREQUENTIAL = (
    Argument("sources", "SOURCE",
        "files or globs: .csv .csv.gz .parquet .jsonl .jsonl.gz; or generate://NAME?count=N, a stream that "
        "is made up", takes="words"),
    Argument("--output", "DIR", "the folder for the tables and the page", required=True),
    _LEARNERS,
    _COLUMNS,
    windows("last:1000", "1000", "of the stream"),
    MEASURES,
    _TESTS,
    Group("the job", (TITLE, CACHE_BYTES, FAIL_IF, RUNNER)),
)  # fmt: skip
