"""The section "Who is better": tables and diagrams that stand by themselves, and what its chart is given.

A measure has a block of its own; where there is JavaScript, one is shown at a time (page/better.js).
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ...core.compare.comparisons import LOWER_IS_BETTER, Checkpoint
from ..words import NONE, counted, exactly, number
from .cd_diagram import cd_diagram
from .comparisons import OVER_FOLDS, Compared, FoldFindings, FoldMeans, Leader, Pair
from .data import packed
from .measures import MEANINGS
from .worth import worth_html

TESTS = {
    "sign": "sign test",
    "wilcoxon": "Wilcoxon",
    "nemenyi": "Nemenyi",
    "mcnemar": "McNemar",
    "delong": "DeLong",
}
"""What tests are called in a table."""

PAIRS_SHOWN = 300
"""Pairs of a measure in its table, at the most."""

FIRST_MEASURES = ("auc", "h", "accuracy", "kappa", "kappa_m", "ks", "brier", "log_loss")
"""Measures that come before all others."""

COLOURS = 7
"""That the page's charts have (charts.js)."""

_COLUMNS = 7

MINUS = "\u2212"


class Section(NamedTuple):
    """The section as HTML, and what its chart is given: a part of `meta`, and blocks by name."""

    html: str
    meta: dict[str, Any] | None
    blocks: dict[str, str]


def better_section(compared: Sequence[Compared], means: FoldMeans | None) -> Section:
    """Return the section; of nothing that was compared it says so."""
    by_measure = {one.measure: one for one in compared}
    compared = [by_measure[name] for name in _first(by_measure)]
    worth = worth_html(compared)
    more = " What the p-values are worth stands at the end of the section." if worth else ""
    parts = [f'<p class="about">{_about(compared, means)}{more}</p>']
    if means is not None:
        parts.append(_means_html(means))
    parts.append(_controls_html())
    parts += [_compared_html(one) for one in compared]
    parts.append(worth)
    html = (
        '<section id="better" aria-labelledby="better-title">\n<h2 id="better-title">Who is better</h2>\n'
        + "\n".join(parts)
        + "\n</section>"
    )
    chart, blocks = _chart(compared, means)
    listed = [one.measure for one in compared]
    measures = [*listed, *(name for name in _first(means.measures if means else ()) if name not in listed)]
    if not measures:
        return Section(html, None, {})
    labels = {name: _label(name) for name in measures}
    if means is not None:
        chart["slots"] = _slots(means, measures)
    return Section(html, {"measures": measures, "labels": labels, **chart}, blocks)


def _first(measures: Iterable[str]) -> list[str]:
    """Return measures with FIRST_MEASURES first."""
    there = list(measures)
    return [name for name in FIRST_MEASURES if name in there] + [
        name for name in there if name not in FIRST_MEASURES
    ]


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
        f"({_moment_text(last)})."
    )


def _label(measure: str) -> str:
    return MEANINGS[measure].label if measure in MEANINGS else measure


def _digits(measure: str) -> str:
    return MEANINGS[measure].digits if measure in MEANINGS else "score"


def _moment_text(at: Checkpoint) -> str:
    text = f"event {at.seq:,}"
    return text if at.time is None else f"{text}, {exactly(at.time)} UTC"


def p_text(p: float | None) -> str:
    """Write a p-value with three decimals, small ones with four.

    >>> p_text(0.0488), p_text(0.00098), p_text(1e-9), p_text(1.0), p_text(None)
    ('0.049', '0.0010', '<0.0001', '1', '–')
    """
    if p is None:
        return NONE
    if p < 0.0001:
        return "<0.0001"
    return "1" if p == 1 else f"{p:.3f}" if p >= 0.001 else f"{p:.4f}"


