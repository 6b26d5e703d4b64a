"""JoinLabels: arguments that cannot be are refused when it is made, in a sentence that names them."""

from __future__ import annotations

from typing import Any

import pytest
import rocsteady as rs
from rocsteady.core.errors import ConfigError

ARGUMENTS: dict[str, Any] = {"id": "key", "time": "made", "label_time": "known", "ttl": "3h"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": None}, "id=None: labels are joined by id, in event time; name the field"),
        ({"time": None}, "time=None: labels are joined by id, in event time; name the field"),
        ({"label_time": 5}, "label_time=5: give the name of a column, as text"),
        ({"label_time": ""}, "label_time='': give the name of a column, as text"),
        ({"lateness": None}, "lateness: None is no duration"),
        ({"lateness": -1}, "lateness: -1 is no duration"),
        ({"slices": 5}, "slices=5: give a tuple of slices"),
        ({"ttl": "20000000d"}, "ttl='20000000d' is longer than 36,000 years; give at most that"),
        ({"ttl": "1h", "label_lead": "2h"}, "label_lead='2h' is longer than ttl='1h'; give at most that"),
    ],
)
def test_arguments_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rs.JoinLabels(**{**ARGUMENTS, **changes})


@pytest.mark.parametrize("lateness", [0, "0s", 0.0])
def test_no_lateness_is_none(lateness: Any) -> None:
    assert rs.JoinLabels(**ARGUMENTS, lateness=lateness).order == rs.JoinLabels(**ARGUMENTS).order


def test_slices_may_be_any_iterable() -> None:
    rs.JoinLabels(**ARGUMENTS, slices=iter(["country", ("country", "device")]))
    rs.EvaluateModels(slices=iter(["country", ("country", "device")]))


def test_slices_of_an_evaluation_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="slices=5: give a tuple of slices"):
        rs.EvaluateModels(slices=5)  # type: ignore[arg-type]
