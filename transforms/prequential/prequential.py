"""Prequential: trains and tests learners over folds of a PCollection of instances, and compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from ...core.compare.comparisons import ComparisonRow, FoldMean
from ...core.errors import ConfigError
from ...core.prequential.fold import FoldOutput
from ...core.prequential.fold_settings import PrequentialSettings
from ...core.prequential.folds import Folds, Method
from ...core.prequential.instances import Task
from ...core.prequential.learners import LearnerSpec
from ...core.rows.class_rows import ClassRow
from ...core.rows.records import MeasureRow
from ...core.rows.rows import Rows
from ...core.settings.choices import read_choices
from ...core.settings.classes import class_name, class_text
from ...core.settings.evaluator import EvaluatorSettings
from ...core.settings.windows import Emission, EveryEvents, LastEvents, Window
from ...core.shard.protocol import DEFAULT_CACHE_BYTES
from ..beam import progress
from ..evaluate.models import order_of_events, row_batches, single_rows
from ..events.dead_letters import DeadLetter
from ..events.fields import EventFields
from ..sources.pack_records import DEAD_LETTERS, PackRecords, single_letters
from .folds import CompareFolds, EvaluateFolds, FoldComparisons

Factory = str | Callable[..., Any]
"""A learner: a name that `rocsteady prequential --learner` knows, "module:factory", or the factory itself."""


@dataclass(frozen=True)
class Prequentials:
    """The outputs of `Prequential`.

    rows          MeasureRows: the model is the learner, the slice is the fold ("fold=3"). With class_scores=
                  ClassRows.
    batches       the same rows as Arrow record batches.
    comparisons   ComparisonRows, for every pair of learners and for all learners, at every checkpoint.
    means         FoldMeans: for every learner and measure, the mean over folds.
    dead_letters  invalid instances, and instances at which a learner failed; the model of such a letter is
                  the learner.
    late          late instances.
    """

    rows: beam.PCollection[Any]
    batches: beam.PCollection[pa.RecordBatch]
    comparisons: beam.PCollection[ComparisonRow]
    means: beam.PCollection[FoldMean]
    dead_letters: beam.PCollection[DeadLetter]
    late: beam.PCollection[DeadLetter]


class Prequential(beam.PTransform[beam.PCollection[Any], Prequentials]):
    """Trains and tests k copies of every learner on a stream, measures them in a window, and compares them.

    Instances are dicts, NamedTuples or beam.Rows with features, a label and an id. For order="time", they
    also have a time. Every (learner, fold) is a key, and keys run in parallel.

    learners      a dict from the name of each learner to the learner, or a list of names. A learner is a name
                  that `rocsteady prequential --help` lists, "module:factory", or the factory itself. A
                  factory is a function or class that makes a classifier in the style of river or
                  scikit-learn (partial_fit). Workers import the factory.
    features      the fields that are numbers, from which learners learn.
    categories    the fields that are text, from which learners learn.
    label         the field of labels.
    positive      the label that is positive.
    multiclass    whether labels are classes, none of which is positive.
    classes       all classes, if they are known; scikit-learn's learners need them.
    class_scores  the names of all classes, instead of `multiclass` and `classes`: learners give a score of
                  each class, and rows are `ClassRow`s. A label that is none of these classes makes a dead
                  letter.
    id            the field of ids; the ids decide the folds of instances.
    method, folds, prequential, seed  see `Folds`.
    noise, batch  see `LearnerSpec`.
    window, every, measures, threshold  see `EvaluateModels`; `every` counts instances of the stream.
    compare, alpha  the measures by which learners are compared, and the level of the tests.
    time, time_unit, time_format  see `EvaluateModels`.
    order, clock  see `EvaluateModels`. With "arrival", a runner may deliver instances to each fold in another
                  order. With order="time" and clock="runner", all folds have one order.
    cache_bytes   bytes of live machines that a process keeps between bundles.

    Raises ConfigError, which names the field, the value and the remedy. Source: Bifet et al. 2015, section 3.

    >>> import apache_beam as beam
    >>> import rocsteady as rs
    >>> made = [{"id": i, "x": i % 7, "label": int(i % 7 > 3)} for i in range(300)]
    >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
    ...     run = pipeline | beam.Create(made) | rs.Prequential(
    ...         ["majority", "persistent"], features=["x"], id="id", folds=2, every=rs.EveryEvents(100))
    ...     of_accuracy = run.means | beam.Filter(lambda mean: mean.measure == "accuracy")
    ...     _ = of_accuracy | beam.combiners.Count.Globally() | beam.Map(print)
    6
    """

    def __init__(
        self,
        learners: Mapping[str, Factory] | Iterable[str],
        *,
        features: Iterable[str] = (),
        categories: Iterable[str] = (),
        label: str = "label",
        positive: object = None,
        multiclass: bool = False,
        classes: Iterable[str] = (),
        class_scores: Iterable[object] | None = None,
        id: str | None = None,  # noqa: A002 - the word of the command line
        method: Method = "bootstrap",
        folds: int = 10,
        prequential: bool = True,
        seed: int = 1,
        noise: float = 0.0,
        batch: int = 1,
        window: Window | str | None = None,
        every: Emission | int | str | timedelta | None = None,
        measures: tuple[str, ...] | list[str] | str | None = None,
        threshold: float = 0.5,
        compare: Iterable[str] = (),
        alpha: float = 0.05,
        time: str | None = None,
        time_unit: Literal["s", "ms", "us", "ns"] = "s",
        time_format: str | None = None,
        order: str = "arrival",
        clock: Literal["runner"] | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> None:
        super().__init__()
        if id is None:
            raise ConfigError("id=None: instances are dealt to folds by their ids; name their field with id=")
        for name, given in (
            ("features", features), ("categories", categories), ("classes", classes), ("compare", compare),
        ):  # fmt: skip
            if isinstance(given, str):  # a text would be taken letter by letter
                raise ConfigError(f"{name}={given!r}: give a list of names, such as {name}=[{given!r}]")
        task = task_of(multiclass, positive, classes, class_scores, threshold)
        self._fields = EventFields(
            label=label,
            positive=positive,  # type: ignore[arg-type]  # any value that a label can have
            model_name="instances",
            time=time,
            time_unit=time_unit,
            time_format=time_format,
            id=id,
            features=tuple(features),
            slices=tuple((name,) for name in categories),
            classes=not task.is_binary,
            class_names=task.classes if task.scores else (),
        )
        if not self._fields.features and not self._fields.slices:
            raise ConfigError("features=(): name the fields to learn from with features= or categories=")
        chosen = read_choices({"window": window, "every": every, "measures": measures})
        evaluator = EvaluatorSettings(
            **{"window": LastEvents(1_000), "every": EveryEvents(1_000), **chosen},
            threshold=threshold,
            order=order_of_events(order, clock, time),
        )
        if time is None and (needs := evaluator.needs_times) is not None:
            raise ConfigError(f"{needs} goes by event time; name the field of times with time=")
        self._settings = PrequentialSettings(
            tuple(_specs(learners, noise, batch)),
            Folds(method, folds, seed, prequential),
            evaluator,
            task,
            tuple(compare),
            alpha,
        )
        self._settings.try_learners(self._fields.features, self._fields.slice_columns)
        self._cache_bytes = cache_bytes

    def expand(self, instances: beam.PCollection[Any]) -> Prequentials:
        """Pack the instances, train and test the learners, and compare them."""
        if not isinstance(instances, beam.PCollection):
            raise ConfigError(
                f"{self.label}: it is applied to a {type(instances).__name__}; apply it to one PCollection "
                "of dicts, NamedTuples or beam.Rows"
            )
        if not isinstance(instances.windowing.windowfn, GlobalWindows):
            raise ConfigError(
                f"{self.label}: its input is in windows of Beam, {instances.windowing.windowfn}, and "
                "learners go through a stream as a whole; leave these out, and name one for rows with window="
            )
        evaluator = self._settings.evaluator
        packed = instances | "Pack" >> beam.ParDo(
            PackRecords(self._fields, 1, self.label, "instance", needs_ids=True, waited_for=evaluator.by_time)
        ).with_outputs(DEAD_LETTERS, main="packets")
        lateness = (evaluator.lateness or 0) if evaluator.by_time else None
        rows, compared, letters = measured_folds(
            packed.packets, self._settings, self._fields, self._cache_bytes, lateness
        )
        row = MeasureRow if self._settings.classes is None else ClassRow
        failed = letters | "Failed" >> beam.FlatMap(single_letters, "invalid").with_output_types(DeadLetter)
        return Prequentials(
            rows=rows | "Rows" >> beam.FlatMap(single_rows).with_output_types(row),
            batches=rows | "Batches" >> beam.FlatMap(row_batches).with_output_types(pa.RecordBatch),
            comparisons=compared.comparisons,
            means=compared.means,
            dead_letters=(packed[DEAD_LETTERS], failed) | "Dead letters" >> beam.Flatten(),
            late=letters | "Late" >> beam.FlatMap(single_letters, "late").with_output_types(DeadLetter),
        )


def task_of(
    multiclass: bool,
    positive: object,
    classes: Iterable[str],
    class_scores: Iterable[object] | None,
    threshold: float,
) -> Task:
    """Return what learners predict. Raises ConfigError for settings that do not go together."""
    if class_scores is None:
        return Task(not multiclass, threshold, tuple(map(class_text, classes)))
    for name, value in (("multiclass", multiclass), ("positive", positive), ("classes", tuple(classes))):
        if value not in (None, False, ()):
            raise ConfigError(
                f"{name}={value!r} with class_scores=: labels are the classes that class_scores= names, and "
                "none is the positive one; leave it out"
            )
    if isinstance(class_scores, str) or not isinstance(class_scores, Iterable):
        raise ConfigError(f"class_scores={class_scores!r}: give the names of all classes, as a list")
    return Task(False, threshold, tuple(class_name(name) for name in class_scores), scores=True)


def _specs(
    learners: Mapping[str, Factory] | Iterable[str], noise: float, batch: int
) -> Iterable[LearnerSpec]:
    if isinstance(learners, str):
        raise ConfigError(f"learners={learners!r}: give a list of names, or a dict of factories by name")
    if isinstance(learners, Mapping):
        return [LearnerSpec(str(name), _named(factory), noise, batch) for name, factory in learners.items()]
    return [LearnerSpec.parse(text, noise, batch) for text in learners]


def _named(factory: Factory) -> str:
    """Return the name by which a worker imports a factory.

    Raises ConfigError if a worker cannot import it.
    """
    if isinstance(factory, str):
        return factory
    module, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", "")
    if module in (None, "__main__") or not name or "<" in name:
        raise ConfigError(
            f"the learner {factory!r} cannot be imported on a worker; put a function or class that makes it "
            "into a module, and give that, or module:factory"
        )
    return f"{module}:{name}"


def measured_folds(
    packets: beam.PCollection[tuple[str, bytes]],
    settings: PrequentialSettings,
    fields: EventFields,
    cache_bytes: int,
    lateness: int | None = None,
) -> tuple[beam.PCollection[Rows], FoldComparisons, beam.PCollection[Any]]:
    """Apply `EvaluateFolds` and `CompareFolds` to packets; return rows, comparisons and dead letters."""
    folds = packets | "Folds" >> EvaluateFolds(settings, fields, cache_bytes, lateness)
    rows = folds.outputs | "Rows of folds" >> beam.Map(_rows_alone).with_output_types(Rows)
    reports = folds.outputs | "Reports" >> beam.FlatMap(_reports_alone).with_output_types(bytes)
    compared = reports | "Compare" >> CompareFolds(settings.comparison, cache_bytes)
    return rows, compared, folds.letters


def _rows_alone(output: FoldOutput) -> Rows:
    return output.rows


def _reports_alone(output: FoldOutput) -> tuple[bytes, ...]:
    progress.add(reports=len(output.reports))
    return output.reports