def _table(head: Sequence[str], lines: Iterable[str], label: str, *, tall: bool = False) -> str:
    """Return a table that scrolls by itself; `head` and `lines` are HTML, the label is not."""
    titles = "".join(
        f'<th scope="col"{" class=text" if title in _TEXT_COLUMNS else ""}>{title}</th>' for title in head
    )
    return (
        f'<div class="scroll{" tall" if tall else ""}" tabindex="0" role="region" '
        f'aria-label="{escape(label)}"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


_TEXT_COLUMNS = ("Test", "Better, by which test and since when")


# ---- means over folds


def _means_html(means: FoldMeans) -> str:
    order = [means.measures.index(name) for name in _first(means.measures)]
    held = [place for place in order if not np.isnan(means.values[place, :, 0, means.end(place)]).all()]
    fit = [place for place in held if len(held) <= _COLUMNS or means.measures[place] in FIRST_MEASURES]
    first = (fit or held)[:_COLUMNS]
    head = ["Learner", *(escape(_label(means.measures[place])) for place in first)]
    lines = (
        f'<tr><th scope="row" title="{escape(name)}">{escape(name)}</th>'
        f"{''.join(_mean_cell(means, place, learner) for place in first)}</tr>"
        for learner, name in enumerate(means.learners)
    )
    ends = np.array([means.end(place) for place in held], np.int64)
    folds = means.folds[held, :, ends]
    told = f"over {counted(int(folds.max(initial=0)), 'fold')}"
    if folds.size and folds.min() < folds.max():
        told += ", of a measure that is undefined in some over the others"
    where = "the last checkpoint"
    if ends.size and ends.min() < len(means.moments) - 1:
        where += " with enough folds"
    shown = (
        '<h3 class="group-title">Means over folds</h3>'
        f'<p class="about">Mean ± standard deviation {told}, in the window of {where}. The '
        "best of a measure is bold, which is no test.</p>" + _table(head, lines, "Means over folds")
    )
    if len(held) > len(first):
        titles = ["Measure", *(escape(name) for name in means.learners)]
        more = (
            f'<tr><th scope="row">{escape(_label(means.measures[place]))}</th>'
            f"{''.join(_mean_cell(means, place, learner) for learner in range(len(means.learners)))}</tr>"
            for place in held
        )
        shown += (
            f'<details class="reasons"><summary>All {len(held)} measures</summary>'
            f"{_table(titles, more, 'Means over folds of all measures')}</details>"
        )
    return shown


def _mean_cell(means: FoldMeans, measure: int, learner: int) -> str:
    mean, deviation, folds = means.latest(measure, learner)
    digits = _digits(means.measures[measure])
    text = number(mean, digits)
    if text != NONE and not np.isnan(deviation):
        text += f' <span class="spread">± {number(deviation, digits)}</span>'
    best = learner in means.best(measure)
    return f'<td title="{counted(folds, "fold")}">{f"<b>{text}</b>" if best else text}</td>'


# ---- one measure


def _controls_html() -> str:
    return """<div class="row-controls" id="better-controls" hidden>
  <label class="field">Measure <select id="better-measure"></select></label>
  <label class="field" id="better-spread-label">Band <select id="better-spread">
    <option value="deviation">mean ± standard deviation</option>
    <option value="range">least to greatest fold</option></select></label>
</div>
<figure class="chart" id="better-figure" aria-labelledby="better-chart-title" hidden>
  <h3 id="better-chart-title"></h3>
  <ul id="better-legend" class="legend" aria-label="Learners in the chart"></ul>
  <div id="better-chart" class="plot"></div>
  <figcaption id="better-caption"></figcaption>
</figure>"""


def _compared_html(one: Compared) -> str:
    label = _label(one.measure)
    told = [f'<h3 class="group-title">{escape(label)}: who is better than whom</h3>']
    told.append(f'<p class="about">{escape(_verdict(one))}</p>')
    told.append(_diagram_html(one, label))
    told.append(_pairs_html(one, label))
    told.append(_within_html(one, label))
    if len(one.pairs) > PAIRS_SHOWN:
        told.append(
            f'<p class="hint">Listed are the {PAIRS_SHOWN} pairs of the least p-values; the table of '
            f"comparisons holds all {len(one.pairs):,}.</p>"
        )
    if one.reasons:
        items = "".join(f"<li>{escape(why)} ({counted(n, 'test')})</li>" for why, n in one.reasons[:10])
        told.append(f'<p class="hint">Not tested, or to be read with care:</p><ul class="hint">{items}</ul>')
    return f'<div class="compared" data-measure="{escape(one.measure)}">{"".join(told)}</div>'


def _verdict(one: Compared) -> str:
    """Say in a sentence who is ahead."""
    over = [pair for pair in one.pairs if pair.over]
    if not over:
        return f"At {_moment_text(one.at)}, each fold by itself."
    differ = sum(any(found.better for found in pair.over.values()) for pair in over)
    told = f"At level {one.alpha:g}, over {counted(one.folds, 'fold')}: "
    if one.at != one.last:
        told = (
            f"At level {one.alpha:g}, over {counted(one.folds, 'fold')} at {_moment_text(one.at)}, because "
            f"the last checkpoint, {_moment_text(one.last)}, has {counted(one.last_folds, 'fold')}: "
        )
    if one.leader is not None:
        told += f"{_ahead(one, one.leader)}, since {_moment_text(one.leader.since)}. "
    elif differ:
        told += "no learner is better than every other by one test. "
    told += (
        f"Of {counted(len(over), 'pair')}, {differ} differ{'s' if differ == 1 else ''} by at least one test."
        if differ
        else "no pair differs by any test."
    )
    return told


def _ahead(one: Compared, leader: Leader) -> str:
    """Say whom the leader leads, and by which test."""
    others = {name for pair in one.pairs for name in (pair.learner_a, pair.learner_b)} - {leader.learner}
    than = others.pop() if len(others) == 1 else "every other"
    return f"{leader.learner} is better than {than} by {_test(leader.test)}"


def _test(name: str) -> str:
    return {"sign": "the sign test", "nemenyi": "the critical difference"}.get(
        name, f"{TESTS.get(name, name)}'s test"
    )


def _diagram_html(one: Compared, label: str) -> str:
    friedman = one.friedman
    if friedman is None:
        return ""
    words = ""
    if friedman.p_value is not None and friedman.statistic is not None:
        words = (
            f"Friedman's test of all learners being alike over {counted(friedman.folds, 'fold')}: "
            f"χ² = {friedman.statistic:.2f}, p {'=' if friedman.p_value >= 0.0001 else ''} "
            f"{p_text(friedman.p_value)}. "
        )
    difference = friedman.critical_difference
    if difference is None:
        return f'<p class="about">{words}There are no ranks to draw.</p>' if words else ""
    names, ranks = list(friedman.ranks), list(friedman.ranks.values())
    drawing = cd_diagram(ranks, names, difference, friedman.groups(), f"Critical difference by {label}")
    file = b64encode(drawing.encode()).decode()
    return (
        f'<figure class="chart diagram"><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(f"Critical difference diagram by {label}")}">{drawing}</div>'
        f"<figcaption>{words}Average ranks, the best to the right; learners under one thick bar differ by no "
        f"more than the critical difference {difference:.2f} (Nemenyi, level {one.alpha:g}). "
        f'<a download="critical-difference.svg" href="data:image/svg+xml;base64,{file}">Save as SVG</a>'
        "</figcaption></figure>"
    )


def _ordered(one: Compared) -> list[Pair]:
    """Return the pairs to list, the better ranked learner first and the best ranked pairs on top.

    Of too many they are those of the least p-values.
    """
    pairs = sorted(one.pairs, key=_least)[:PAIRS_SHOWN] if len(one.pairs) > PAIRS_SHOWN else one.pairs
    ranks = one.friedman.ranks if one.friedman else {}

    def place(pair: Pair) -> tuple[float, ...]:
        return tuple(ranks.get(name, math.inf) for name in (pair.learner_a, pair.learner_b))

    turned = [pair.turned() if place(pair)[0] > place(pair)[1] else pair for pair in pairs]
    return sorted(turned, key=place)


def _least(pair: Pair) -> float:
    """Return the least corrected p-value; 2 = none."""
    over = [found.p_holm for found in pair.over.values() if found.p_holm is not None]
    within = [found.p_holm[0] for found in pair.within.values() if found.p_holm is not None]
    return min([*over, *within], default=2.0)


def _pairs_html(one: Compared, label: str) -> str:
    tests = one.tests
    pairs = [pair for pair in _ordered(one) if pair.over]
    if not pairs:
        return ""
    by_p = [test for test in tests if test != "nemenyi"]
    head = ["Pair", "Wins in folds"] if by_p else ["Pair"]
    for test in by_p:
        name = TESTS[test].capitalize()
        head += [f"{name} p", f"{name} Holm p"]
    head += ["Difference of ranks"] if "nemenyi" in tests else []
    head.append("Better, by which test and since when")
    lines = (_pair_line(pair, by_p, ranked="nemenyi" in tests) for pair in pairs)
    return _table(head, lines, f"Pairs by {label}", tall=True)


def _pair_line(pair: Pair, tests: Sequence[str], *, ranked: bool) -> str:
    cells = [_pair_name(pair)]
    if tests:
        cells.append(f"<td>{NONE if pair.wins is None else f'{pair.wins[0]} : {pair.wins[1]}'}</td>")
    for test in tests:
        found = pair.over.get(test)
        both = (None, None) if found is None else (found.p_value, found.p_holm)
        cells += [f"<td{_exact(p)}>{p_text(p)}</td>" for p in both]
    if ranked:
        gap = pair.rank_difference
        cells.append(f"<td>{NONE if gap is None else f'{gap:.2f}'.replace('-', MINUS)}</td>")
    cells.append(f'<td class="text verdict">{_better_html(pair)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _exact(p: float | None) -> str:
    return "" if p is None else f' title="{p!r}"'


def _pair_name(pair: Pair) -> str:
    return (
        f'<th scope="row" class="names">{escape(pair.learner_a)} <span class="against">against</span> '
        f"{escape(pair.learner_b)}</th>"
    )


def _better_html(pair: Pair) -> str:
    """Say who is better, by which tests and since when; tests that agree on both are named together."""
    by: dict[str, dict[Checkpoint, list[str]]] = {}
    for test in OVER_FOLDS:
        found = pair.over.get(test)
        if found is not None and found.better:
            by.setdefault(found.better, {}).setdefault(found.since, []).append(TESTS[test])
    if not by:
        return '<span class="spread">no difference shown</span>'
    told = []
    for name, moments in by.items():
        since = "; ".join(
            f'{", ".join(tests)} since <span title="{_moment_text(at)}, checkpoint {at.checkpoint}">event '
            f"{at.seq:,}</span>"
            for at, tests in sorted(moments.items())
        )
        told.append(f"<b>{escape(name)}</b>: {since}")
    return "<br>".join(told)


def _within_html(one: Compared, label: str) -> str:
    """Return the tests that are made in every fold, summed up over these."""
    lines, anytime = [], any(found.p_anytime for pair in one.pairs for found in pair.within.values())
    for pair in _ordered(one):
        lines += [_within_line(pair, test, found, anytime=anytime) for test, found in pair.within.items()]
    if not lines:
        return ""
    head = ["Pair", "Test", "First better in", "Second better in", "p", "Holm p"]
    head += ["Anytime-valid p", f"Of it at most {one.alpha:g} in"] if anytime else []
    return f'<p class="about within">{escape(_WITHIN.format(label))}</p>' + _table(
        head, lines, f"Tests within folds by {label}", tall=True
    )


_WITHIN = (
    "{} in each fold by itself: in how many of the folds one is better, and the least and greatest p-value."
)


def _within_line(pair: Pair, test: str, found: FoldFindings, *, anytime: bool) -> str:
    cells = [
        _pair_name(pair),
        f'<td class="text">{escape(TESTS.get(test, test))}</td>',
        f"<td>{found.better_a} of {found.folds}</td>",
        f"<td>{found.better_b} of {found.folds}</td>",
        *(_range_cell(ends) for ends in (found.p_values, found.p_holm)),
    ]
    if anytime:
        there = found.p_anytime is not None
        cells.append(_range_cell(found.p_anytime))
        cells.append(f"<td>{f'{found.anytime} of {found.folds}' if there else NONE}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _range_cell(ends: tuple[float, float] | None) -> str:
    if ends is None:
        return f"<td>{NONE}</td>"
    low, high = map(p_text, ends)
    title = f"{ends[0]!r} to {ends[1]!r}"
    return f'<td title="{title}">{escape(low if low == high else f"{low} to {high}")}</td>'


# ---- the chart


def _chart(compared: Sequence[Compared], means: FoldMeans | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the chart is told, and its numbers: a block a measure, [learner, statistic, moment]."""
    if means is None:
        return {"learners": []}, {}
    blocks = {f"means_{place}": packed(values.reshape(-1)) for place, values in enumerate(means.values)}
    times = [np.nan if at.time is None else at.time for at in means.moments]
    blocks["means_seq"] = packed(np.array([at.seq for at in means.moments], np.float64))
    blocks["means_time"] = packed(np.array(times, np.float64))
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
    }, blocks


def _slots(means: FoldMeans, measures: Sequence[str]) -> list[int]:
    """Return for every learner which colour and dash it has; those of the first colours are drawn at first.

    They are in the order of names, as in the page's other charts; of more than there are colours the best
    ones by the first measure come first.
    """
    places = list(range(len(means.learners)))
    if len(places) <= COLOURS:
        return places
    measure = next(means.measures.index(name) for name in measures if name in means.measures)
    values = means.values[measure, :, 0, -1]
    signed = values if means.measures[measure] in LOWER_IS_BETTER else -values
    order = np.argsort(signed, kind="stable").tolist()
    return [order.index(place) for place in places]
