"""Commands that read tables of rows and write one table.

`rocsteady rows` writes the rows of a sink to one sorted file, each row once. `rocsteady compare` compares the
models in the rows by statistical tests over their folds.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..core.arrays import FloatArray
from ..core.compare.comparisons import (
    COMPARED,
    OF_CLASSES,
    Checkpoint,
    ComparisonRow,
    compare_learners,
    found_since,
    last_usable,
)
from ..core.errors import ConfigError, InputError
from ..core.process.console import say
from ..core.rows.class_rows import ClassRow
from ..core.rows.columns import measure_of
from ..core.rows.records import MeasureRow
from ..core.settings.table import parse_slice
from ..transforms.sinks.comparisons import comparisons_to_arrow
from ..transforms.sinks.kinds import kind_of_rows, sorted_table
from ..transforms.sinks.table import check_output, write_table
from ..transforms.tables.table_rows import distinct_rows, record_of, row_files, row_values
from .arguments import level
from .outputs import check_csv_safe, check_outputs
from .words import counted

_SHOWN = 20
"""The most pairs that the summary on stderr names."""


def _check_output(options: argparse.Namespace, content: str) -> None:
    """Raise ConfigError or InputError if the one output of a command cannot be written.

    content  what the output holds
    """
    check_csv_safe(options.csv_safe, [options.output])
    check_outputs((("--output", options.output, content, check_output),), row_files(options.sources))


def rows_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    started = time.monotonic()
    _check_output(options, "rows")
    if options.output == "-":
        raise InputError("--output -: name a file, such as rows.parquet")
    table, repeats = distinct_rows(options.sources, options.kafka_option)
    table_in_order = sorted_table(table.to_batches(), table.schema, kind_of_rows(table.schema).order)
    write_table(table_in_order, options.output, csv_safe=options.csv_safe)
    say(
        f"{counted(table.num_rows, 'row')} in {options.output}, {counted(repeats, 'repeat')} left out "
        f"({time.monotonic() - started:.1f} s)"
    )
    return 0


def compared_measures(option: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the measures that an option names, each once.

    Raises ConfigError for a measure that says nothing of which model is better.
    """
    measures = tuple(dict.fromkeys(names))
    for name in measures:
        if (measure_of(name) or name) not in COMPARED:
            raise ConfigError(
                f"{option} {name} does not say who is better; there are {', '.join(sorted(COMPARED))}"
            )
    return measures


def compare_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    started = time.monotonic()
    _check_output(options, "comparisons")
    alpha = level(f"--alpha {options.alpha}", options.alpha, ".05")
    table, _ = distinct_rows(options.sources, options.kafka_option)
    has_classes = "class" in table.column_names
    measures = compared_measures("--measure", options.measure or ["auc_macro" if has_classes else "auc"])
    if has_classes:
        table = table.filter(pc.is_null(table.column("class")))
    elif of_classes := next((name for name in measures if name in OF_CLASSES), None):
        raise ConfigError(
            f"--measure {of_classes}: only models with a score of each class have it; name another measure"
        )
    for name in filter(measure_of, measures):
        if name not in table.column_names:
            raise InputError(f"--measure {name}: the rows have no such column; evaluate with --measures")
    learners, folds, moments = _arranged(table, options.over, measures)
    of_one_stream = options.over == "fold"
    rows = [
        row
        for moment, values in moments.items()
        for measure, of_folds in values.items()
        for row in compare_learners(learners, of_folds, measure, moment, alpha, of_one_stream=of_one_stream)
    ]
    write_table(comparisons_to_arrow(rows), options.output, csv_safe=options.csv_safe)
    for line in summary(rows):
        say(line)
    say(
        f"{counted(len(rows), 'comparison')} of {counted(len(learners), 'model')} over "
        f"{counted(len(folds), 'fold')} at {counted(len(moments), 'checkpoint')} in "
        f"{options.output} ({time.monotonic() - started:.1f} s)"
    )
    return 0


