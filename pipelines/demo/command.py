"""`rocsteady demo`: online learners on a year of real flights, evaluated as the flights land.

At each scheduled departure, every learner predicts how likely the flight is to land late. The label exists
when the flight has landed. Predictions and labels are two streams, both out of order (`streams`). They go
through the job that `rocsteady evaluate PREDICTIONS --labels LABELS` runs: joined by the flight's id and
evaluated in order of landing. Windows are sliding per learner and per (learner, carrier), and adaptive per
learner. Naive Bayes is the champion, and the other learners are compared with it, flight by flight.

A cancelled or diverted flight is predicted too, but its label never comes: its predictions become unmatched
dead letters. Every other record that does not count becomes a dead letter with its reason. At the end, the
counts must add up to the input, for every learner and for the labels, or the demo fails.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from ...core.errors import ConfigError, InputError, RocsteadyError
from ...core.join.join_settings import JoinSettings
from ...core.pairs.pair_settings import PairSettings
from ...core.process.console import say, show
from ...core.rows.pairs import UNDECIDED
from ...core.settings.against import Against
from ...core.settings.durations import duration_text
from ...core.settings.evaluator import EvaluatorSettings
from ...core.settings.table import TableSettings
from ...core.settings.windows import Adaptive, EveryEvents, LastEvents
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ...core.state.compile_ahead import compiled_ahead
from ...runners.presets import choose_runner
from ...transforms.events.fields import EventFields
from ...transforms.sinks.table import check_output
from ...transforms.sources.files.listing import list_sources
from ..arguments import refuse_given
from ..evaluate.job import Beside, Evaluation, Join
from ..evaluate.on_beam import evaluate_and_report
from ..evaluate.pairs import Pairs
from ..outputs import check_outputs
from ..report.report import check_report_path
from .flights import LATE_MINUTES, MINUTE
from .learners import MAJORITY_WINDOW, Training, train
from .start import made, tell, training_line
from .streams import LONGEST_WAY

_EVERY = 1_000
_SHARDS = 64

TTL = 3 * 24 * 60 * MINUTE
"""Microseconds that a prediction waits for its label; the longest wait in the data is 32 hours 42 minutes."""

ADAPTIVE = Adaptive(1e-20, "placement")
"""ADWIN assumes independent events, but flights of one day are late together: a small delta compensates.

