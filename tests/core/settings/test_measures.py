"""Which measures a row shows: the cheap ones, or those that are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import rocsteady as rs
from rocsteady.core.rows.measure_table import (
    COSTLY_MEASURES,
    EVIDENCE_MEASURES,
    MEASURES,
    PROBABILITY_MEASURES,
)

from tests.support.invariants.refusals import assert_refused


def test_the_usual_measures_are_the_cheap_ones() -> None:
    usual = set(rs.EvaluatorSettings().measures or ())
    assert usual == set(MEASURES) - {*COSTLY_MEASURES, *PROBABILITY_MEASURES, *EVIDENCE_MEASURES}
    probable = set(rs.EvaluatorSettings(probabilities=True).measures or ())
    assert probable == usual | {"brier", "log_loss"}
    everything = rs.EvaluatorSettings(measures="all", probabilities=True, evidence_below=0.8)
    assert everything.measures == MEASURES
    assert rs.EvaluatorSettings(measures="ks_threshold", evidence_below=0.8).measures == (
        "ks_threshold", *EVIDENCE_MEASURES,
    )  # fmt: skip
    assert rs.EvaluatorSettings(measures=("ks", "auc")).measures == (
        "auc", "auc_low", "auc_high", "ks", "ks_threshold",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rs.EvaluatorSettings(measures="aucc"), ["'aucc'", "auc_low"]),
        (lambda: rs.EvaluatorSettings(measures=()), ["measures=()", "at least one"]),
        (lambda: rs.EvaluatorSettings(measures="brier"), ["'brier'", "probabilities=True"]),
        (lambda: rs.EvaluatorSettings(measures="evidence"), ["'evidence'", "evidence_below=0.8"]),
        (lambda: rs.EvaluatorSettings(evidence_below=1), ["evidence_below=1", "between 0 and 1"]),
        (lambda: rs.EvaluatorSettings(evidence_blocks=0), ["evidence_blocks=0", "from 1 to 100"]),
    ],
)
def test_a_wrong_measure_names_value_and_remedy(make: Callable[[], Any], words: list[str]) -> None:
    assert_refused(make, words)
