"""The year of flights as two streams, each in the order in which its records arrive.

A prediction is made at the scheduled departure of its flight, one by every learner, and a label at its
landing. A flight that was cancelled or diverted is predicted, and its label never comes. Every record is then
on its way for up to `LONGEST_WAY`, at random: both streams are out of order, and a label may arrive before
the predictions that it is for.

Invariant
    What is joined by id, and put in order of landing, is the same whatever the ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...core.arrays import FloatArray, Int64Array
from .flights import MINUTE, Flights

LONGEST_WAY = 6 * 60 * MINUTE
"""Microseconds: some 900 predictions and 220 landings of the year."""

_SEED = 2013


class Streams(NamedTuple):
    """Predictions and labels as tables, in the order of their arrival.

    predictions  a row per (flight, model): model, id, time (scheduled departure), score, carrier, origin
    labels       a row per flight that landed: id, time (landing), label (1 = late, 0 = not); they know no
                 models
    """

    predictions: pa.Table
    labels: pa.Table


def streams_of(flights: Flights, scores: Mapping[str, FloatArray]) -> Streams:
    """Return what every model said of every flight, by name, and what then came true. O(n log n)."""
    models, rng = sorted(scores), np.random.default_rng(_SEED)
    row, model = np.divmod(_arrival(np.repeat(flights.departure, len(models)), rng), len(models))
    predictions = {
        "model": pa.array(models).take(pa.array(model)),
        "id": pa.array(flights.id).take(pa.array(row)),
        "time": _timestamps(flights.departure[row]),
        "score": np.stack([scores[name] for name in models], axis=1)[row, model],
        "carrier": pa.array(flights.carrier).take(pa.array(row)),
        "origin": pa.array(flights.origin).take(pa.array(row)),
    }
    landed = flights.landing_order
    landed = landed[_arrival(flights.landing[landed], rng)]
    labels = {
        "id": flights.id[landed],
        "time": _timestamps(flights.landing[landed]),
        "label": flights.label[landed],
    }
    return Streams(pa.table(predictions), pa.table(labels))


def _arrival(times: Int64Array, rng: np.random.Generator) -> Int64Array:
    """Return the order in which records arrive that set out at these times."""
    return np.argsort(times + rng.integers(0, LONGEST_WAY, len(times), endpoint=True), kind="stable")


def _timestamps(microseconds: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(microseconds).cast(pa.timestamp("us", tz="UTC"))
