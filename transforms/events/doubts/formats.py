"""Warns of texts of times that do not fit their format, but fit the format with day and month reordered."""

from __future__ import annotations

from shlex import quote

import numpy as np
import pyarrow as pa

from ....core.arrays import Int64Array
from ....core.events.times import NO_TIME
from ....core.process.console import logger
from ..columns import texts
from ..time_formats import form_that_fits, swapped_form
from .once import is_new, is_told

_logger = logger("rocsteady.times")

_TRIED = 1_000
"""The most distinct texts of a batch that are tried in other formats."""


def tell_other_form(name: str, column: pa.Array, times: Int64Array, form: str | None) -> None:
    """Warn once if texts do not fit their format, but fit it with day and month, or the year, reordered.

    times  the column's values as times, int64[n]; NO_TIME where a text does not fit
    form   the format; None: RFC 3339, whose dates begin with year, month and day
    """
    key, asked = (name, form or ""), "RFC 3339" if form is None else repr(form)
    unfit = np.flatnonzero(times == NO_TIME)
    if not len(unfit) or is_told(key):
        return
    for text in texts(column.take(pa.array(unfit))).values[:_TRIED]:
        other = swapped_form(text) if form is None else form_that_fits(text, form)
        if other is None:
            continue
        finding = (
            f"{text!r} does not fit {asked}, but fits {other!r}: if all have that form, days and months of "
            "those that fit are swapped, and their times are wrong"
        )
        remedy = f'give --time-format {quote(other)} (time_format="{other}"), or mend these texts'
        said = f"times in {name!r}: {finding}; {remedy}"
        if is_new(key, said):
            _logger.warning("times in %r: %s; %s", name, finding, remedy)
        return
