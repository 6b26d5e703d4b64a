"""rocsteady: how well classifiers in production rank and decide, at every moment and for every model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.beam_import import mend_beam_import

if TYPE_CHECKING:
    from .core import river_metrics as river  # noqa: F401  handed on below
    from .core.alert_rows import AlertRow
    from .core.alert_rules import AlertRule, parse_alert
    from .core.alerts import AlertTable
    from .core.approximate_h import Approximation, approximate_cost_curve_area, approximate_h
    from .core.auc_sketch import AucBounds, AucSketch, HBounds
    from .core.aum import Aum, aum, aum_of_labels, sum_of_min
    from .core.aum_classifier import AumLinearClassifier  # noqa: F401  handed on below
    from .core.aum_learner import AumLearner
    from .core.aum_line_search import LineSearch, aum_line_search
    from .core.aum_penalty_learner import AumPenaltyLearner  # noqa: F401  handed on below
    from .core.comparisons import ComparisonRow, FoldMean
    from .core.compressed_auc import CompressedAuc
    from .core.error_functions import ErrorFunctions
    from .core.error_roc import ErrorRoc, roc_of_error_functions
    from .core.errors import (
        ConfigError,
        CorruptBytesError,
        ForeignBytesError,
        FutureVersionError,
        InputError,
        MissingPackageError,
        OtherConfigurationError,
        RocsteadyError,
        TimeUnitWarning,
        TruncatedBytesError,
        WireError,
    )
    from .core.evaluator_table import EvaluatorTable
    from .core.events import EventBatch
    from .core.model_evaluator import ModelEvaluator
    from .core.polynomial_auc import PolynomialAuc, PolynomialEstimate
    from .core.polynomial_classifier import PolynomialAucClassifier  # noqa: F401  handed on below
    from .core.polynomial_fit import PolynomialAucModel
    from .core.polynomial_learner import PolynomialAucLearner
    from .core.row_curves import RocCurve, WindowCurve
    from .core.row_records import MeasureRow, Measures
    from .core.rows import Rows
    from .core.score_tree import ScoreTree
    from .core.settings import BetaCost, EvaluatorSettings, SeverityCost, TableSettings, UniformCost
    from .core.shards import Shards
    from .core.significance import (
        McnemarEvidence,
        delong_test,
        friedman_nemenyi,
        holm,
        mcnemar,
        sign_test,
        wilcoxon,
    )
    from .core.text_columns import IdColumn, TextColumn
    from .core.threshold_queries import SortedMasses, estimate_auc
    from .core.weighted_tree import WeightedTree
    from .core.windows import (
        Adaptive,
        AllEvents,
        EveryEvents,
        EverySeconds,
        Fading,
        LastDuration,
        LastEvents,
    )
    from .transforms.alert import Alert
    from .transforms.combine_auc import AucCombineFn, CombinedAuc
    from .transforms.combine_polynomial_auc import CombinedPolynomialAuc, PolynomialAucCombineFn
    from .transforms.evaluate_models import EvaluateModels
    from .transforms.fit_polynomial_auc import FitPolynomialAuc
    from .transforms.join_labels import JoinedLabels, JoinLabels
    from .transforms.prequential import Prequential, Prequentials
    from .transforms.read_rows import read_rows
    from .transforms.write_kafka import WriteKafka

__version__ = "0.1.0"

mend_beam_import()

_HOMES = {
    "core.alert_rows": ("AlertRow",),
    "core.alert_rules": ("AlertRule", "parse_alert"),
    "core.alerts": ("AlertTable",),
    "core.errors": (
        "ConfigError", "CorruptBytesError", "ForeignBytesError", "FutureVersionError", "InputError",
        "MissingPackageError", "OtherConfigurationError", "RocsteadyError",
        "TimeUnitWarning", "TruncatedBytesError", "WireError",
    ),
    "core.evaluator_table": ("EvaluatorTable",),
    "core.events": ("EventBatch", "IdColumn", "TextColumn"),
    "core.model_evaluator": ("ModelEvaluator",),
    "core.roc_curve": ("RocCurve", "WindowCurve"),
    "core.rows": ("MeasureRow", "Measures", "Rows"),
    "core.score_tree": ("ScoreTree",),
    "core.settings": (
        "BetaCost", "EvaluatorSettings", "SeverityCost", "TableSettings", "UniformCost",
    ),
    "core.shards": ("Shards",),
    "core.significance": (
        "McnemarEvidence", "delong_test", "friedman_nemenyi", "holm", "mcnemar", "sign_test", "wilcoxon",
    ),
    "core.approximate_h": ("Approximation", "approximate_cost_curve_area", "approximate_h"),
    "core.auc_sketch": ("AucBounds", "AucSketch", "HBounds"),
    "core.comparisons": ("ComparisonRow", "FoldMean"),
    "core.compressed_auc": ("CompressedAuc",),
    "core.threshold_queries": ("SortedMasses", "estimate_auc"),
    "core.weighted_tree": ("WeightedTree",),
    "core.windows": (
        "Adaptive", "AllEvents", "EveryEvents", "EverySeconds", "Fading", "LastDuration", "LastEvents",
    ),
    "core.aum": ("Aum", "aum", "aum_of_labels", "sum_of_min"),
    "core.aum_line_search": ("LineSearch", "aum_line_search"),
    "core.aum_classifier": ("AumLinearClassifier",),
    "core.aum_learner": ("AumLearner",),
    "core.aum_penalty_learner": ("AumPenaltyLearner",),
    "core.error_functions": ("ErrorFunctions",),
    "core.error_roc": ("ErrorRoc", "roc_of_error_functions"),
    "core.polynomial_auc": ("PolynomialAuc", "PolynomialEstimate"),
    "core.polynomial_classifier": ("PolynomialAucClassifier",),
    "core.polynomial_fit": ("PolynomialAucModel",),
    "core.polynomial_learner": ("PolynomialAucLearner",),
    "transforms.alert": ("Alert",),
    "transforms.combine_auc": ("AucCombineFn", "CombinedAuc"),
    "transforms.combine_polynomial_auc": ("CombinedPolynomialAuc", "PolynomialAucCombineFn"),
    "transforms.fit_polynomial_auc": ("FitPolynomialAuc",),
    "transforms.evaluate_models": ("EvaluateModels",),
    "transforms.join_labels": ("JoinLabels", "JoinedLabels"),
    "transforms.prequential": ("Prequential", "Prequentials"),
    "transforms.read_rows": ("read_rows",),
    "transforms.write_kafka": ("WriteKafka",),
}  # fmt: skip
"""Where the public names live. They are handed on when first used: importing Beam takes a second, numba a
third of one, and `rocsteady --help` needs neither."""

_HOME_OF = {name: f".{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "Adaptive", "Alert", "AlertRow", "AlertRule", "AlertTable", "AllEvents", "Approximation", "AucBounds",
    "AucCombineFn", "AucSketch", "Aum", "AumLearner", "BetaCost", "CombinedAuc", "CombinedPolynomialAuc",
    "ComparisonRow", "CompressedAuc", "ConfigError", "CorruptBytesError", "ErrorFunctions", "ErrorRoc",
    "EvaluateModels", "EvaluatorSettings", "EvaluatorTable", "EventBatch", "EveryEvents", "EverySeconds",
    "Fading", "FitPolynomialAuc", "FoldMean", "ForeignBytesError", "FutureVersionError", "HBounds",
    "IdColumn", "InputError", "JoinLabels", "JoinedLabels", "LastDuration", "LastEvents", "LineSearch",
    "McnemarEvidence", "MeasureRow", "Measures", "MissingPackageError", "ModelEvaluator",
    "OtherConfigurationError", "PolynomialAuc", "PolynomialAucCombineFn", "PolynomialAucLearner",
    "PolynomialAucModel", "PolynomialEstimate", "Prequential", "Prequentials", "RocCurve",
    "RocsteadyError", "Rows", "ScoreTree", "SeverityCost", "Shards", "SortedMasses", "TableSettings",
    "TextColumn", "TimeUnitWarning", "TruncatedBytesError", "UniformCost", "WeightedTree", "WindowCurve",
    "WireError", "WriteKafka", "approximate_cost_curve_area", "approximate_h", "aum", "aum_line_search",
    "aum_of_labels", "delong_test", "estimate_auc", "friedman_nemenyi", "holm", "mcnemar", "parse_alert",
    "read_rows", "roc_of_error_functions", "sign_test", "sum_of_min", "wilcoxon",
]  # fmt: skip

_OPTIONAL = ["AumLinearClassifier", "AumPenaltyLearner", "PolynomialAucClassifier", "river"]
"""Not in __all__: `import *` would fail without scikit-learn, or without river."""


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name], __name__), name)
        globals()[name] = value
        return value
    if name == "river":
        return import_module(".core.river_metrics", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_OPTIONAL])
