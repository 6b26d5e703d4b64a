"""The figure of an evaluation, and its page."""

from __future__ import annotations

import sys

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
import rocsteady as rs
from rocsteady.pipelines.frames import plot

from tests.support.streams.frame_runs import NAMED, some_frame


@pytest.fixture(scope="module")
def evaluated():
    return rs.evaluate(some_frame(1_500, seed=1), **NAMED, time="t", every=50, slices=["country"])


def lines_of(figure):
    """The lines of models, without the bands."""
    return [trace for trace in figure.data if trace.fill is None]


def test_a_model_is_a_line_over_time_with_the_band_of_its_interval(evaluated):
    figure = evaluated.plot()
    assert isinstance(figure, go.Figure)
    rows = evaluated.rows.filter(slice="")
    assert [line.name for line in lines_of(figure)] == ["a", "b", "\u00fc"]
    for line, band in zip(lines_of(figure), figure.data[::2], strict=True):
        mine = rows.filter(model=line.name)
        assert np.array_equal(line.y, mine["auc"].to_numpy(), equal_nan=True)
        assert line.x.astype("datetime64[us]").tolist() == mine["time"].dt.replace_time_zone(None).to_list()
        assert (band.fill, band.name, band.showlegend) == ("toself", line.name, False)
        assert [*band.y[: mine.height]] == mine["auc_high"].to_list()
        assert [*band.y[mine.height : -1]] == mine["auc_low"].to_list()[::-1]
    assert (figure.layout.xaxis.title.text, figure.layout.title.subtitle.text) == ("time (UTC)", "3 models")


def test_without_times_it_goes_by_events():
    evaluated = rs.evaluate(some_frame(600, seed=2), **NAMED, every=50)
    figure = evaluated.plot("h")
    assert figure.layout.xaxis.title.text == "events applied"
    assert [*lines_of(figure)[0].x] == evaluated.rows.filter(slice="", model="a")["seq"].to_list()
    assert len(figure.data) == 3


def test_the_band_has_a_gap_where_there_is_no_interval():
    labels = [1, 0] * 20 + [1] * 40 + [1, 0] * 20
    frame = pl.DataFrame({"score": [n % 7 / 7 for n in range(len(labels))], "label": labels})
    evaluated = rs.evaluate(frame, window="last:20", every=10)
    band, line = evaluated.plot().data
    is_null = evaluated.rows["auc_low"].is_null().to_list()
    assert 0 < sum(is_null) < len(is_null)
    runs = sum(not gap and before for before, gap in zip([True, *is_null], is_null, strict=False))
    assert sum(y is None or y != y for y in band.y) == runs == 2
    assert np.isnan(line.y).tolist() == evaluated.rows["auc"].is_null().to_list()


@pytest.mark.parametrize(
    ("measure", "worst", "words"),
    [
        ("auc", ["e", "d"], "the 2 of 5 models with the lowest newest AUC; 3 models left out"),
        ("brier", ["e", "d"], "the 2 of 5 models with the highest newest Brier score; 3 models left out"),
    ],
)
def test_of_many_models_the_worst_are_drawn_and_the_others_counted(measure, worst, words):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 5_000)
    quality = np.repeat([0.9, 0.7, 0.5, 0.3, 0.0], 1_000)
    scores = np.where(rng.random(5_000) < quality, labels, rng.random(5_000))
    frame = pl.DataFrame({"model": sorted([*"abcde"] * 1_000), "score": scores, "label": labels})
    figure = rs.evaluate(frame, probabilities=True, every=500).plot(measure, models=2)
    assert [line.name for line in lines_of(figure)] == worst
    assert figure.layout.title.subtitle.text == words


def test_models_are_drawn_by_name(evaluated):
    assert [line.name for line in lines_of(evaluated.plot(models=["b", "a"]))] == ["b", "a"]
    assert [line.name for line in lines_of(evaluated.plot(models="b"))] == ["b"]


def test_a_slice_is_drawn_by_its_name(evaluated):
    figure = evaluated.plot("h", models=["a"], slice="country=NZ")
    rows = evaluated.rows.filter(slice="country=NZ", model="a")
    (line,) = figure.data
    assert np.array_equal(line.y, rows["h"].to_numpy(), equal_nan=True)
    assert figure.layout.title.subtitle.text == "country=NZ; 1 model"


def test_of_many_rows_some_are_drawn(evaluated, monkeypatch):
    monkeypatch.setattr(plot, "ROWS_DRAWN", 20)
    figure = evaluated.plot()
    drawn = sum(len(line.x) for line in lines_of(figure))
    whole = evaluated.rows.filter(slice="").height
    assert drawn < whole
    assert f"{drawn} of {whole} rows are drawn, extremes among them" in figure.layout.title.subtitle.text


def test_without_rows_the_figure_is_empty():
    assert not rs.evaluate(some_frame(30, seed=1).clear(), **NAMED).plot().data


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"measure": "acu"}, "measure='acu' is not known; did you mean 'auc'? There are auc, "),
        ({"measure": "brier"}, "measure='brier' is null in every row: ask for it with measures="),
        ({"models": 0}, "models=0: give how many models to draw, 1 or more, or their names"),
        ({"models": []}, "models=[]: give how many models to draw, 1 or more, or their names"),
        ({"models": None}, "models=None: give how many"),
        ({"slice": "country=nz"}, "slice='country=nz' has no rows; the slices are country=NZ"),
        ({"models": ["c"]}, "models='c' has no rows; the models are a, b, \u00fc"),
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_refused(evaluated, keywords, words):
    with pytest.raises((rs.ConfigError, rs.InputError)) as told:
        evaluated.plot(**keywords)
    assert words in str(told.value)


def test_without_polars_it_says_what_to_install(monkeypatch):
    evaluated = rs.evaluate(some_frame(30, seed=1, sound=True).to_arrow(), **NAMED)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(rs.MissingPackageError, match=r"to_polars\(\) needs the package polars"):
        evaluated.to_polars()


def test_the_page_tells_of_dead_letters_and_settings(evaluated, tmp_path):
    path = tmp_path / "page.html"
    assert evaluated.report(path, title="Clicks <b>") == path.stat().st_size
    text = path.read_text()
    counts = evaluated.counters
    assert f"{counts['events_read']:,}" in text
    assert f"{counts['events_applied']:,}" in text
    assert "score is not finite" in text
    assert "Clicks &lt;b&gt;" in text


def test_the_page_has_curves_where_they_were_asked_for(tmp_path):
    frame = some_frame(600, seed=1)
    sizes = [
        rs.evaluate(frame, **NAMED, **curves).report(tmp_path / "page.html")
        for curves in ({}, {"curves": "end"})
    ]
    assert sizes[0] < sizes[1]
