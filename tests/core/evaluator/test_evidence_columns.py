"""The columns of evidence: those of a detector that is fed the same events, in any window and for any cut."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.evaluator.snapshot import Snapshot
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.rows.columns import reasons_by_measure
from rocsteady.core.rows.measure_table import EVIDENCE_MEASURES
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import parse_every, parse_window
from rocsteady.core.state.take_up import taken_up
from rocsteady.core.table.table import EvaluatorTable

WINDOWS = ("last:7", "last:2000", "last:40s", "fading:20", "adaptive", "adaptive:0.5:error", "all")
NO_BLOCK = "no block of positives and negatives is full yet"


def events(n: int, seed: int = 1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.4).astype(np.int8)
    scores = np.round(rng.normal(labels * np.where(np.arange(n) < n // 2, 1.5, 0.2)), 1)
    return labels, scores, np.cumsum(rng.integers(0, 3, n)).astype("M8[s]")


def evaluator(**choices: Any) -> rs.ModelEvaluator:
    return rs.ModelEvaluator(**{"evidence_below": 0.8, "evidence_blocks": 2, **choices})


def without_evidence(row: rs.MeasureRow) -> tuple[Any, ...]:
    cells = row._asdict()
    for name in (*EVIDENCE_MEASURES, "config"):
        cells.pop(name)
    return tuple(cells.items())


@pytest.mark.parametrize("every", ["3", "17s"])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_row_has_the_evidence_of_all_events_up_to_it_for_any_cut(window: str, every: str) -> None:
    labels, scores, times = events(400)
    settings = {"window": parse_window(window), "every": parse_every(every)}
    whole = evaluator(**settings)
    rows = [*whole.update(labels, scores, times=times), *whole.finish()]
    detector = rs.EvidenceBelow(0.8, blocks=2)
    expected = []
    for label, score in zip(labels, scores, strict=True):
        detector.update([label], [score])
        expected.append((detector.evidence, detector.since, detector.block_events))
    assert rows[0].evidence is None or rows[0].seq > 3
    assert len(rows) > 5
    for row in rows:
        assert (row.evidence, row.evidence_since, row.block_events) == expected[row.seq - 1]
        assert (NO_BLOCK in (row.reason or "")) == (row.evidence is None)
    assert rows[-1].evidence is not None
    assert rows[-1].evidence > 3
    assert whole.measures().evidence == rows[-1].evidence

    rng, parts = random.Random(3), []
    cut, start = evaluator(**settings), 0
    while start < len(labels):
        end = min(len(labels), start + rng.randint(1, 60))
        parts += cut.update(labels[start:end], scores[start:end], times=times[start:end])
        data = cut.to_bytes()
        assert len(cut.to_bytes()) == len(data)
        cut = rs.ModelEvaluator.from_bytes(data, cut.settings)
        assert cut.to_bytes() == data
        assert cut.measures().evidence == expected[end - 1][0]
        start = end
    parts += cut.finish()
    assert [(row.seq, row.evidence, row.evidence_since) for row in parts] == [
        (row.seq, row.evidence, row.evidence_since) for row in rows
    ]
    if "fading" not in window:  # masses that fade are rounded otherwise after a restart
        assert parts == rows

    plain = rs.ModelEvaluator(**settings)
    others = [*plain.update(labels, scores, times=times), *plain.finish()]
    assert [row.evidence for row in others] == [None] * len(others)
    pairs = zip(rows, others, strict=True)
    assert all(
        without_evidence(row) == without_evidence(other) for row, other in pairs if row.evidence is not None
    )


PERIOD = "1970-01-01T00:01..1970-01-01T00:03 less 0.02"


@pytest.mark.parametrize("every", ["3", "2s"])
def test_a_row_says_the_bound_that_a_period_gave_and_why_there_is_no_evidence(every: str) -> None:
    labels, scores, times = events(400)
    choices = {"evidence_below": PERIOD, "block_gap": "2s", "every": parse_every(every)}
    whole = evaluator(**choices)
    rows = [*whole.update(labels, scores, times=times), *whole.finish()]
    detector, expected = rs.EvidenceBelow(PERIOD, blocks=2, gap="2s"), []
    for seq, event in enumerate(zip(labels, scores, times, strict=True), 1):
        detector.update(*([value] for value in event[:2]), times=[event[2]])
        since = None if detector.since is None else detector.since + seq - detector.events
        expected.append((detector.evidence, since, detector.block_events, detector.bound))
    said = []
    for row in rows:
        assert (row.evidence, row.evidence_since, row.block_events, row.evidence_bound) == expected[
            row.seq - 1
        ]
        reason = reasons_by_measure(row.reason).get("evidence", "")
        said.append((row.evidence is None, row.evidence_bound is None, reason))
    assert list(dict.fromkeys(said)) == [
        (True, True, "no event has come after the reference period yet"),
        (True, False, NO_BLOCK),
        (False, False, ""),
    ]
    cut, parts = evaluator(**choices), []
    for start in range(0, 400, 37):
        part = slice(start, start + 37)
        parts += cut.update(labels[part], scores[part], times=times[part])
        cut = rs.ModelEvaluator.from_bytes(cut.to_bytes(), cut.settings)
    assert [*parts, *cut.finish()] == rows


def test_a_stream_that_begins_after_the_period_says_so_in_each_row() -> None:
    labels, scores, times = events(100)
    rows = evaluator(evidence_below=PERIOD, every=rs.EveryEvents(10)).update(
        labels, scores, times=times + np.timedelta64(9, "m")
    )
    assert {(row.evidence, row.evidence_bound) for row in rows} == {(None, None)}
    assert all("the reference period has too few events" in str(row.reason) for row in rows)


def test_events_without_times_are_refused_where_evidence_needs_times() -> None:
    for choices, words in (
        ({"evidence_below": PERIOD}, "evidence-below 1970-01-01T00:01:00Z.*needs the time of every event"),
        ({"block_gap": "1h"}, "block-gap 1h needs the time of every event"),
    ):
        with pytest.raises(rs.InputError, match=words):
            evaluator(**choices).update([1, 0], [0.5, 0.2])
    with pytest.raises(rs.ConfigError, match="block_gap='1h': there is no evidence"):
        rs.ModelEvaluator(block_gap="1h")
    with pytest.raises(rs.ConfigError, match="evidence_blocks=3: there is no evidence"):
        rs.ModelEvaluator(evidence_blocks=3)


def test_curves_do_not_change_the_evidence() -> None:
    labels, scores, _ = events(100)
    with_curves = evaluator(every=rs.EveryEvents(7), curves=rs.EveryEvents(5)).update(labels, scores)
    assert len(with_curves.curves) == 20
    assert [*with_curves] == [*evaluator(every=rs.EveryEvents(7)).update(labels, scores)]


def test_the_size_of_a_state_is_known() -> None:
    labels, scores, _ = events(50)
    ev = evaluator()
    ev.update(labels, scores)
    other = rs.ModelEvaluator()
    other.update(labels, scores)
    more = len(ev._engine.evidence.detector.to_bytes()) + 4  # type: ignore[union-attr]
    assert ev.snapshot_bytes() - other.snapshot_bytes() == more


def test_weights_are_refused_in_a_sentence_and_change_nothing() -> None:
    ev = evaluator(model="churn")
    ev.update([1, 0], [0.5, 0.2])
    before = ev.to_bytes()
    with pytest.raises(rs.InputError, match="'churn' have weights, and nothing is proven"):
        ev.update([1, 0], [0.5, 0.2], weights=[1.0, 2.0])
    assert ev.to_bytes() == before


def test_classes_have_evidence_where_one_of_them_is_positive() -> None:
    labels, scores, _ = events(200)
    classes = np.where(labels == 1, "yes", "no")
    named = evaluator(positive="yes", every=rs.EveryEvents(10)).update(classes, scores, predicted=classes)
    plain = evaluator(every=rs.EveryEvents(10)).update(labels, scores)
    np.testing.assert_array_equal(named.number("evidence"), plain.number("evidence"))
    nameless = evaluator()
    nameless.update(classes, scores, predicted=classes)
    said = nameless.measures()
    assert said.evidence is None
    assert "evidence, evidence_since, block_events, evidence_bound" in str(said.reason)
    assert "no positive class is named" in str(said.reason)
    assert NO_BLOCK not in str(said.reason)


def test_a_state_with_evidence_is_of_version_5_and_older_states_go_on() -> None:
    labels, scores, _ = events(60)
    ev, plain = evaluator(), rs.ModelEvaluator()
    ev.update(labels, scores)
    plain.update(labels, scores)
    assert (ev.to_bytes()[4], plain.to_bytes()[4]) == (5, 1)
    with pytest.raises(rs.OtherConfigurationError, match=r"evidence_below was 0\.8 and is now 0\.7"):
        rs.ModelEvaluator.from_bytes(
            ev.to_bytes(), rs.EvaluatorSettings(evidence_below=0.7, evidence_blocks=2)
        )


def table_of(**choices: Any) -> TableSettings:
    return TableSettings(rs.EvaluatorSettings(**choices))


def newest(table: EvaluatorTable) -> rs.MeasureRow:
    """Return the last row of a table's one model, and leave the table as it is."""
    copy = EvaluatorTable.from_bytes(table.to_bytes(), table.settings)
    [rows] = copy.apply(EndOfInput().pack())
    assert isinstance(rows, rs.Rows)
    return rows[len(rows) - 1]


