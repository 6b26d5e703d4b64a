"""`rocsteady rows`: writes the rows of a sink to one sorted file, each row once."""

from __future__ import annotations

import argparse
import time

from ..core.errors import InputError
from ..core.process.console import say
from ..transforms.sinks.kinds import ROW_ORDER
from ..transforms.sinks.table import check_output, sorted_table, write_table
from ..transforms.tables.rows import distinct_rows, row_files
from .outputs import check_csv_safe, check_outputs
from .words import counted


def rows_command(options: argparse.Namespace) -> int:
    """Run the command with parsed options."""
    started = time.monotonic()
    check_csv_safe(options.csv_safe, [options.output])
    check_outputs((("--output", options.output, "rows", check_output),), row_files(options.sources))
    if options.output == "-":
        raise InputError("--output -: name a file, such as rows.parquet")
    table, repeats = distinct_rows(options.sources, options.kafka_option)
    table_in_order = sorted_table(table.to_batches(), table.schema, ROW_ORDER)
    write_table(table_in_order, options.output, csv_safe=options.csv_safe)
    say(
        f"{counted(table.num_rows, 'row')} in {options.output}, {counted(repeats, 'repeat')} left out "
        f"({time.monotonic() - started:.1f} s)"
    )
    return 0
