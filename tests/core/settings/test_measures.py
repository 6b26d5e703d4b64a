"""Which measures a row shows: the cheap ones, or those that are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import rocsteady as rs
from refusals import assert_refused
from rocsteady.core.settings.measure_names import COSTLY_MEASURES, MEASURES, PROBABILITY_MEASURES


def test_the_usual_measures_are_the_cheap_ones() -> None:
    usual = set(rs.EvaluatorSettings().measures or ())
    assert usual == set(MEASURES) - {*COSTLY_MEASURES, *PROBABILITY_MEASURES}
    probable = set(rs.EvaluatorSettings(probabilities=True).measures or ())
    assert probable == usual | {"brier", "log_loss"}
    assert rs.EvaluatorSettings(measures="all", probabilities=True).measures == MEASURES
    assert rs.EvaluatorSettings(measures=("ks", "auc")).measures == (
        "auc", "auc_low", "auc_high", "ks", "ks_threshold",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rs.EvaluatorSettings(measures="aucc"), ["'aucc'", "auc_low"]),
        (lambda: rs.EvaluatorSettings(measures=()), ["measures=()", "at least one"]),
        (lambda: rs.EvaluatorSettings(measures="brier"), ["'brier'", "probabilities=True"]),
    ],
)
def test_a_wrong_measure_names_value_and_remedy(make: Callable[[], Any], words: list[str]) -> None:
    assert_refused(make, words)