def batch(labels: Any, scores: Any) -> bytes:
    return rs.EventBatch(rs.TextColumn.of(["m"] * len(labels)), scores, labels).pack()


def test_a_job_with_another_bound_goes_on_with_a_state_and_its_evidence_begins_anew() -> None:
    labels, scores, _ = events(350)
    plain = EvaluatorTable(table_of())
    plain.apply(batch(labels[:110], scores[:110]))
    wanted = table_of(evidence_below=0.8, evidence_blocks=2)
    begun = EvaluatorTable.from_bytes(taken_up(plain.to_bytes(), wanted), wanted)
    assert newest(begun).evidence is None
    begun.apply(batch(labels[110:], scores[110:]))
    fresh = rs.EvidenceBelow(0.8, blocks=2)
    fresh.update(labels[110:], scores[110:])
    assert newest(begun).evidence == fresh.evidence
    assert newest(begun).evidence_since == 110 + (fresh.since or math.nan)

    for other in (
        table_of(),
        table_of(evidence_below=0.7, evidence_blocks=2),
        table_of(evidence_below=0.8),
    ):
        table = EvaluatorTable.from_bytes(taken_up(begun.to_bytes(), other), other)
        assert (newest(table).seq, newest(table).evidence) == (350, None)


def test_a_state_whose_evidence_does_not_fit_is_refused() -> None:
    labels, scores, _ = events(60)
    ev = evaluator()
    ev.update(labels, scores)
    state = ev.state()
    for wrong in (
        rs.EvidenceBelow(0.7, blocks=2).to_bytes(),
        rs.EvidenceBelow(0.8, blocks=3).to_bytes(),
        rs.EvidenceBelow(0.8, blocks=2, gap="1h").to_bytes(),
        rs.EvidenceBelow(PERIOD, blocks=2).to_bytes(),
        state.evidence[:-1],
    ):
        broken = Snapshot.of_evaluator(ev.settings, state.__class__(**{**vars(state), "evidence": wrong}))
        with pytest.raises(rs.WireError):
            rs.ModelEvaluator.from_bytes(broken.pack())
    longer = rs.EvidenceBelow(0.8, blocks=2)
    longer.update([*labels, 1], [*scores, 0.5])
    broken = Snapshot.of_evaluator(
        ev.settings, state.__class__(**{**vars(state), "evidence": longer.to_bytes()})
    )
    with pytest.raises(rs.CorruptBytesError, match="61 of 60 events"):
        rs.ModelEvaluator.from_bytes(broken.pack())
