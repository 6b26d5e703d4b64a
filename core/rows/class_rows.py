"""The rows of models with more than two classes: a named tuple for each row, and a sequence of many rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, overload

from ..arrays import Int32Array
from ..errors import InputError
from .class_columns import ClassColumns
from .columns import TEXT_COLUMNS
from .display import figures
from .rows import Rows

if TYPE_CHECKING:  # type checkers alone import these: an evaluation needs neither pyarrow nor pandas
    from .arrow import DataFrame, Table


class ClassRow(NamedTuple):
    """One row of a model with classes. Times are microseconds UTC; None stands for null.

    (model, slice, class_, pane, row) is the row's identity: a sink that gets a row twice keeps one copy.

    class_        the class of the row: the row counts the events of this class against all others. None for
                  the row of all classes
    model, slice, row, seq, time, due, pane_start, pane_end, window_events, window_start, window_end, drift,
    reason, config
                  as in `MeasureRow`
    auc_macro, auc_macro_low, auc_macro_high, auc_weighted, auc_weighted_low, auc_weighted_high, auc_m,
    auc_m_low, auc_m_high, worst_class, worst_class_auc, worst_pair, worst_pair_auc, classes, classes_absent,
    pair_aucs     as in `ClassMeans`

    Further fields are the masses in the window (`weight`, `positives`, `negatives`, `prevalence`) and the
    measures. In the row of all classes, the measures of scores and the measures that need a positive class
    are None.

    >>> import rocsteady as rs
    >>> ev = rs.MulticlassEvaluator(["a", "b"], every=rs.EveryEvents(4))
    >>> rows = ev.update(["a", "b", "b", "a"], [[.9, .1], [.2, .8], [.6, .4], [.5, .5]])
    >>> [(row.class_, row.auc, row.auc_m, row.accuracy) for row in rows]
    [(None, None, 0.75, 0.75), ('a', 0.75, None, 0.75), ('b', 0.75, None, 0.75)]
    """

    model: str
    slice: str
    class_: str | None
    row: int
    seq: int
    time: int | None
    due: int | None
    pane_start: int | None
    pane_end: int | None
    window_events: int
    window_start: int | None
    window_end: int | None
    # <measures of a row>
    weight: float | None
    positives: float | None
    negatives: float | None
    prevalence: float | None
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    h: float | None
    ks: float | None
    ks_threshold: float | None
    brier: float | None
    log_loss: float | None
    tpr_at_fpr: float | None
    cost_threshold: float | None
    aum: float | None
    cost_curve_area: float | None
    average_precision: float | None
    calibration_error: float | None
    partial_auc: float | None
    partial_auc_mcclish: float | None
    polynomial_auc: float | None
    polynomial_auc_bound: float | None
    evidence: float | None
    evidence_since: float | None
    block_events: float | None
    evidence_bound: float | None
    tp: float | None
    fp: float | None
    tn: float | None
    fn: float | None
    accuracy: float | None
    precision: float | None
    recall: float | None
    specificity: float | None
    f1: float | None
    balanced_accuracy: float | None
    g_mean: float | None
    harmonic_mean: float | None
    kappa: float | None
    kappa_m: float | None
    kappa_per: float | None
    mcc: float | None
    cmd: float | None
    # </measures of a row>
    auc_macro: float | None
    auc_macro_low: float | None
    auc_macro_high: float | None
    auc_weighted: float | None
    auc_weighted_low: float | None
    auc_weighted_high: float | None
    auc_m: float | None
    auc_m_low: float | None
    auc_m_high: float | None
    worst_class: str | None
    worst_class_auc: float | None
    worst_pair: str | None
    worst_pair_auc: float | None
    classes: tuple[str, ...] | None
    classes_absent: tuple[str, ...] | None
    pair_aucs: tuple[float | None, ...] | None
    drift: bool | None
    reason: str | None
    config: str

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in ("model", "slice", "class_")]
        texts = (*TEXT_COLUMNS, "class_")
        parts += [
            f"{name}={text}"
            for name, text in figures(self, [name for name in self._fields if name not in texts])
        ]
        if self.reason is not None:
            parts.append(f"reason={self.reason!r}")
        return f"ClassRow({', '.join(parts)})"


@dataclass(frozen=True, eq=False, repr=False)
class ClassRows(Sequence[ClassRow]):
    """The rows of a model with classes; a named tuple is made only when a caller takes a row.

    rows  the same rows in columns, with the class of each row
    """

    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Class{repr(self.rows)[1:]}"

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()

    @property
    def columns(self) -> ClassColumns:
        """The classes of the rows, and the means of each row over all classes."""
        return self.rows.classes or ClassColumns((), self.rows.key_codes, [])

    @property
    def codes(self) -> Int32Array:
        """The number of the class of each row; -1 for the row of all classes."""
        return self.columns.codes

    @overload
    def __getitem__(self, index: int) -> ClassRow: ...

    @overload
    def __getitem__(self, index: slice) -> ClassRows: ...

    def __getitem__(self, index: int | slice) -> ClassRow | ClassRows:
        if isinstance(index, slice):
            return ClassRows(self.rows[index])
        columns = self.columns
        model, slice_, *rest, drift, reason, config = self.rows[index]
        means = columns.means[index][:-1]
        return ClassRow._make((model, slice_, columns.name(index), *rest, *means, drift, reason, config))

    def __iter__(self) -> Iterator[ClassRow]:
        return (self[index] for index in range(len(self)))

    def of_model(self) -> ClassRows:
        """Return the rows of all classes, without the rows of single classes."""
        return ClassRows(self.rows.take((self.codes < 0).nonzero()[0]))

    def of_class(self, name: str) -> ClassRows:
        """Return the rows of the class of this `name`.

        Raises InputError if there is no class of this name.
        """
        if name not in self.columns.names:
            raise InputError(f"class {name!r} is none of the classes of these rows")
        code = self.columns.names.index(name)
        return ClassRows(self.rows.take((self.codes == code).nonzero()[0]))

    def to_arrow(self) -> Table:
        """Return a pyarrow.Table: it has the columns that every sink writes, with times in UTC. O(cells)."""
        return self.rows.to_arrow()

    def to_pandas(self) -> DataFrame:
        """Return a pandas.DataFrame: times and nulls have the forms of `Rows.to_pandas`."""
        return self.rows.to_pandas()
