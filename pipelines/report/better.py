"""The facts of the section "Who is better" (page/better.html), and the data of the section's chart.

Every measure has a block of its own. With JavaScript, the page shows one block at a time (page/better.js).
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.compare.comparisons import FEW_FOLDS, LOWER_IS_BETTER
from ..words import checkpoint, counted, share
from .cd_diagram import cd_diagram
from .comparisons import TESTS, Compared, FoldMeans, Leader, Pair
from .data import MEANINGS, Meaning, packed

PAIRS_SHOWN = 300
"""The most pairs of learners in a measure's table."""

FIRST_MEASURES = ("auc", "h", "accuracy", "kappa", "kappa_m", "ks", "brier", "log_loss")
"""Measures that the section lists before all others."""

COLOURS = 7
"""The number of colours in the page's charts (charts.js)."""

_COLUMNS = 7
"""The most measures in the table of means; a second table, folded, has all measures."""


class Section(NamedTuple):
    """The facts of the section, and the chart's data: a part of `meta`, and packed blocks by name."""

    facts: dict[str, Any]
    meta: dict[str, Any] | None
    blocks: dict[str, str]


def better_section(compared: Sequence[Compared], means: FoldMeans | None) -> Section:
    """Return the section. Without any comparison, the section says that nothing was compared."""
    by_measure = {one.measure: one for one in compared}
    compared = [by_measure[name] for name in _first(by_measure)]
    facts = {
        "about": _about(compared, means),
        "means": means and _means(means),
        "compared": [_told(one) for one in compared],
        "worth": _worth(compared),
    }
    of_means = _first(means.measures) if means else []
    measures = list(dict.fromkeys([one.measure for one in compared] + of_means))
    if not measures:
        return Section(facts, None, {})
    chart, blocks = _chart(compared, means, measures)
    labels = {name: _meaning(name).label for name in measures}
    return Section(facts, {"measures": measures, "labels": labels, **chart}, blocks)


def _first(measures: Iterable[str]) -> list[str]:
    """Return the measures, those of FIRST_MEASURES first."""
    there = list(measures)
    return list(dict.fromkeys([*(name for name in FIRST_MEASURES if name in there), *there]))


def _digits(measure: str) -> str:
    """Return the digits of a mean. Means of learners lie close together: AUC, too, has four decimals."""
    digits = _meaning(measure).digits
    return "share" if digits == "rank" else digits


def _meaning(measure: str) -> Meaning:
    return MEANINGS.get(measure, Meaning(measure, "", "score", "", ""))


def _about(compared: Sequence[Compared], means: FoldMeans | None) -> str:
    if not compared and means is None:
        return "Nothing was compared: the tables have their columns and nothing else."
    names = {name for one in compared for pair in one.pairs for name in (pair.learner_a, pair.learner_b)}
    names |= set(means.learners if means else ())
    moments = [one.last for one in compared] + (means.moments[-1:] if means else [])
    last = max(moments, key=lambda at: at.checkpoint)
    folds = max([one.folds for one in compared] + ([int(means.folds.max())] if means else []))
    where = "at" if all(one.at == one.last for one in compared) else "up to"
    return (
        f"{counted(len(names), 'learner')} over {counted(folds, 'fold')}, {where} the last checkpoint "
        f"({checkpoint(last)})."
    )


def _means(means: FoldMeans) -> dict[str, Any]:
    """Return the table of means of the first measures, and a table of all measures if there are more.

    A cell is (mean, standard deviation, folds, whether the mean is the best, digits).
    """
    order = [means.measures.index(name) for name in _first(means.measures)]
    held = [place for place in order if not np.isnan(means.values[place, :, 0, means.end(place)]).all()]
    fit = [place for place in held if len(held) <= _COLUMNS or means.measures[place] in FIRST_MEASURES]
    first = (fit or held)[:_COLUMNS]
    cells = {
        place: [
            (
                *means.latest(place, learner),
                learner in means.best(place),
                _digits(means.measures[place]),
            )
            for learner in range(len(means.learners))
        ]
        for place in held
    }
    labels = {place: _meaning(means.measures[place]).label for place in held}
    ends = np.array([means.end(place) for place in held], np.int64)
    folds = means.folds[held, :, ends]
    return {
        "folds": int(folds.max(initial=0)),
        "uneven": bool(folds.size and folds.min() < folds.max()),
        "early": bool(ends.size and ends.min() < len(means.moments) - 1),
        "learners": means.learners,
        "measures": [labels[place] for place in first],
        "lines": [
            (name, [cells[place][learner] for place in first]) for learner, name in enumerate(means.learners)
        ],
        "all_lines": [(labels[place], cells[place]) for place in held] if len(held) > len(first) else [],
    }


