"""Roll-up rows in the obvious way: metafor's formulas in fractions, and a search through all rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from rocsteady.core.fleet.roll_up_settings import RollUpSettings
from rocsteady.core.rows.records import MeasureRow
from rocsteady.core.rows.roll_ups import RollUpRow
from scipy.stats import chi2, norm

PLAIN = ("auc_mean", "auc_by_events")
TESTED = ("heterogeneity_p", "worst_p", "best_p", "members_below", "members_above")


def mean(values: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
    return sum(w * a for w, a in zip(weights, values, strict=True)) / sum(weights)


def error_of(weights: Sequence[Fraction], variances: Sequence[Fraction], dependent: bool) -> float:
    """The standard error of a weighted mean, or its bound."""
    shares = [w / sum(weights) for w in weights]
    if dependent:
        return math.fsum(float(w) * math.sqrt(v) for w, v in zip(shares, variances, strict=True))
    return math.sqrt(sum(w * w * v for w, v in zip(shares, variances, strict=True)))


def clipped(middle: float, half: float, least: float = 0.0) -> tuple[float, float]:
    return max(least, middle - half), min(1.0, middle + half)


def holm_of(p: Sequence[float]) -> list[float]:
    """Holm's p-values: the greatest of the products up to each place."""
    k = len(p)
    order = sorted(range(k), key=lambda i: p[i])
    found = [0.0] * k
    for place, i in enumerate(order):
        found[i] = min(1.0, max((k - before) * p[order[before]] for before in range(place + 1)))
    return found


def numbers(
    members: Sequence[tuple[str, float, float, float, float]], confidence: float, dependent: bool
) -> dict[str, Any]:
    """The numbers of a roll-up row; a member is its name, AUC, variance, positives and negatives."""
    found: dict[str, Any] = dict.fromkeys(name for name in RollUpRow._fields[10:-3] if "surely" not in name)
    z = norm.ppf((1 + confidence) / 2)

    def put(name: str, middle: Fraction | float, error: float) -> None:
        found[name] = float(middle)
        found[f"{name}_low"], found[f"{name}_high"] = clipped(float(middle), z * error)

    if not members:
        return found
    a = [Fraction(member[1]) for member in members]
    v = [Fraction(member[2]) for member in members]
    p = [Fraction(member[3]) for member in members]
    n = [Fraction(member[4]) for member in members]
    weights = [Fraction(1)] * len(a), [x + y for x, y in zip(p, n, strict=True)]
    for name, w in zip(PLAIN, weights, strict=True):
        put(name, mean(a, w), error_of(w, v, dependent))
    ordered = sorted(a)
    for name, share in (("auc_low_decile", Fraction(1, 10)), ("auc_median", Fraction(1, 2))):
        place = share * (len(a) - 1)
        low = int(place)
        high = min(low + 1, len(a) - 1)
        found[name] = float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))
    kept = [i for i in range(len(a)) if v[i] > 0]
    names, a, v = [members[i][0] for i in kept], [a[i] for i in kept], [v[i] for i in kept]
    if not kept:
        return found
    w = [1 / x for x in v]
    fixed = mean(a, w)
    k = len(kept)
    if k < 2:
        return found
    q = sum(x * (y - fixed) ** 2 for x, y in zip(w, a, strict=True))
    tau2 = max(Fraction(0), (q - (k - 1)) / (sum(w) - sum(x * x for x in w) / sum(w)))
    found["heterogeneity_q"], found["tau2"] = float(q), float(tau2)
    found["i2"] = float(max(Fraction(0), (q - (k - 1)) / q)) if q else 0.0
    found["heterogeneity_p"] = float(chi2.sf(float(q), k - 1))
    w = [1 / (x + tau2) for x in v]
    put("auc_random", mean(a, w), 1 / math.sqrt(sum(w)))
    if dependent:
        found["heterogeneity_p"] = found["auc_random_low"] = found["auc_random_high"] = None
    gaps, errors = [], []
    for i in range(k):
        others = [j for j in range(k) if j != i]
        w = [1 / v[j] for j in others]
        gaps.append(a[i] - mean([a[j] for j in others], w))
        bound = error_of(w, [v[j] for j in others], dependent)
        errors.append(math.sqrt(v[i]) + bound if dependent else math.hypot(math.sqrt(v[i]), bound))
    chances = [float(2 * norm.sf(abs(float(gap)) / error)) for gap, error in zip(gaps, errors, strict=True)]
    adjusted = holm_of(chances)
    wide = norm.isf((1 - confidence) / (2 * k))
    for which, i in (("worst", gaps.index(min(gaps))), ("best", gaps.index(max(gaps)))):
        found[which], found[f"{which}_auc"], found[f"{which}_gap"] = names[i], float(a[i]), float(gaps[i])
        ends = clipped(float(gaps[i]), wide * errors[i], -1.0)
        found[f"{which}_gap_low"], found[f"{which}_gap_high"] = ends
        found[f"{which}_p"] = adjusted[i]
    sure = [i for i in range(k) if adjusted[i] < 1 - confidence]
    found["members_below"] = sum(gaps[i] < 0 for i in sure)
    found["members_above"] = sum(gaps[i] > 0 for i in sure)
    return found


def variance_of(row: MeasureRow, confidence: float) -> float | None:
    """The variance of a row's AUC, None if the row does not say."""
    if row.auc is None or row.auc_low is None or row.auc_high is None:
        return None
    if row.auc_low <= 0 and row.auc_high >= 1:
        return None
    half = max(row.auc_high - row.auc, row.auc - row.auc_low)
    return 0.0 if half < 1e-15 else (half / norm.ppf((1 + confidence) / 2)) ** 2


def roll_ups(rows: Iterable[MeasureRow], settings: RollUpSettings) -> list[dict[str, Any]]:
    """The roll-up rows of a set of rows, by group and grid point, without reasons."""
    members: dict[str, dict[str, list[MeasureRow]]] = {}
    for row in set(rows):
        for group, member in settings.groups_of(row.model, row.slice):
            if row.due is not None:
                members.setdefault(group, {}).setdefault(member, []).append(row)
    found = []
    for group, of_members in sorted(members.items()):
        moments = sorted({row.due for rows in of_members.values() for row in rows})
        for number, due in enumerate(moments):
            there = {}
            for member, each in sorted(of_members.items()):
                near = [row for row in each if due - settings.stale <= row.due <= due]
                if near:
                    there[member] = max(near, key=lambda row: row.due)
            variances = {name: variance_of(row, settings.confidence) for name, row in there.items()}
            counted = [name for name in there if variances[name]]
            known = [name for name in there if variances[name] is not None]
            found.append(
                {
                    "group": group,
                    "row": number,
                    "due": due,
                    "members": len(counted),
                    "members_silent": sum(there[name].due < due for name in counted),
                    "members_without": len(there) - len(counted),
                    **numbers(
                        [
                            (
                                name,
                                there[name].auc,
                                variances[name],
                                there[name].positives,
                                there[name].negatives,
                            )
                            for name in known
                        ],
                        settings.confidence,
                        settings.dependent and group in settings.by,
                    ),
                }
            )
    return found


def commonest(reasons: Sequence[str]) -> str | None:
    """The commonest of some texts; of several the first by name."""
    counts = Counter(reasons)
    return min(counts, key=lambda text: (-counts[text], text), default=None)
