"""The heatmap of slices: for every model and slice the gap to the model's other events, and the change.

`heatmap_of` gives the facts. The cells go into the page packed. The page's script draws some models.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...core.verdicts.gaps import columns_of
from ...core.verdicts.judge import Verdict
from ..words import counted, p_value
from .rows import ReportRows
from .verdicts import Verdicts

_NAMED = 5
"""The most slices that the sentence on gaps names."""


class Heatmap(NamedTuple):
    """The facts of the section.

    sentence  which slices rank worse than the other slices of their model
    cells     [model, slice, gap, its p, change, its p, what lacks for a change]; null = nothing to compare
    models    the models with slices, worst first
    groups    (columns, slices) of each set of columns that slices cross
    """

    sentence: str
    cells: list[list[Any]]
    models: list[int]
    groups: list[tuple[str, list[int]]]


def heatmap_of(rows: ReportRows, judged: Verdicts, confidence: float) -> Heatmap | None:
    """Return the facts of the heatmap; None without slices."""
    verdicts = [one for one in judged.series if rows.slices[one.slice]]
    if not verdicts:
        return None
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, name in enumerate(rows.slices):
        if name:
            groups.setdefault(columns_of(name), []).append(place)
    sliced = {one.model for one in verdicts}
    return Heatmap(
        _sentence(verdicts, rows, confidence),
        [
            [one.model, one.slice, *_gap(one), _known(one.change, 4), _known(one.p, 6), one.why]
            for one in verdicts
        ],
        [one.model for one in judged.models if one.model in sliced],
        [(" and ".join(columns), slices) for columns, slices in groups.items()],
    )


def _gap(one: Verdict) -> tuple[float | None, float | None]:
    return (None, None) if one.gap is None else (_known(one.gap.gap, 4), _known(one.gap.p, 6))


def _known(value: float, digits: int) -> float | None:
    return None if math.isnan(value) else round(value, digits)


def _sentence(verdicts: list[Verdict], rows: ReportRows, confidence: float) -> str:
    """Return which slices rank worse than their model's other slices: Holm's p-value decides."""
    tried = [one.gap for one in verdicts if one.gap is not None]
    if not tried:
        return "No slice has other slices to be compared with: each needs labels of both classes."
    below = sorted(
        (one.gap.gap, one.gap.p, rows.models[one.model], rows.slices[one.slice])
        for one in verdicts
        if one.gap is not None and one.gap.gap < 0 and one.gap.p < 1 - confidence
    )
    if not below:
        return (
            f"None of {counted(len(tried), 'slice')} ranks worse than the other slices of its model, "
            "once corrected for their number."
        )
    named = "; ".join(
        f"{model} in {name} (\u2212{-gap:.3f}, p {p_value(p)})" for gap, p, model, name in below[:_NAMED]
    )
    more = f"; and {len(below) - _NAMED:,} more" if len(below) > _NAMED else ""
    rank = "ranks" if len(below) == 1 else "rank"
    return (
        f"{len(below):,} of {counted(len(tried), 'slice')} {rank} worse than the other slices of the model: "
        f"{named}{more}."
    )