def _told(one: Compared) -> dict[str, Any]:
    """Return the facts of one measure's block."""
    label, friedman = _meaning(one.measure).label, one.friedman
    diagram = ""
    if friedman is not None and friedman.critical_difference is not None:
        diagram = cd_diagram(
            list(friedman.ranks.values()),
            list(friedman.ranks),
            friedman.critical_difference,
            friedman.groups(),
            f"Critical difference by {label}",
        )
    return {
        "found": one,
        "label": label,
        "ahead": one.leader and _ahead(one, one.leader),
        "pairs": _listed(one),
        "diagram": diagram,
        "diagram_file": b64encode(diagram.encode()).decode(),
    }


def _ahead(one: Compared, leader: Leader) -> str:
    """Return a sentence on the learners that the leader leads, and by which test."""
    others = {name for pair in one.pairs for name in (pair.learner_a, pair.learner_b)} - {leader.learner}
    than = others.pop() if len(others) == 1 else "every other"
    tests = {"sign": "the sign test", "nemenyi": "the critical difference"}
    by = tests.get(leader.test, f"{TESTS.get(leader.test, leader.test)}'s test")
    return f"{leader.learner} is better than {than} by {by}"


def _listed(one: Compared) -> list[Pair]:
    """Return the pairs to list: the better ranked learner first in a pair, the best ranked pairs first.

    Of more than PAIRS_SHOWN pairs, those with the least p-values are listed.
    """
    pairs = sorted(one.pairs, key=_least)[:PAIRS_SHOWN] if len(one.pairs) > PAIRS_SHOWN else one.pairs
    ranks = one.friedman.ranks if one.friedman else {}

    def place(pair: Pair) -> tuple[float, ...]:
        return tuple(ranks.get(name, math.inf) for name in (pair.learner_a, pair.learner_b))

    turned = [pair.turned() if place(pair)[0] > place(pair)[1] else pair for pair in pairs]
    return sorted(turned, key=place)


def _least(pair: Pair) -> float:
    """Return the least corrected p-value of a pair; 2 for a pair without p-values."""
    over = [found.p_holm for found in pair.over.values() if found.p_holm is not None]
    within = [found.p_holm[0] for found in pair.within.values() if found.p_holm is not None]
    return min([*over, *within], default=2.0)


def _worth(compared: Sequence[Compared]) -> dict[str, Any] | None:
    """Return the facts for the notes on p-values; None where nothing was compared.

    folds    the fewest folds of a measure with a sign or Wilcoxon test, whose p-values are coarse over few
             folds; 0 without such a measure
    least_p  the least p-value that these tests can give over `folds` folds
    """
    tests = {test for one in compared for pair in one.pairs for test in (*pair.over, *pair.within)}
    if not tests:
        return None
    folds = min((one.folds for one in compared if {"sign", "wilcoxon"} & {*one.tests}), default=0)
    return {
        "anytime": any(one.looked_anytime for one in compared),
        "level": share(compared[0].alpha),
        "folds": folds,
        "few_folds": FEW_FOLDS,
        "least_p": min(2.0 ** (1 - folds), 1.0),
        "within_folds": bool(tests & {"mcnemar", "delong"}),
    }


def _chart(
    compared: Sequence[Compared], means: FoldMeans | None, measures: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the chart's settings and its numbers: a block per measure, [learner, statistic, moment]."""
    if means is None:
        return {"learners": []}, {}
    blocks = {f"means_{place}": packed(values.reshape(-1)) for place, values in enumerate(means.values)}
    times = np.array([at.time for at in means.moments], np.float64)  # None gives NaN
    blocks["means_seq"] = packed(np.array([at.seq for at in means.moments], np.float64))
    blocks["means_time"] = packed(times)
    ahead = {
        one.measure: [_ahead(one, one.leader), one.leader.since.seq, one.leader.since.time]
        for one in compared
        if one.leader is not None
    }
    return {
        "learners": means.learners,
        "means": means.measures,
        "moments": len(means.moments),
        "total": means.total,
        "timed": not np.isnan(times).any(),
        "digits": {name: _digits(name) for name in means.measures},
        "ahead": ahead,
        "slots": _slots(means, measures),
    }, blocks


def _slots(means: FoldMeans, measures: Sequence[str]) -> list[int]:
    """Return each learner's slot of colour and dash. The chart first draws the learners in the first slots.

    Slots follow the order of names, as in the page's other charts. With more learners than colours, the
    best learners by the first measure get the first slots.
    """
    places = list(range(len(means.learners)))
    if len(places) <= COLOURS:
        return places
    measure = next(means.measures.index(name) for name in measures if name in means.measures)
    values = means.values[measure, :, 0, -1]
    signed = values if means.measures[measure] in LOWER_IS_BETTER else -values
    order = np.argsort(signed, kind="stable").tolist()
    return [order.index(place) for place in places]
