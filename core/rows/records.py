"""Named tuples of measures: the measures of the present window, and one row."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from ..process.console import name_text
from .columns import TEXT_COLUMNS
from .display import figure, figures, folded


class Measures(NamedTuple):
    """The measures of the present window. A field is None if the measure is undefined or was not asked for.

    `reason` says why.

    Masses count events (or sum weights); rates and measures are fractions; thresholds are scores. The fields
    are columns of `MeasureRow`.

    >>> import rocsteady as rs
    >>> ev = rs.ModelEvaluator()
    >>> rows = ev.update([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3])
    >>> now = ev.measures()
    >>> now.window_events, now.auc, now.brier
    (4, 0.75, None)
    """

    window_events: int
    # <measures of a window>
    weight: float | None = None
    positives: float | None = None
    negatives: float | None = None
    prevalence: float | None = None
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    h: float | None = None
    ks: float | None = None
    ks_threshold: float | None = None
    brier: float | None = None
    log_loss: float | None = None
    tpr_at_fpr: float | None = None
    cost_threshold: float | None = None
    aum: float | None = None
    cost_curve_area: float | None = None
    average_precision: float | None = None
    calibration_error: float | None = None
    partial_auc: float | None = None
    partial_auc_mcclish: float | None = None
    polynomial_auc: float | None = None
    polynomial_auc_bound: float | None = None
    evidence: float | None = None
    evidence_since: float | None = None
    block_events: float | None = None
    evidence_bound: float | None = None
    tp: float | None = None
    fp: float | None = None
    tn: float | None = None
    fn: float | None = None
    accuracy: float | None = None
    precision: float | None = None
    recall: float | None = None
    specificity: float | None = None
    f1: float | None = None
    balanced_accuracy: float | None = None
    g_mean: float | None = None
    harmonic_mean: float | None = None
    kappa: float | None = None
    kappa_m: float | None = None
    kappa_per: float | None = None
    mcc: float | None = None
    cmd: float | None = None
    # </measures of a window>
    reason: str | None = None

    def __repr__(self) -> str:
        names = [name for name in self._fields if name not in ("window_events", "reason")]
        said = "   ".join(f"{name} {text}".replace(" ", "\0") for name, text in figures(self, names))
        lines = [f"<Measures of {figure('window_events', self.window_events)} events", *folded(said)]
        if self.reason is not None:
            lines += folded(self.reason)
        return "\n".join(lines) + ">"

    def _repr_html_(self) -> str:
        return record_html(self)


class MeasureRow(NamedTuple):
    """One row: the measures of a (model, slice)'s window at one moment. Times are microseconds UTC.

    (model, slice, pane, row) is the row's identity: a sink that gets a row twice keeps one copy. None stands
    for null.

    model         the name of the model
    slice         "" for all events of the model, else such as "country=NZ,device=phone". A missing value is
                  empty: "country=". In names and values a backslash stands before a backslash, = and comma
    row           the number of the row among those of its model, slice and pane, from 0
    seq           how many events of the model and slice were applied so far
    time          the greatest event time that was applied; None without event times
    due           the point of the grid of times at which the row is due; None for rows that are not on a grid
    pane_start, pane_end
                  the start and the end of the Beam window, if the input is windowed
    window_events how many events the window holds
    window_start, window_end
                  the least and the greatest event time in the window; None without event times
    drift         whether an adaptive window became smaller since the row before; None for other windows
    reason        why measures that were asked for are None, or need care; None if there is no remark
    config        a hash of all settings that change values, 12 hexadecimal digits

    Further fields are the masses in the window (`weight`, `positives`, `negatives`, `prevalence`) and the
    measures.

    >>> import rocsteady as rs
    >>> ev = rs.ModelEvaluator(model="churn", every=rs.EveryEvents(4))
    >>> [row] = ev.update([0, 1, 0, 1], [0.1, 0.9, 0.4, 0.3])
    >>> row.model, row.row, row.seq, row.window_events, row.auc, row.time
    ('churn', 0, 4, 4, 0.75, None)
    """

    model: str
    slice: str
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
    drift: bool | None
    reason: str | None
    config: str

    def __repr__(self) -> str:
        parts = [f"model={self.model!r}", f"slice={self.slice!r}"]
        names = [name for name in self._fields if name not in TEXT_COLUMNS]
        parts += [f"{name}={text}" for name, text in figures(self, names)]
        if self.reason is not None:
            parts.append(f"reason={self.reason!r}")
        return f"MeasureRow({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return record_html(self)


def record_html(record: Measures | MeasureRow) -> str:
    """Return measures, or a row, as an HTML table of names and figures."""
    cells = [
        (name, name_text(getattr(record, name))) for name in ("model", "slice") if getattr(record, name, "")
    ] + figures(record, [name for name in record._fields if name not in TEXT_COLUMNS])
    if record.reason is not None:
        cells.append(("reason", record.reason))
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in cells)
    return f"<table>{body}</table>"
