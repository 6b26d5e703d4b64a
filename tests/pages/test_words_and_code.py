"""Files, options, names and versions that docstrings, comments, messages and pages cite are there."""

from __future__ import annotations

import pytest

from tests.support.pages.cited import Text, missing, pages, product, texts


@pytest.mark.parametrize("floor", ["core", "transforms", "pipelines", "runners", "__init__.py"])
def test_the_product_cites_what_is_there(floor: str) -> None:
    cited = [text for path in product() if path.partition("/")[0] == floor for text in texts(path)]
    assert cited
    assert {str(text): wrong for text in cited if (wrong := missing(text))} == {}


@pytest.mark.parametrize("path", pages())
def test_a_page_cites_what_is_there(path: str) -> None:
    assert {str(text): wrong for text in texts(path) if (wrong := missing(text))} == {}


ENGINE, SNAPSHOT = "core/evaluator/engine.py", "core/evaluator/snapshot.py"
STATE = "docs/how-to/state.md"


@pytest.mark.parametrize(
    ("path", "words", "wrong"),
    [
        (ENGINE, "the course of the window (steps.py)", "file steps.py"),
        (ENGINE, "the counters of evaluator/steps.py.", "file evaluator/steps.py"),
        (STATE, "as `core/evaluator/steps.py` says", "file core/evaluator/steps.py"),
        (STATE, "the folder `core/evaluators`", "path core/evaluators"),
        (ENGINE, "NaN without --evidence.", "option --evidence"),
        (STATE, "rows of `--out-put rows/`", "option --out-put"),
        (STATE, "pass it to `rs.EvaluateModel`", "name rs.EvaluateModel"),
        (STATE, "see `rs.Rows.to_arrows`", "name rs.Rows.to_arrows"),
        (ENGINE, "raises rocsteady.InputFault", "name rocsteady.InputFault"),
        (ENGINE, "see `core.rows.columns.REASON`", "name core.rows.columns.REASON"),
        (STATE, "`no` in `core/measures/delong.py`", "name no in core/measures/delong.py"),
        (SNAPSHOT, 'a frame with magic "RSSX"', "format RSSX"),
        (SNAPSHOT, "Wire form, version 7, little-endian", "version 7"),
        (STATE, "| snapshot of evaluators (`RSST`) | 1, 2 |", "versions [1, 2] of RSST"),
    ],
)  # fmt: skip
def test_wrong_words_are_found(path: str, words: str, wrong: str) -> None:
    assert wrong in missing(Text(path, 1, words))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            ENGINE,
            "see eviction.py, measures/steps.py, core/rows/columns.py; docs/architecture/math.md",
        ),
        (
            STATE,
            "`core/state/export.py`, `checkpoint.py`; `core/state`; --import-state with --window",
        ),
        (ENGINE, "`core.rows.columns.REASONS`, rocsteady.InputError, rs.Rows and `rs.ModelEvaluator.update`"),
        (STATE, "`delong_variance` and `write_interval` in `core/measures/delong.py`"),
        (SNAPSHOT, 'Wire form, version 1, little-endian: a frame with magic "RSST"'),
        (STATE, "| snapshot of evaluators (`RSST`) | 1 |"),
    ],
)
def test_right_words_are_not_found(path: str, words: str) -> None:
    assert missing(Text(path, 1, words)) == []
