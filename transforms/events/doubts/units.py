"""Warns of numbers that probably count another unit than that of event times."""

from __future__ import annotations

import pyarrow as pa

from ....core.arrays import Int64Array
from ....core.events.times import NO_TIME, doubt_in
from ....core.process.console import logger
from ..columns import holds_numbers
from .formats import tell_other_form
from .once import is_new, is_told

_logger = logger("rocsteady.times")


def tell_doubt(name: str, column: pa.Array, times: Int64Array, unit: str, form: str | None = None) -> None:
    """Warn once if the numbers of a column probably count another unit, or its texts have another format.

    times  the column's values as times, int64[n]; NO_TIME where a value is no time

    O(n), until the warning.
    """
    if form is not None or not holds_numbers(column):
        tell_other_form(name, column, times, form)
        return
    if is_told((name, unit)):
        return
    doubt = doubt_in(times[times != NO_TIME], unit)
    if doubt is None:
        return
    remedy = "give another --time-unit (time_unit=) or another column, if that is not meant"
    if doubt.other:
        remedy = f'give --time-unit {doubt.other} (time_unit="{doubt.other}")'
    elif doubt.form:
        remedy = f'give --time-format {doubt.form} (time_format="{doubt.form}")'
    text = f"times in {name!r}: {doubt.finding}; {remedy}"
    if is_new((name, unit), text):
        _logger.warning("times in %r: %s; %s", name, doubt.finding, remedy)