def summary(rows: Sequence[ComparisonRow]) -> Iterator[str]:
    """Yield sentences on the learners that are better than others: with the test, and the moment since when.

    Each measure is read at its `last_usable` checkpoint. If a later checkpoint exists, a sentence says so.
    """
    used: dict[str, int] = {}
    early: dict[int, None] = {}
    for measure in dict.fromkeys(row.measure for row in rows):
        folds = [(row.checkpoint, row.folds) for row in rows if row.measure == measure]
        last = max(folds)
        if (usable := last_usable(folds)) is None:
            yield f"by {measure} nothing can be tested: no checkpoint has two folds with values of two models"
            continue
        used[measure] = usable[0]
        if usable[0] < last[0]:
            early[usable[0]] = None
            yield (
                f"by {measure} models are compared at checkpoint {usable[0]}, which has {usable[1]} folds: "
                f"the last checkpoint, {last[0]}, has {last[1]}"
            )
    if not used:
        return
    rows = [row for row in rows if row.checkpoint <= used.get(row.measure, -1)]
    since = found_since((_identity(row), row.checkpoint, row.better) for row in rows)
    found = [row for row in rows if row.better and row.checkpoint == used[row.measure]]
    for row in found[:_SHOWN]:
        worse = row.learner_b if row.better == row.learner_a else row.learner_a
        how = f"p {row.p_holm:.2g}" if row.p_holm is not None else "beyond the critical difference"
        test = f"{row.measure}, {row.test} test ({how})"
        yield f"{row.better} is better than {worse} by {test}, since checkpoint {since[_identity(row)]}"
    if not found:
        tested = [row for row in rows if row.checkpoint == used[row.measure] and row.p_holm is not None]
        why = "".join(f" ({reason})" for reason in sorted({row.reason for row in tested if row.reason}))
        where = " or ".join(f"checkpoint {each}" for each in early) or "the last checkpoint"
        yield f"no model is shown to be better than another at {where}{why}"
    elif len(found) > _SHOWN:
        yield f"and {len(found) - _SHOWN:,} more, in the table"


def _identity(row: ComparisonRow) -> tuple[str, ...]:
    return row.slice, row.measure, row.test, row.learner_a, row.learner_b


def _arranged(
    table: pa.Table, over: str, measures: Sequence[str]
) -> tuple[list[str], list[str], dict[Checkpoint, dict[str, FloatArray]]]:
    """Return the learners, the folds, and for each moment the values of each measure, [learner, fold].

    A value is NaN if a learner has no row in a fold at a moment. Raises InputError if nothing can be
    compared.

    A moment is a grid point (`due`); rows without a grid point are then left out. If no row has a grid point,
    a moment is the rows' ordinal. If some learners have no row in a fold at a moment, only the other learners
    are compared.
    """
    columns = _slice_columns(table)
    named: Iterator[Any] = map(record_of(table)._make, row_values(table))
    rows: list[MeasureRow | ClassRow] = [row for row in named if columns[row.slice] == (over,)]
    learners = sorted({row.model for row in rows})
    folds = sorted({row.slice for row in rows}, key=lambda name: (len(name), name))
    if len(learners) < 2 or len(folds) < 2:
        slices = sorted({names[0] for names in columns.values() if len(names) == 1})
        there = f"there are slices by {', '.join(slices)}" if slices else "the rows have no slices"
        raise InputError(
            f"{counted(len(learners), 'model')} with slices {over}=..., {counted(len(folds), 'slice')}: a "
            f"comparison needs two of both; name the column of folds or streams with --over ({there})"
        )
    if any(row.pane_start is not None for row in rows):
        raise InputError("rows of panes are not compared; evaluate without windows of Beam")
    by_grid = [row for row in rows if row.due is not None]
    rows = by_grid or rows
    by_moment: dict[int, list[MeasureRow | ClassRow]] = defaultdict(list)
    for row in rows:
        by_moment[row.row if row.due is None else row.due].append(row)
    places = {name: place for place, name in enumerate(learners)}
    fold_places = {name: place for place, name in enumerate(folds)}
    moments = {}
    for number, (moment, here) in enumerate(sorted(by_moment.items())):
        times = [row.time for row in here if row.time is not None]
        latest = moment if by_grid else max(times, default=None)
        values = {name: np.full((len(learners), len(folds)), np.nan) for name in measures}
        for row in here:
            for name in measures:
                if (value := getattr(row, name)) is not None:
                    values[name][places[row.model], fold_places[row.slice]] = value
        moments[Checkpoint(number, latest, max(row.seq for row in here))] = values
    return learners, folds, moments


def _slice_columns(table: pa.Table) -> dict[str, tuple[str, ...]]:
    """Return the columns of each slice, by the slice's name."""
    try:
        return {
            label: tuple(name for name, _ in parse_slice(label))
            for label in table.column("slice").unique().to_pylist()
        }
    except ValueError as error:
        raise InputError(f"{error}; give rows that rocsteady evaluate wrote") from None
