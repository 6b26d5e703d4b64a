"""Members that are surely below their bound: e-BH against its definition, and its promise by simulation."""

import math

import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.fleet.surely import log_e_values, surely_columns
from scipy.stats import norm

from tests.support.thorough import THOROUGH, at_length


def named_by_definition(e_values: list[float], alpha: float) -> set[int]:
    """The largest set of k members whose e-values are K / (alpha k) or more, by trying all k."""
    known = [place for place, value in enumerate(e_values) if not math.isnan(value)]
    for k in range(len(known), 0, -1):
        chosen = sorted(known, key=lambda place: -e_values[place])[:k]
        if all(e_values[place] * k * alpha >= len(known) for place in chosen):
            return set(chosen)
    return set()


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0, 39.0, 41.0, 81.0, 121.0, 1e9, math.nan]), max_size=8))
def test_those_named_are_those_of_the_definition(e_values):
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(e_values))
    names = [f"m{place}" for place in range(len(e_values))]
    found = surely_columns(names, np.where(np.isinf(logs), -1e6, logs), 0.95)
    if all(map(math.isnan, e_values)):
        assert found == {"members_surely_below": None, "surely_below": None}
        return
    named = {names[place] for place in named_by_definition(e_values, 0.05)}
    assert found["members_surely_below"] == len(named)
    assert set(filter(None, found["surely_below"].split(", "))) == named


def test_a_row_without_evidence_has_no_e_value():
    nothing = np.array([math.nan, 1.0, 1.0])
    assert np.isnan(log_e_values(nothing, np.array([8.0, math.nan, 8.0]), np.array([8.0, 8.0, 0.0]))).all()
    assert log_e_values(np.array([3.0]), np.array([8.0]), np.array([80.0])) == 3 + math.log(0.1)


def rows_of(rng, aucs, events, every):
    """Rows with evidence below .8 of models with these AUCs, whose labels and shared noise are the same."""
    labels = rng.random(events) < 0.3
    noise = rng.normal(size=events)
    times = (np.arange(events) * (3_600 / every)).astype("M8[s]")
    rows = []
    for place, auc in enumerate(aucs):
        scores = math.sqrt(2) * norm.ppf(auc) * labels + (noise + rng.normal(size=events)) / math.sqrt(2)
        evaluator = rs.ModelEvaluator(
            model=f"m{place}", window=rs.LastEvents(every), every=rs.EverySeconds("1h"), evidence_below=0.8
        )
        rows += evaluator.update(labels, scores, times=times)
    return rows


def test_a_member_that_fell_is_named_and_the_others_are_not():
    rows = rows_of(np.random.default_rng(2), [0.85, 0.7, 0.86, 0.72, 0.9], 6_000, 1_000)
    last = rs.roll_up(rows).to_pylist()[-1]
    assert last["members_surely_below"] == 2
    assert set(last["surely_below"].split(", ")) == {"m1", "m3"}


def test_rows_without_evidence_say_nothing_of_it():
    rows = rows_of(np.random.default_rng(2), [0.85, 0.7], 2_000, 1_000)
    bare = [row._replace(evidence=None, block_events=None) for row in rows]
    for one, other in zip(rs.roll_up(bare).to_pylist(), rs.roll_up(rows).to_pylist(), strict=True):
        assert (one["members_surely_below"], one["surely_below"]) == (None, None)
        assert {**other, "members_surely_below": None, "surely_below": None} == one


def test_rows_of_a_table_name_the_same_members():
    rows = rows_of(np.random.default_rng(5), [0.85, 0.7, 0.86], 4_000, 1_000)
    kept = ("model", "slice", "due", "seq", "auc", "auc_low", "auc_high", "positives", "negatives")
    table = {name: [getattr(row, name) for row in rows] for name in (*kept, "evidence", "block_events")}
    found = rs.roll_up(pa.table(table)).column("surely_below").to_pylist()
    assert found == rs.roll_up(rows).column("surely_below").to_pylist()
    assert rs.roll_up(pa.table(table).drop(["evidence"])).column("surely_below").null_count == len(found)


@pytest.mark.at_length
@pytest.mark.parametrize("below", [0, 10])
def test_few_of_those_named_are_named_wrongly(below):
    """20 models at the bound, and some far below it: the share of wrong names is 5% at most, in the mean."""
    shares = []
    for seed in range(300 if THOROUGH else at_length(100, 15)):
        aucs = [0.8] * 20 + [0.7] * below
        row = rs.roll_up(rows_of(np.random.default_rng([seed, below]), aucs, 4_000, 1_000)).to_pylist()[-1]
        named = [int(name[1:]) for name in row["surely_below"].split(", ") if name]
        assert not below or len(named) >= below / 2
        shares.append(sum(place < 20 for place in named) / max(1, len(named)))
    assert np.mean(shares) <= 0.05 + 2.6 * np.std(shares) / math.sqrt(len(shares))
