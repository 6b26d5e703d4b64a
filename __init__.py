"""rocsteady: how well classifiers in production rank and decide, at every moment and for every model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.process.imports import mend_beam_import
from .core.version import __version__ as __version__

if TYPE_CHECKING:
    from .core.alerts.grammar import parse_alert
    from .core.alerts.rows import AlertRow
    from .core.alerts.rules import AlertRule
    from .core.alerts.table import AlertTable
    from .core.classes.evaluator import MulticlassEvaluator
    from .core.classes.settings import ClassSettings
    from .core.compare.comparisons import ComparisonRow, FoldMean
    from .core.compare.mcnemar import McnemarEvidence, mcnemar
    from .core.compare.significance import (
        delong_test,
        friedman_nemenyi,
        holm,
        sign_test,
        wilcoxon,
    )
    from .core.errors import (
        ClassesWarning,
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
    from .core.evaluator.evaluator import ModelEvaluator
    from .core.events.batch import EventBatch
    from .core.events.columns import IdColumn, TextColumn
    from .core.evidence.below import EvidenceBelow
    from .core.fleet.settings import RollUpSettings
    from .core.fleet.table import FleetTable
    from .core.learning.aum.aum import Aum, aum, aum_of_labels
    from .core.learning.aum.classifier import AumLinearClassifier  # noqa: F401  handed on below
    from .core.learning.aum.error_functions import ErrorFunctions
    from .core.learning.aum.error_roc import ErrorRoc, roc_of_error_functions, sum_of_min
    from .core.learning.aum.learner import AumLearner
    from .core.learning.aum.line_search import LineSearch, aum_line_search
    from .core.learning.aum.penalty_learner import AumPenaltyLearner  # noqa: F401  handed on below
    from .core.learning.polynomial.classifier import PolynomialAucClassifier  # noqa: F401  handed on below
    from .core.learning.polynomial.fit import PolynomialAucModel
    from .core.learning.polynomial.learner import PolynomialAucLearner
    from .core.measures.polynomial_auc import PolynomialAuc
    from .core.measures.polynomial_estimate import PolynomialEstimate
    from .core.pairs.evaluator import PairEvaluator
    from .core.pairs.settings import PairSettings
    from .core.river import metrics as river  # noqa: F401  handed on below
    from .core.rows.class_columns import ClassMeans
    from .core.rows.class_rows import ClassRow, ClassRows
    from .core.rows.curves import RocCurve, WindowCurve
    from .core.rows.pairs import PairRow
    from .core.rows.records import MeasureRow, Measures
    from .core.rows.roll_ups import RollUpRow
    from .core.rows.rows import Rows
    from .core.score_tree.tree import ScoreTree
    from .core.settings.costs import BetaCost, SeverityCost, UniformCost
    from .core.settings.evaluator import EvaluatorSettings
    from .core.settings.table import Shards, TableSettings
    from .core.settings.windows import (
        Adaptive,
        AllEvents,
        EveryEvents,
        EverySeconds,
        Fading,
        LastDuration,
        LastEvents,
    )
    from .core.sketches.approximate_h import Approximation, approximate_cost_curve_area, approximate_h
    from .core.sketches.auc_sketch import AucBounds, AucSketch, HBounds
    from .core.sketches.compressed_auc import CompressedAuc
    from .core.sketches.threshold_queries import SortedMasses, estimate_auc
    from .core.table.table import EvaluatorTable
    from .core.weighted_tree.tree import WeightedTree
    from .pipelines.frames.evaluate import evaluate
    from .pipelines.frames.evaluated import Evaluated
    from .pipelines.frames.roll_up import roll_up
    from .transforms.combine.auc import (
        AucCombineFn,
        CombinedAuc,
        CombinedPolynomialAuc,
        PolynomialAucCombineFn,
    )
    from .transforms.combine.fit import FitPolynomialAuc
    from .transforms.evaluate.alert import Alert
    from .transforms.evaluate.compare_pairs import ComparePairs, PairComparisons
    from .transforms.evaluate.join_labels import JoinedLabels, JoinLabels
    from .transforms.evaluate.models import EvaluateModels
    from .transforms.evaluate.roll_up import RollUp
    from .transforms.prequential.prequential import Prequential, Prequentials
    from .transforms.sinks.kafka import WriteKafka
    from .transforms.tables.rows import read_rows

mend_beam_import()

_HOMES = {
    "core.alerts.rows": ("AlertRow",),
    "core.alerts.grammar": ("parse_alert",),
    "core.alerts.rules": ("AlertRule",),
    "core.alerts.table": ("AlertTable",),
    "core.classes.evaluator": ("MulticlassEvaluator",),
    "core.classes.settings": ("ClassSettings",),
    "core.compare.comparisons": ("ComparisonRow", "FoldMean"),
    "core.compare.mcnemar": ("McnemarEvidence", "mcnemar"),
    "core.compare.significance": ("delong_test", "friedman_nemenyi", "holm", "sign_test", "wilcoxon"),
    "core.errors": (
        "ClassesWarning", "ConfigError", "CorruptBytesError", "ForeignBytesError", "FutureVersionError",
        "InputError", "MissingPackageError", "OtherConfigurationError", "RocsteadyError", "TimeUnitWarning",
        "TruncatedBytesError", "WireError",
    ),
    "core.evaluator.evaluator": ("ModelEvaluator",),
    "core.events.batch": ("EventBatch",),
    "core.events.columns": ("IdColumn", "TextColumn"),
    "core.evidence.below": ("EvidenceBelow",),
    "core.fleet.settings": ("RollUpSettings",),
    "core.fleet.table": ("FleetTable",),
    "core.learning.aum.aum": ("Aum", "aum", "aum_of_labels"),
    "core.learning.aum.classifier": ("AumLinearClassifier",),
    "core.learning.aum.error_functions": ("ErrorFunctions",),
    "core.learning.aum.error_roc": ("ErrorRoc", "roc_of_error_functions", "sum_of_min"),
    "core.learning.aum.learner": ("AumLearner",),
    "core.learning.aum.line_search": ("LineSearch", "aum_line_search"),
    "core.learning.aum.penalty_learner": ("AumPenaltyLearner",),
    "core.learning.polynomial.classifier": ("PolynomialAucClassifier",),
    "core.learning.polynomial.fit": ("PolynomialAucModel",),
    "core.learning.polynomial.learner": ("PolynomialAucLearner",),
    "core.measures.polynomial_auc": ("PolynomialAuc", "PolynomialEstimate"),
    "core.pairs.evaluator": ("PairEvaluator",),
    "core.rows.pairs": ("PairRow",),
    "core.pairs.settings": ("PairSettings",),
    "core.rows.class_columns": ("ClassMeans",),
    "core.rows.class_rows": ("ClassRow", "ClassRows"),
    "core.rows.curves": ("RocCurve", "WindowCurve"),
    "core.rows.records": ("MeasureRow", "Measures"),
    "core.rows.roll_ups": ("RollUpRow",),
    "core.rows.rows": ("Rows",),
    "core.score_tree.tree": ("ScoreTree",),
    "core.settings.costs": ("BetaCost", "SeverityCost", "UniformCost"),
    "core.settings.evaluator": ("EvaluatorSettings",),
    "core.settings.table": ("Shards", "TableSettings"),
    "core.settings.windows": (
        "Adaptive", "AllEvents", "EveryEvents", "EverySeconds", "Fading", "LastDuration", "LastEvents",
    ),
    "core.sketches.approximate_h": ("Approximation", "approximate_cost_curve_area", "approximate_h"),
    "core.sketches.auc_sketch": ("AucBounds", "AucSketch", "HBounds"),
    "core.sketches.compressed_auc": ("CompressedAuc",),
    "core.sketches.threshold_queries": ("SortedMasses", "estimate_auc"),
    "core.table.table": ("EvaluatorTable",),
    "core.weighted_tree.tree": ("WeightedTree",),
    "pipelines.frames.evaluate": ("evaluate",),
    "pipelines.frames.evaluated": ("Evaluated",),
    "pipelines.frames.roll_up": ("roll_up",),
    "transforms.combine.auc": (
        "AucCombineFn",
        "CombinedAuc",
        "CombinedPolynomialAuc",
        "PolynomialAucCombineFn",
    ),
    "transforms.combine.fit": ("FitPolynomialAuc",),
    "transforms.evaluate.alert": ("Alert",),
    "transforms.evaluate.compare_pairs": ("ComparePairs", "PairComparisons"),
    "transforms.evaluate.join_labels": ("JoinLabels", "JoinedLabels"),
    "transforms.evaluate.models": ("EvaluateModels",),
    "transforms.evaluate.roll_up": ("RollUp",),
    "transforms.prequential.prequential": ("Prequential", "Prequentials"),
    "transforms.sinks.kafka": ("WriteKafka",),
    "transforms.tables.rows": ("read_rows",),
}  # fmt: skip
"""Where the public names live. They are handed on when first used: importing Beam takes a second, numba a
third of one, and `rocsteady --help` needs neither."""

_HOME_OF = {name: f".{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "Adaptive", "Alert", "AlertRow", "AlertRule", "AlertTable", "AllEvents", "Approximation", "AucBounds",
    "AucCombineFn", "AucSketch", "Aum", "AumLearner", "BetaCost", "ClassMeans", "ClassRow", "ClassRows",
    "ClassSettings", "ClassesWarning", "CombinedAuc", "CombinedPolynomialAuc", "ComparePairs",
    "ComparisonRow", "CompressedAuc", "ConfigError", "CorruptBytesError", "ErrorFunctions", "ErrorRoc",
    "EvaluateModels", "Evaluated", "EvaluatorSettings", "EvaluatorTable", "EventBatch", "EveryEvents",
    "EverySeconds", "EvidenceBelow", "Fading", "FitPolynomialAuc", "FleetTable", "FoldMean",
    "ForeignBytesError", "FutureVersionError", "HBounds", "IdColumn", "InputError", "JoinLabels",
    "JoinedLabels", "LastDuration", "LastEvents", "LineSearch", "McnemarEvidence", "MeasureRow",
    "Measures", "MissingPackageError", "ModelEvaluator", "MulticlassEvaluator", "OtherConfigurationError",
    "PairComparisons", "PairEvaluator", "PairRow", "PairSettings", "PolynomialAuc",
    "PolynomialAucCombineFn", "PolynomialAucLearner", "PolynomialAucModel", "PolynomialEstimate",
    "Prequential", "Prequentials", "RocCurve", "RocsteadyError", "RollUp", "RollUpRow", "RollUpSettings",
    "Rows", "ScoreTree", "SeverityCost", "Shards", "SortedMasses", "TableSettings", "TextColumn",
    "TimeUnitWarning", "TruncatedBytesError", "UniformCost", "WeightedTree", "WindowCurve", "WireError",
    "WriteKafka", "approximate_cost_curve_area", "approximate_h", "aum", "aum_line_search",
    "aum_of_labels", "delong_test", "estimate_auc", "evaluate", "friedman_nemenyi", "holm", "mcnemar",
    "parse_alert", "read_rows", "roc_of_error_functions", "roll_up", "sign_test", "sum_of_min",
    "wilcoxon",
]  # fmt: skip

_OPTIONAL = ["AumLinearClassifier", "AumPenaltyLearner", "PolynomialAucClassifier", "river"]
"""Not in __all__: `import *` would fail without scikit-learn, or without river."""


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name], __name__), name)
        globals()[name] = value
        return value
    if name == "river":
        return import_module(".core.river.metrics", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_OPTIONAL])
