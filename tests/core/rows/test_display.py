"""What a person sees of measures, rows and evaluators: at a glance, in any state, changing nothing."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.measures import decisions
from rocsteady.core.process.console import visible
from rocsteady.core.rows.columns import COLUMNS
from rocsteady.core.rows.rows import Rows

from tests.support.streams.times import moments

HOSTILE = '<script>alert("1")</script>&\x1b[31m\n\x9b\u202e\u2066'
KINDS: dict[str, dict[str, Any]] = {
    "sorted": {"window": rs.LastEvents(50), "every": rs.EveryEvents(40)},
    "tree": {"window": rs.LastEvents(300), "every": rs.EveryEvents(7)},
    "without end": {"window": rs.AllEvents(), "every": rs.EveryEvents(40), "measures": "all"},
    "few measures": {"measures": ("g_mean", "ks")},
}


def events(n: int = 400) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, n)
    return labels, rng.integers(0, 30, n) / 30 + labels / 9


class Checker(HTMLParser):
    """Remembers which tags were opened, and refuses those that are not closed in turn."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002  the parser's face
        self.tags.add(tag)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def seen(thing: Any) -> tuple[str, Checker]:
    """The two ways in which a thing is shown."""
    checker = Checker()
    checker.feed(thing._repr_html_())
    checker.close()
    assert not checker._open
    assert checker.tags <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}
    return repr(thing), checker


def evaluator_of(kind: str, n: int) -> rs.ModelEvaluator:
    labels, scores = events()
    ev = rs.ModelEvaluator(**KINDS[kind], model="churn", slice="country=NZ", pane=(0, 10**6))
    ev.update(labels[:n], scores[:n], times=moments(np.arange(n) * 10**6))
    return ev


def evaluator_of_one_class(kind: str) -> rs.ModelEvaluator:
    ev = rs.ModelEvaluator(**KINDS[kind])
    ev.update(np.ones(5), events()[1][:5])
    return ev


def evaluator_of_classes(kind: str, positive: str | None) -> rs.ModelEvaluator:
    named = np.array(["up", "down", "flat"])
    labels, scores = events()
    ev = rs.ModelEvaluator(**KINDS[kind], positive=positive)
    ev.update(named[labels], scores, predicted=named[labels[::-1] * 2])
    return ev


def every_state() -> dict[str, Callable[[], rs.ModelEvaluator]]:
    """What makes an evaluator in each state, by the state's name."""
    states: dict[str, Callable[[], rs.ModelEvaluator]] = {
        f"empty, {kind}": partial(rs.ModelEvaluator, **choices) for kind, choices in KINDS.items()
    }
    for kind in KINDS:
        for n in (1, 2, 3, 60, 400):
            states[f"{n} events, {kind}"] = partial(evaluator_of, kind, n)
        states[f"one class, {kind}"] = partial(evaluator_of_one_class, kind)
        for positive in (None, "up", "never"):
            states[f"classes, positive {positive}, {kind}"] = partial(evaluator_of_classes, kind, positive)
    return states


@pytest.mark.filterwarnings("ignore::rocsteady.ClassesWarning")  # of predictions that are nearly never right
@pytest.mark.parametrize("state", every_state())
def test_an_evaluator_shows_itself_in_every_state_and_is_not_changed(state: str) -> None:
    ev = every_state()[state]()
    before = ev.to_bytes()
    other = copy.deepcopy(ev)
    text, html = seen(ev)
    assert text.startswith("<ModelEvaluator")
    assert "\n" not in text
    assert f"{len(ev):,} events held of {ev.seq:,}" in text
    assert str(ev.settings.window) in text
    assert text == repr(ev)
    assert f"{len(ev):,} events held of {ev.seq:,}" in "".join(html.texts)
    measures, rows = ev.measures(), ev.finish()
    seen(measures)
    seen(rows)
    for row in rows:
        seen(row)
    assert before == other.to_bytes()
    more = (["up"] * 9, np.linspace(0, 1, 9)) if "classes" in state else events(9)
    given = {"predicted": ["up"] * 9} if "classes" in state else {}
    assert list(ev.update(*more, **given))[:1] == [
        row._replace(row=row.row + len(rows)) for row in other.update(*more, **given)[:1]
    ]