Logistic regression has 327 rows, each after 1,000 more landings. At delta .002, 233 rows report drift (the
median window holds 1,403 landings, a day and a half); 173 at 1e-6, 82 at 1e-20 (a week), 25 at 1e-40 (18,646
landings: three weeks). The other signals report drift as often: at .002, error in 241 rows, brier in 230.
"""

CHAMPION = "naive-bayes"
"""The learner that the others are compared with."""

_TITLE = f"Flights from New York, 2013: who lands {LATE_MINUTES} minutes late or more?"
_FATES = ("unmatched", "late", "duplicate", "invalid")
_HEAD = f"  {'learner':<13}  {'AUC [95% interval]':<23} {'H':>6} {'KS':>6} {'kappa':>6} {'kappa_m':>8}  "


def demo_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    if options.live:
        from .live import run_live

        return run_live(options.output, options.serve, anew=options.checkpoint_new)
    refuse_given(options, ": the page is that of --live; say it too", "serve")
    if options.checkpoint_new:
        raise ConfigError("--checkpoint-new: checkpoints are those of --live; say it too")
    return run_demo(options.output)


def run_demo(output: str, *, first: int | None = None) -> int:
    """Train the learners or use cached predictions; evaluate, print tables, write the report and its data.

    `first` limits the run to the first departures.
    """
    if not output:
        raise InputError("--output '': name a folder")
    folder = Path(output)
    names = ("rows", "adaptive", "curves", "dead_letters", "pairs")
    rows, adaptive, curves, dead_letters, pairs = paths = [folder / f"{name}.parquet" for name in names]
    page = folder / "report.html"
    with made(folder):
        files = [("--output", str(path), path.stem, check_output) for path in paths]
        check_outputs([*files, ("--output", str(page), "report", check_report_path)], ())
        sliding, every = LastEvents(MAJORITY_WINDOW), EveryEvents(_EVERY)
        evaluator = EvaluatorSettings(sliding, every, order="time", curves=EveryEvents(MAJORITY_WINDOW))
        settings = TableSettings(evaluator, (("carrier",),), _SHARDS)
        in_adaptive = TableSettings(EvaluatorSettings(ADAPTIVE, every, order="time"), (), _SHARDS)
        how = PairSettings(sliding, EveryEvents(MAJORITY_WINDOW))
        compared = Pairs(str(pairs), Against(CHAMPION, within=0), how, most_shards=1)
        join = JoinSettings(TTL, lead=0, evaluator_shards=compared.shards(settings))
        with compiled_ahead(settings, in_adaptive, join):
            with training_line() as report:
                training = train(report, first=first)
            tell(training)
            job = Evaluation(
                sources=list_sources([str(training.predictions)]),
                fields=EventFields(model="model", time="time", id="id", slices=(("carrier",),)),
                settings=settings,
                output=str(rows),
                dead_letters=str(dead_letters),
                cache_bytes=DEFAULT_CACHE_BYTES,
                runner=choose_runner("local"),
                curves=str(curves),
                report=str(page),
                title=_TITLE,
                notes=(_note(training),),
                beside=(Beside(in_adaptive, str(adaptive)),),
                join=Join(list_sources([str(training.labels)]), "time", join),
                pairs=compared,
            )
            counts = evaluate_and_report(job).counts
    evaluated, changing = parquet.read_table(rows), parquet.read_table(adaptive)
    say(f"in the window {ADAPTIVE}: {changing.num_rows:,} rows in {adaptive}")
    show(*_report(evaluated, changing, training.models).split("\n"))
    show(*_compared(parquet.read_table(pairs)).split("\n"))
    show(*_accounts(training, evaluated, parquet.read_table(dead_letters), counts).split("\n"))
    show("", f"The year in charts, and when each learner ranked worse: open {page} in a browser")
    return 0


def _note(training: Training) -> str:
    return (
        f"{training.flights:,} scheduled departures, each predicted by {len(training.models)} learners and "
        "learnt from when it has landed. Predictions, made at the scheduled departure, and labels, known at "
        "the landing, are two streams, joined by flight; both are out of order, as each record was held back "
        f"at random for up to {duration_text(LONGEST_WAY)}. {training.unlabelled:,} flights were cancelled "
        "or diverted, so that their labels never came: their predictions are the unmatched ones, one of each "
        "learner. Every learner is evaluated in two windows: its last "
        f"{MAJORITY_WINDOW:,} landings ({LastEvents(MAJORITY_WINDOW)}), and those since its AUC last changed "
        f"({ADAPTIVE})."
    )


def _report(rows: pa.Table, adaptive: pa.Table, models: Sequence[str]) -> str:
    """Return the demo's tables as text.

    Each learner's last measures and adaptive window, and the AUC per carrier.
    """
    columns = _columns(rows)
    whole, full = columns["slice"] == "", columns["window_events"] == MAJORITY_WINDOW
    question = f"Does the flight land {LATE_MINUTES} minutes late or more?"
    lines = [f"\n{question} The last {MAJORITY_WINDOW:,} landings:\n", f"{_HEAD}AUC over 2013"]
    for model in models:
        of_model = whole & (columns["model"] == model)
        lines.append(f"{_learner(columns, of_model)}  {_range(columns, np.flatnonzero(of_model & full))}")
    lines.append(f"\nThe landings since each learner's AUC last changed, an adaptive window ({ADAPTIVE}):\n")
    lines.append(f"{_HEAD}{'held':>7}  {'at most':>7}  drift")
    changing = _columns(adaptive)
    for model in models:
        of_model = changing["model"] == model
        lines.append(f"{_learner(changing, of_model)}  {_held(changing, of_model)}")
    lines.append(f"\nAUC per carrier, the last {MAJORITY_WINDOW:,} landings of each at the most:\n")
    lines.append(f"  {'carrier':<8} {'landings':>8} {'late':>6}  " + "".join(f"{m:>15}" for m in models))
    slices = sorted({str(name) for name in columns["slice"][~whole]})
    for name in slices:
        last_of = [
            np.flatnonzero((columns["slice"] == name) & (columns["model"] == model))[-1] for model in models
        ]
        shown = "".join(f"{_shown(columns['auc'][row]):>15}" for row in last_of)
        events, share = columns["window_events"][last_of[0]], columns["prevalence"][last_of[0]]
        lines.append(f"  {name.partition('=')[2]:<8} {events:>8,} {share:>6.1%}  {shown}")
    return "\n".join(lines)


def _compared(pairs: pa.Table) -> str:
    """Return the table of the pairs of learners.

    The last difference, how many windows differ, and the verdict.
    """
    columns = _columns(pairs)
    head = f"  {'learner':<13}  {'last difference [95%]':<25} {'better in':>9} {'worse in':>9}  "
    lines = [
        f"\nAUC less that of {CHAMPION}, on the same landings, in windows of {MAJORITY_WINDOW:,}:\n",
        f"{head}verdict on all landings",
    ]
    for model in sorted({str(name) for name in columns["model"]}):
        rows = np.flatnonzero((columns["model"] == model) & (columns["slice"] == ""))
        at, low, high = (columns[name][rows] for name in ("difference", "difference_low", "difference_high"))
        better, worse = np.count_nonzero(low > 0), np.count_nonzero(high < 0)
        found = f"{at[-1]:+.4f} [{low[-1]:+.3f}, {high[-1]:+.3f}]"
        lines.append(
            f"  {model:<13}  {found:<25} {better:>3} of {len(rows):>2} {worse:>3} of {len(rows):>2}  "
            f"{_verdicts(columns, rows)}"
        )
    return "\n".join(lines)


def _verdicts(columns: dict[str, Any], rows: Any) -> str:
    """Return the verdicts of a pair that are not "undecided", each with the day of its first row."""
    found: dict[str, str] = {}
    for row in rows:
        found.setdefault(str(columns["verdict"][row]), _day(columns["time"][row]))
    return ", ".join(f"{each} ({day})" for each, day in found.items() if each != UNDECIDED) or UNDECIDED


def _accounts(training: Training, rows: pa.Table, letters: pa.Table, counts: Mapping[str, int]) -> str:
    """Return sentences on how many predictions and labels were applied or lost, counted in the job's outputs.

    rows, letters  the tables of rows and of dead letters
    counts         the job's counters, because rows do not say how many labels were used

    Raises RocsteadyError unless every prediction and label is accounted for.
    """
    columns = _columns(rows.select(["model", "slice", "seq"]))
    whole = columns["slice"] == ""
    # If a model has several rows, dict keeps the last.
    applied = dict(zip(columns["model"][whole], columns["seq"][whole].tolist(), strict=True))
    gone = Counter(zip(*(letters[name].to_pylist() for name in ("source", "model", "kind")), strict=True))
    predictions, labels = (
        list_sources([str(path)])[0].name for path in (training.predictions, training.labels)
    )
    streams: list[tuple[str, str | None, int, int]] = [
        (predictions, model, training.flights, applied.get(model, 0)) for model in training.models
    ]
    streams.append((labels, None, training.landed, counts["labels_used"]))
    way = duration_text(LONGEST_WAY)
    lines = [
        f"\nPredictions and labels came apart and out of order, up to {way} after their time. They became:\n",
        f"  {'learner':<13}  {'came':>8}   {'applied':>8}" + "".join(f"   {fate:>9}" for fate in _FATES),
    ]
    for source, model, came, used in streams:
        name = model or "labels"
        fates = [gone[source, model, fate] for fate in _FATES]
        known = used + sum(fates)
        if known != came:
            told = ", ".join(f"{number:,} {fate}" for fate, number in zip(_FATES, fates, strict=True))
            raise RocsteadyError(
                f"{name}: {came:,} came, and {known:,} are accounted for ({used:,} applied, {told}); that is "
                "a defect of rocsteady: please report it"
            )
        terms = "".join(f" + {number:>9,}" for number in fates)
        lines.append(f"  {name:<13}  {came:>8,} = {used:>8,}{terms}")
    lines.append(
        f"\n{training.unlabelled:,} flights were cancelled or diverted; dead_letters.parquet says how long "
        "each prediction waited."
    )
    return "\n".join(lines)


def _columns(rows: pa.Table) -> dict[str, Any]:
    return {name: rows[name].to_numpy(zero_copy_only=False) for name in rows.column_names}


def _learner(columns: dict[str, Any], rows: Any) -> str:
    """Return the line of a learner's last values, in the columns of `_HEAD`."""
    last = np.flatnonzero(rows)[-1]
    names = "auc", "auc_low", "auc_high", "h", "ks", "kappa", "kappa_m"
    auc, low, high, h, ks, kappa, kappa_m = (columns[name][last] for name in names)
    return (
        f"  {columns['model'][last]:<13}  {auc:.4f} [{low:.4f}, {high:.4f}] {h:>6.4f} {ks:>6.3f} "
        f"{kappa:>6.3f} {kappa_m:>8.3f}"
    )


def _held(columns: dict[str, Any], rows: Any) -> str:
    """Return how many landings a window held last, the most it held, and in how many rows it had shrunk."""
    held, shrank = columns["window_events"][rows], int(columns["drift"][rows].sum())
    return f"{held[-1]:>7,}  {held.max():>7,}  " + (f"{shrank} of {len(held)} rows" if shrank else "never")


def _range(columns: dict[str, Any], rows: Any) -> str:
    auc = columns["auc"][rows]
    if not len(rows):
        return "(no full window)"
    worst, best = rows[np.nanargmin(auc)], rows[np.nanargmax(auc)]
    if columns["auc"][worst] == columns["auc"][best]:
        return f"{columns['auc'][best]:.3f} throughout"
    return " to ".join(f"{columns['auc'][row]:.3f} ({_day(columns['time'][row])})" for row in (worst, best))


def _day(moment: np.datetime64) -> str:
    day = moment.astype("M8[D]").item()
    return f"{day.day} {day:%b}"


def _shown(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"
