"""Keywords of functions: objects, and texts of the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import rocsteady as rs
from rocsteady.core.settings.choices import read_choices

WORDS: dict[str, Any] = {
    "window": "last:500", "every": "1h", "cost": "severity", "partial_fpr": "0:0.2", "measures": "auc,h",
    "evidence_below": "0.8", "block_gap": "60m",
}  # fmt: skip
OBJECTS: dict[str, Any] = {
    "window": rs.LastEvents(500), "every": rs.EverySeconds("1h"), "cost": rs.SeverityCost(),
    "partial_fpr": (0.0, 0.2), "measures": ("auc", "h"), "evidence_below": 0.8, "block_gap": "1h",
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_a_text_is_the_object(name: str) -> None:
    assert read_choices({name: WORDS[name]}) == read_choices({name: OBJECTS[name]}) == {name: OBJECTS[name]}


def test_settings_of_texts_are_those_of_objects() -> None:
    assert rs.ModelEvaluator(**WORDS).settings == rs.EvaluatorSettings(**OBJECTS)
    of_classes = rs.MulticlassEvaluator(["a", "b"], **WORDS).settings.evaluator
    assert of_classes == rs.MulticlassEvaluator(["a", "b"], **OBJECTS).settings.evaluator
    pair = rs.PairEvaluator(window="last:500", every="1h").settings
    assert pair == rs.PairEvaluator(window=rs.LastEvents(500), every=rs.EverySeconds("1h")).settings


def test_numbers_and_durations_are_emissions() -> None:
    assert read_choices({"every": 7, "curves": 9}) == {
        "every": rs.EveryEvents(7),
        "curves": rs.EveryEvents(9),
    }
    assert read_choices({"every": timedelta(hours=1)})["every"].micros == 3_600_000_000
    assert read_choices({"curves": "end", "measures": ["auc"]}) == {"curves": "end", "measures": ("auc",)}


def test_none_is_the_default_of_windows_emissions_and_costs() -> None:
    choices = {"window": None, "every": None, "cost": None, "measures": None, "score": "p"}
    assert read_choices(choices) == {"measures": None, "score": "p"}
    assert rs.PairEvaluator(window=None, every=None).settings == rs.PairEvaluator().settings


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"window": "last:none"}, "window='last:none': .*'none' is no duration"),
        ({"window": "sliding"}, "window 'sliding' is not known; use last:N"),
        ({"every": "often"}, "every: 'often' is not a whole number"),
        ({"every": 0}, "every=0: give EveryEvents"),
        ({"every": True}, "every=True: give EveryEvents"),
        ({"every": 1.5}, "every=1.5: give EveryEvents"),
        ({"cost": "dear"}, "cost 'dear' is not known"),
        ({"measures": "auc,acu"}, "measure 'acu' is not known"),
    ],
)
def test_what_cannot_be_read_is_named(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(rs.ConfigError, match=words):
        rs.ModelEvaluator(**choices)
    if choices.keys() & {"window", "every"}:
        with pytest.raises(rs.ConfigError, match=words):
            rs.PairEvaluator(**choices)
