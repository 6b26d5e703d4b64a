"""What the drift benchmark measured, and its tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from ..processes import table
from .constructed import CHANGES, error_of
from .runs import Found, Results
from .streams import KINDS, MODES, STILL
from .watchers import RIGHT, WRONG

Key = tuple[str, str]

PUBLISHED = {
    "class prior": {
        "ADWIN": (0.54, 1_395), "DDM": (0.12, 1_158), "HDDM_A": (0.44, 1_548), "HDDM_W": (0.42, 1_195),
        "PageHinkley": (0.46, 1_395),
    },
    "label swap": {
        "ADWIN": (0.72, 1_779), "DDM": (0.10, 1_851), "HDDM_A": (0.80, 1_491), "HDDM_W": (0.88, 1_060),
        "PageHinkley": (0.14, 1_962),
    },
    "feature permutation": {
        "ADWIN": (0.76, 1_297), "DDM": (0.0, math.inf), "HDDM_A": (0.82, 858), "HDDM_W": (0.94, 633),
        "PageHinkley": (0.0, math.inf),
    },
    "feature filtering": {
        "ADWIN": (0.06, 2_161), "DDM": (0.02, 2_198), "HDDM_A": (0.06, 1_714), "HDDM_W": (0.22, 1_260),
        "PageHinkley": (0.12, 1_396),
    },
}  # fmt: skip
"""Electricity, Hoeffding tree, abrupt, default parameters, 50 streams: the share of streams whose drift was
detected and the mean delay, of the authors' files of results (`episode_recall`, `mdt`)."""


@dataclass(frozen=True)
class Measured:
    """All that the page is made from.

    found        of each (data set, learner), what every watcher found
    constructed  of each constructed change, what every watcher found
    paper        what detectors found that were told both ways, beside the published figures
    costs        microseconds an event of each watcher
    trials       shuffles of each data set; the slow detector saw `slow` of them
    """

    found: dict[Key, Results]
    constructed: dict[str, Results]
    paper: Results
    costs: dict[str, float]
    trials: int
    slow: int


def pooled(results: Iterable[Results]) -> Results:
    whole: Results = {}
    for each in results:
        for name, found in each.items():
            whole.setdefault(name, Found()).add(found)
    return whole


def wilson(hits: int, number: int) -> tuple[float, float]:
    """Return the ends of Wilson's 95% interval of a share."""
    z = 1.96
    share, spread = hits / number, z * z / number
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / number + spread / (4 * number)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(delays: list[float]) -> float:
    return sum(map(math.isfinite, delays)) / len(delays)


def middle(delays: list[float]) -> float:
    """Return the median of the delays of drifts that were detected, NaN if none was."""
    seen = [delay for delay in delays if math.isfinite(delay)]
    return median(seen) if seen else math.nan


def share_cell(delays: list[float]) -> str:
    if not delays:
        return "-"
    low, high = wilson(sum(map(math.isfinite, delays)), len(delays))
    return f"{share(delays):.0%} ({100 * low:.0f}-{100 * high:.0f})"


def delay_cell(found: Found) -> str:
    late = middle(drifts(found, modes=("abrupt",)))
    return "-" if math.isnan(late) else f"{late:,.0f}"


def cell(delays: list[float]) -> str:
    """The share detected, its interval, and the median delay."""
    late = middle(delays) if delays else math.nan
    return share_cell(delays) + ("" if math.isnan(late) else f", {late:,.0f}")


def rate(false: list[tuple[int, int]]) -> tuple[float, float, float]:
    """Return false alarms in 100,000 events and a 95% interval, for which alarms of one stream are alike."""
    alarms, events = sum(each[0] for each in false), sum(each[1] for each in false)
    per = 1e5 / events
    if not alarms:
        return 0.0, 0.0, 3 * per
    spread = math.sqrt(sum((found - alarms / events * seen) ** 2 for found, seen in false))
    return alarms * per, max(0.0, alarms - 1.96 * spread) * per, (alarms + 1.96 * spread) * per


def rate_cell(false: list[tuple[int, int]]) -> str:
    found, low, high = rate(false)
    return f"{found:.2f} ({low:.2f}-{high:.2f})"


def drifts(found: Found, kinds: tuple[str, ...] = KINDS, modes: tuple[str, ...] = MODES) -> list[float]:
    return [delay for kind in kinds for mode in modes for delay in found.delays.get((kind, mode), [])]


def overview(measured: Measured) -> str:
    whole, rows = pooled(measured.found.values()), []
    on, frozen = (
        pooled(found for (_, learner), found in measured.found.items() if ("learns on" in learner) == learns)
        for learns in (True, False)
    )
    for name in whole:
        found = whole[name]
        rows.append(
            [
                name,
                share_cell(drifts(found)),
                share_cell(drifts(found, (STILL,))),
                delay_cell(found),
                rate_cell(on[name].false),
                rate_cell(frozen[name].false),
                cost(name, measured.costs),
            ]
        )
    head = [
        "", "drifts detected", "alarms without a drift", "median delay, abrupt",
        "false alarms, learns on", "false alarms, frozen", "seconds a million",
    ]  # fmt: skip
    return table(head, rows).rstrip()


def cost(name: str, costs: dict[str, float]) -> str:
    found = costs.get(name.removesuffix(f" ({RIGHT})"), math.nan)
    return f"{found:.2g}" if found < 10 else f"{found:,.0f}"


def by_kind(results: Results, mode: str) -> str:
    rows = [[name, *(cell(results[name].delays.get((kind, mode), [])) for kind in KINDS)] for name in results]
    return table([mode, *KINDS], rows).rstrip()


def constructed_table(measured: Measured) -> str:
    names = list(next(iter(measured.constructed.values())))
    still = pooled(measured.constructed.values())
    rows = [
        [
            name,
            *(cell(drifts(measured.constructed[change][name], (change,))) for change in CHANGES),
            rate_cell(still[name].false),
        ]
        for name in names
    ]
    errors = [
        f"{error_of(before, before):.1%} to {error_of(before, now):.1%}" for before, now in CHANGES.values()
    ]
    head = ["", *CHANGES, "false alarms"]
    return table(head, [["*the share of errors*", *errors, ""], *rows]).rstrip()


def published_table(paper: Results) -> str:
    rows = []
    for kind, said in PUBLISHED.items():
        for name, (recall, delay) in said.items():
            late = f", {delay:,.0f}" if math.isfinite(delay) else ""
            told = (paper[f"{name} ({way})"].delays[kind, "abrupt"] for way in (RIGHT, WRONG))
            rows.append([kind, name, f"{recall:.0%}{late}", *map(cell, told)])
    return table(["drift", "detector", "published", f"here, {RIGHT}", f"here, {WRONG}"], rows).rstrip()
