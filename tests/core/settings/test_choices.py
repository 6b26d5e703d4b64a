"""Keywords of functions: objects, and texts of the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
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
        (
            {"every": "often"},
            "every: 'often' is neither a whole number of events, such as 100, nor a duration",
        ),
        ({"every": 0}, "every=0: give EveryEvents"),
        ({"every": True}, "every=True: give EveryEvents"),
        ({"every": 1.5}, "every=1.5: give EveryEvents"),
        ({"cost": "dear"}, "cost 'dear' is not known"),
        ({"measures": "auc,acu"}, "measure 'acu' is not known"),
        ({"measures": 5}, r"measures=5: give names, such as \['auc', 'h'\]"),
        ({"measures": b"auc"}, "measures=b'auc': give names"),
        ({"measures": iter(())}, r"measures=\(\): name at least one"),
        (
            {"every": timedelta(0)},
            r"every=datetime.timedelta\(0\): a grid of times has a step of 1 microsecond",
        ),
        ({"every": np.timedelta64(3_600, "s")}, r"every=np.timedelta64\(3600,'s'\): give EveryEvents"),
        ({"block_gap": np.timedelta64(3_600, "s"), "evidence_below": 0.8}, "np.timedelta64.* is no duration"),
    ],
)
def test_what_cannot_be_read_is_named(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(rs.ConfigError, match=words):
        rs.ModelEvaluator(**choices)
    if choices.keys() & {"window", "every"}:
        with pytest.raises(rs.ConfigError, match=words):
            rs.PairEvaluator(**choices)


def test_spaces_around_a_text_are_left_out() -> None:
    texts = {"window": " last:500", "every": "1h ", "measures": "auc, h"}
    assert read_choices(texts) == {name: OBJECTS[name] for name in texts}


@pytest.mark.parametrize("names", [["auc", "h"], np.array(["auc", "h"]), (name for name in ("auc", "h"))])
def test_measures_are_any_names(names: Any) -> None:
    assert rs.ModelEvaluator(measures=names).settings.measures == ("auc", "auc_low", "auc_high", "h")


def test_none_leaves_a_setting_of_settings_as_it_is() -> None:
    settings = rs.EvaluatorSettings(window=rs.LastEvents(77), every=rs.EveryEvents(7), cost=rs.SeverityCost())
    none: dict[str, Any] = {"window": None, "every": None, "cost": None}
    assert rs.ModelEvaluator(settings, **none).settings == settings
    assert rs.MulticlassEvaluator(["a", "b"], settings, **none).settings.evaluator == settings
    assert rs.EvaluateModels(settings=settings, **none)._settings.evaluator == settings


@pytest.mark.parametrize(
    "wrong", ["last:500", rs.LastEvents(5), rs.PairSettings(), 0, [], rs.EvaluatorSettings]
)
def test_what_is_no_settings_is_refused(wrong: Any) -> None:
    words = r"^settings=.*: give EvaluatorSettings\(...\), or a setting by its keyword"
    for make in (
        lambda: rs.ModelEvaluator(wrong),
        lambda: rs.MulticlassEvaluator(["a", "b"], wrong),
        lambda: rs.EvaluateModels(settings=wrong),
    ):
        with pytest.raises(rs.ConfigError, match=words):
            make()
    if not isinstance(wrong, rs.PairSettings):
        with pytest.raises(rs.ConfigError, match=r"^settings=.*: give PairSettings"):
            rs.PairEvaluator(wrong)


@pytest.mark.parametrize(
    "beside", [{"window": "last:5"}, {"settings": rs.EvaluatorSettings()}, {"multi_label": True}]
)
def test_settings_of_classes_are_given_alone(beside: dict[str, Any]) -> None:
    settings = rs.ClassSettings(("a", "b"), rs.EvaluatorSettings())
    assert rs.MulticlassEvaluator(settings).settings == settings
    with pytest.raises(rs.ConfigError, match=r"classes=.*: it has all settings"):
        rs.MulticlassEvaluator(settings, **beside)


def test_a_transform_reads_its_texts_when_made_also_where_its_fields_are_not_known() -> None:
    with pytest.raises(rs.ConfigError, match="window 'sliding' is not known"):
        rs.EvaluateModels(class_scores="p_*", window="sliding")


@pytest.mark.parametrize("name", ["features", "categories", "classes", "compare"])
def test_names_of_learners_are_lists(name: str) -> None:
    choices: dict[str, Any] = {"features": ["x"], name: "age"}
    with pytest.raises(
        rs.ConfigError, match=rf"{name}='age': give a list of names, such as {name}=\['age'\]"
    ):
        rs.Prequential({}, id="id", **choices)
