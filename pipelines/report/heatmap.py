"""The heatmap of slices: for every model and slice the gap to the model's other slices, and the change.

`heatmap_of` gives the facts. The cells go into the page packed. The page's script draws some models. The gaps
are those of the section on gaps (`fleet.gaps`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...core.fleet.roll_up_settings import columns_of
from .fleet.gaps import PageGaps
from .report_rows import ReportRows
from .verdicts import Verdicts


class Heatmap(NamedTuple):
    """The facts of the section.

    cells   [model, slice, gap, its p, whether it is sure, change, its p, whether it is sure, what lacks for a
            change]; null = nothing to compare
    models  the models with slices, worst first
    groups  (columns, slices) of each set of columns that slices cross
    """

    cells: list[list[Any]]
    models: list[int]
    groups: list[tuple[str, list[int]]]


def heatmap_of(rows: ReportRows, judged: Verdicts, gaps: PageGaps) -> Heatmap | None:
    """Return the facts of the heatmap; None without slices."""
    verdicts = [one for one in judged.series if rows.slices[one.slice]]
    if not verdicts:
        return None
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, name in enumerate(rows.slices):
        if name:
            groups.setdefault(columns_of(name), []).append(place)
    sliced = {one.model for one in verdicts}
    of_slice = gaps.by_slice()
    cells: list[list[Any]] = []
    for one in verdicts:
        gap, sure = of_slice.get((one.model, one.slice), (None, False))
        cells.append(
            [
                one.model, one.slice,
                *((None, None, False) if gap is None else (_known(gap.gap, 4), _known(gap.p, 6), sure)),
                _known(one.change, 4), _known(one.p, 6), one.p < gaps.alpha, one.why,
            ]
        )  # fmt: skip
    return Heatmap(
        cells,
        [one.model for one in judged.models if one.model in sliced],
        [(" and ".join(columns), slices) for columns, slices in groups.items()],
    )


def _known(value: float, digits: int) -> float | None:
    return None if math.isnan(value) else round(value, digits)