def test_at_a_glance() -> None:
    ev = rs.ModelEvaluator(model="churn", window=rs.LastEvents(10_000))
    rows = ev.update([0, 1, 0, 1] * 3_000, [0.1, 0.9, 0.4, 0.3] * 3_000)
    assert repr(ev) == (
        "<ModelEvaluator of 'churn': last:10000, 10,000 events held of 12,000; auc 0.7500 [0.7402, 0.7598]; "
        "h 0.5000; ks 0.5000; kappa_m 0.7500; kappa 0.5000; accuracy 0.7500>"
    )
    assert repr(rows[-1]).startswith(
        "MeasureRow(model='churn', slice='', row=119, seq=12,000, window_events=10,000, weight=10,000, "
        "positives=5,000, negatives=5,000, prevalence=0.5000, auc=0.7500 [0.7402, 0.7598], h=0.5000, "
    )
    lines = repr(rows).splitlines()
    assert lines[0] == "<Rows: 120 of 1 (model, slice)"
    assert " ".join(lines[1].split()) == "model seq window_events auc h ks kappa_m kappa accuracy"
    assert lines[7].strip() == "... 110 rows ..."
    assert lines[-1].split()[:3] == ["churn", "12,000", "10,000"]
    assert len(lines) == 13
    assert len({len(line) for line in lines[1:7]}) == 1
    said = repr(ev.measures())
    assert said.startswith("<Measures of 10,000 events\n  weight 10,000   positives 5,000   negatives 5,000")
    assert max(map(len, said.splitlines())) <= 100
    assert repr(Rows.empty()) == "<Rows: 0 of 0 (model, slice)>"


def test_nulls_are_left_out_and_their_reason_is_said_once() -> None:
    ev = rs.ModelEvaluator(measures=("auc", "ks", "kappa"))
    ev.update([1, 1], [0.7, 0.8])
    assert repr(ev).endswith(
        "2 events held of 2; auc, ks: one class in window; kappa: chance agreement is certain>"
    )
    said = repr(ev.measures())
    assert "auc, auc_low, auc_high, ks, ks_threshold: one class in window; kappa: chance" in " ".join(
        said.split()
    )
    assert not re.search(r"\bh \d|nan|None", said)
    (row,) = ev.finish()
    assert "auc=" not in repr(row)
    assert "reason='auc, auc_low, auc_high, ks, ks_threshold: one class in window; kappa: chance" in repr(row)


def test_fields_stay_exact_where_what_is_shown_is_rounded() -> None:
    ev = rs.ModelEvaluator()
    ev.update([0, 1, 0, 1, 1, 0, 1], [0.1, 0.9, 0.4, 0.3, 0.2, 0.25, 1 / 3])
    measures = ev.measures()
    assert measures.auc == 2 / 3
    assert "auc 0.6667 [" in repr(measures)
    assert pickle.loads(pickle.dumps(measures)) == measures
    assert type(measures) is rs.Measures
    assert tuple(measures) == tuple(getattr(measures, name) for name in measures._fields)
    (row,) = ev.finish()
    assert pickle.loads(pickle.dumps(row)) == row == rs.MeasureRow(*row)
    assert dict(zip(COLUMNS, row, strict=True)) == row._asdict()


def test_names_are_visible_in_a_console_and_in_a_notebook() -> None:
    ev = rs.ModelEvaluator(model=HOSTILE, slice=f"a={HOSTILE}", every=rs.EveryEvents(40))
    rows = ev.update(*events(100))
    for thing in (ev, rows, rows[1]):
        text, html = seen(thing)
        assert text.replace("\n", "").isprintable()  # Rows have a line each
        assert "alert" in text
        assert all(found.isprintable() for found in html.texts)
        assert any(visible(HOSTILE)[:15] in found for found in html.texts)
        assert "script" not in html.tags
    seen(ev.measures())
    long = rs.ModelEvaluator(model="m" * 5_000, every=rs.EveryEvents(40)).update(*events(100))
    assert max(map(len, repr(long).splitlines())) < 200
    assert len(long._repr_html_()) < 5_000


def test_times_are_shown_as_utc_and_those_beyond_the_calendar_as_they_are() -> None:
    rows = Rows.blank(3, (("m", ""),), "c")
    for name in ("row", "seq", "window_events"):
        rows.integer(name)[:] = 1
    rows.integer("time")[:] = [1_357_000_000_000_001, 2**62, NO_TIME]
    rows.drift[0] = 1
    text, html = seen(rows)
    assert "2013-01-01T00:26:40.000001Z" in text
    assert str(2**62) in html.texts
    assert "time=2013-01-01T00:26:40.000001Z" in repr(rows[0])
    assert "drift=True" in repr(rows[0])
    assert "time=" not in repr(rows[2])


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_evaluator_says_so(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ev = rs.ModelEvaluator(**KINDS[kind])
    ev.update(*events(90))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(decisions, "apply_decisions", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ev.update(*events(90))
    text, html = seen(ev)
    assert text.endswith("; an update was interrupted: go on from a snapshot>")
    assert "interrupted" in "".join(html.texts)


def test_a_window_that_takes_long_to_sort_is_not_measured_for_a_repr() -> None:
    n = 1_000_001
    rng = np.random.default_rng(2)
    ev = rs.ModelEvaluator(window=rs.AllEvents(), every=rs.EveryEvents(10**9), measures=("auc",))
    ev.update(rng.integers(0, 2, n), rng.random(n))
    assert repr(ev) == "<ModelEvaluator: all, 1,000,001 events held of 1,000,001>"
    assert ev.measures().auc == pytest.approx(0.5, abs=0.01)
