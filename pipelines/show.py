"""`rocsteady show`: prints a line for every model of existing rows, the worst model first."""

from __future__ import annotations

import argparse
import shlex

from ..core.process.console import say, show
from ..core.verdicts.choice import reference_of
from ..transforms.tables.read import joined_rows, rows_settings
from ..transforms.tables.table_rows import row_batches, row_files
from .report.command import confidence_of
from .report.glance import glance, width_of_terminal
from .report.report_rows import report_rows


def show_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    reference = reference_of(options.reference)
    files = [file.name for file in row_files(options.sources)]
    confidence, notes = confidence_of(options.confidence, files)
    tables = [
        batch.table for source in options.sources for batch in row_batches(source, options.kafka_option)
    ]
    table = joined_rows(tables)
    rows = report_rows(table, notes, rows_settings(files))
    named = shlex.join(options.sources)
    below = (f"a page with charts: rocsteady report {named if len(named) < 60 else 'ROWS'} -o report.html",)
    show(*glance(rows, confidence, reference, below, width_of_terminal()))
    for note in rows.notes:
        say(note)
    return 0
