"""`rocsteady roll-up`: makes roll-up rows from existing rows of measures."""

from __future__ import annotations

import argparse
import time

from ..core.errors import InputError
from ..core.fleet.roll_up_settings import RollUpSettings
from ..core.process.console import say
from ..core.settings.durations import parse_lateness
from ..transforms.sinks.table import check_output, write_table
from ..transforms.tables.table_rows import row_files
from .arguments import level, parsed
from .frames.roll_up import roll_up_table, rows_of_files
from .outputs import check_csv_safe, check_outputs
from .words import counted


def roll_up_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    started = time.monotonic()
    said = options.confidence
    confidence = None if said is None else level(f"--confidence {said!r}", said, "0.95")
    stale = parsed("--stale", options.stale, parse_lateness)
    settings = RollUpSettings(tuple(options.by or ["models"]), stale, 0.95, options.dependent)
    check_csv_safe(options.csv_safe, [options.output])
    check_outputs((("--output", options.output, "roll-ups", check_output),), row_files(options.sources))
    if options.output == "-":
        raise InputError("--output -: name a file, such as roll_ups.parquet")
    rows, found = rows_of_files(options.sources, confidence, options.kafka_option)
    settings = RollUpSettings(settings.by, stale, found, options.dependent)
    table = roll_up_table(rows, settings)
    write_table(table, options.output, csv_safe=options.csv_safe)
    groups = len(table.column("group").unique())
    say(
        f"{counted(table.num_rows, 'roll-up row')} of {counted(groups, 'group')} in {options.output}, from "
        f"{counted(rows.num_rows, 'row')} ({time.monotonic() - started:.1f} s)"
    )
    if not groups:
        say(settings.without_rows)
    return 0
