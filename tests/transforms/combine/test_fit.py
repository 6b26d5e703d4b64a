"""A fit in a pipeline is the fit of all rows at hand, whatever bundles they come in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.transforms.window import FixedWindows
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.learning.polynomial.classifier import PolynomialAucClassifier
from rocsteady.core.learning.polynomial.fit import FitSettings, PolynomialAucModel, begin
from rocsteady.transforms.combine.fit import FitPolynomialAuc, _merged, _ScanDoFn
from scipy import sparse
from sklearn.metrics import roc_auc_score

from tests.support.processes.beam_runs import PROCESSES, Keep, kept, pipeline

RNG = np.random.default_rng(2)
LABELS = RNG.integers(0, 2, 600)
ROWS = RNG.normal(size=(600, 4)) @ [[1, 9, 0, 0], [0, 5, 0, 2], [0, 0, 0.1, 1], [0, 0, 0, 1]]
ROWS += np.outer(LABELS, [0.5, 0, 0.1, 0])
WEIGHTS = RNG.uniform(0.5, 2, 600)


def batches(parts: int) -> list[Any]:
    return [(ROWS[i], LABELS[i], WEIGHTS[i]) for i in np.array_split(np.arange(600), parts)]


def fitted(folder: Path, elements: Iterable[Any], runner: str = "in process", **settings: Any) -> Any:
    with pipeline(runner) as p:
        model = p | beam.Create(elements) | beam.Reshuffle() | FitPolynomialAuc(**settings)
        model | Keep(folder, "models")
    (only,) = kept(folder, "models")
    assert isinstance(only.value, PolynomialAucModel)
    return only.value


def same(model: PolynomialAucModel, local: PolynomialAucClassifier) -> None:
    scale = np.abs(local.coef_).max()
    np.testing.assert_allclose(model.coef / scale, local.coef_[0] / scale, atol=1e-9)
    assert model.intercept == pytest.approx(local.intercept_[0], rel=1e-9)
    assert model.history == pytest.approx(np.array(local.history_), abs=1e-9)
    assert (model.stop_reason, model.scans) == (local.stop_reason_, local.n_scans_)
    np.testing.assert_allclose(
        PolynomialAucClassifier.of(model).predict_proba(ROWS), local.predict_proba(ROWS), atol=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["in process", PROCESSES, "retrying"])
def test_it_is_the_fit_of_all_rows_at_hand(tmp_path: Path, runner: str) -> None:
    model = fitted(tmp_path, batches(20), runner, max_iter=4)
    same(model, PolynomialAucClassifier(max_iter=4).fit(ROWS, LABELS, WEIGHTS))
    assert roc_auc_score(LABELS, model.scores(ROWS)) > 0.8


def test_single_rows_and_sparse_batches_are_rows(tmp_path: Path) -> None:
    single = [(ROWS[i], LABELS[i]) for i in range(300)]
    few = [(sparse.csr_matrix(ROWS[i]), LABELS[i]) for i in np.split(np.arange(300, 600), 3)]
    model = fitted(tmp_path, single + few, max_iter=2, objective="sigmoid", degree=12)
    same(model, PolynomialAucClassifier(12, max_iter=2, objective="sigmoid").fit(ROWS, LABELS))


@pytest.mark.slow
def test_scans_behind_the_end_of_the_fit_change_nothing(tmp_path: Path) -> None:
    model = fitted(tmp_path, batches(3), tol=0.1, max_iter=5)
    assert model.iterations == 2
    assert model.scans == 6
    same(model, PolynomialAucClassifier(tol=0.1).fit(ROWS, LABELS, WEIGHTS))


def test_it_goes_on_from_a_model(tmp_path: Path) -> None:
    local = PolynomialAucClassifier(max_iter=1, warm_start=True).fit(ROWS, LABELS, WEIGHTS)
    model = fitted(tmp_path, batches(4), start=local.coef_[0].copy(), max_iter=1)
    same(model, local.fit(ROWS, LABELS, WEIGHTS))


def test_bundles_merge_in_any_order_and_stay_what_they_are() -> None:
    state = begin(FitSettings())
    scan = _ScanDoFn()
    for _ in range(3):
        bundles = []
        for batch in batches(5):
            scan.start_bundle()
            scan.process(batch, state)
            bundles += [each.value for each in scan.finish_bundle()]
        parts = [_merged([bundle]) for bundle in bundles[:2]]
        parts.append(_merged([_merged(bundles[2:3]), bundles[3]]))
        total = _merged([parts[2], None, parts[0], _merged([parts[1], bundles[4]])])
        assert total is not None
        assert [bundle.rows for bundle in bundles] == [120] * 5
        assert total.rows == 600
        state = state.after(total)
    assert len(state.history) == 1


@pytest.mark.parametrize(
    ("elements", "sentence"),
    [
        ([], "there are no rows: AUC needs at least one of each class"),
        ([(ROWS[:5], np.ones(5))], r"labels of one class \(1.0\): AUC is of pairs"),
        ([(ROWS[0], 0), ([0.1, np.nan, 0, 0], 1)], "feature 1 has the value nan: a feature is a finite"),
        ([(np.ones((5, 2)), LABELS[:5])], "every feature is constant, all 2 of them"),
        ([(ROWS[0], 0), (ROWS[0, :3], 1)], "rows of 3 features, and of 4: give all of them the same"),
        ([(ROWS[:2], [0, 1]), (ROWS[:2, :3], [0, 1])], "rows of . features, and of .: give all of them"),
        ([([[1.0, 2.0], [1.0]], [0, 1])], "features are lists of unlike lengths: give all as many"),
        ([ROWS[0]], r"FitPolynomialAuc: array\(.*\) is no \(features, label\)"),
        ([(ROWS[:2], [0, 1], [1, -1])], r"weights\[1\] is -1.0: a weight is a finite number, 0 or above"),
    ],
)
def test_what_cannot_be_fitted_is_said(tmp_path: Path, elements: list[Any], sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        fitted(tmp_path, elements, max_iter=1)


def test_windows_of_beam_are_refused() -> None:
    rows = beam.Pipeline() | beam.Create(batches(2)) | beam.WindowInto(FixedWindows(10))
    with pytest.raises(ConfigError, match=r"its input is in windows of Beam, .*; put beam.WindowInto"):
        rows | FitPolynomialAuc()


def test_input_without_an_end_is_refused() -> None:
    rows = beam.Pipeline() | beam.Create(batches(2))
    rows.is_bounded = False
    with pytest.raises(ConfigError, match=r"its input never ends, .* or learn online"):
        rows | FitPolynomialAuc()


def test_settings_are_checked_when_it_is_made() -> None:
    with pytest.raises(ConfigError, match="max_iter=-1: give a whole number"):
        FitPolynomialAuc(max_iter=-1)
    for start in ([1.0, np.nan], [[1.0, 2.0]]):
        with pytest.raises(ConfigError, match=r"start=.*: give the coefficients of a model, \(m,\), finite"):
            FitPolynomialAuc(start=start)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="start are not numbers"):
        FitPolynomialAuc(start="abc")  # type: ignore[arg-type]
