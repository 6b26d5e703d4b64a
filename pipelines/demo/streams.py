"""The year of flights as two streams, each in the order in which its records arrive.

Every learner makes a prediction at a flight's scheduled departure. The flight's label is made at its landing.
A cancelled or diverted flight is predicted, and its label never comes. Every record arrives after a random
delay of up to `LONGEST_WAY`: both streams are out of order, and a label may arrive before its predictions.

Invariant
    The events that result from the join by id, in order of landing, are the same for any delays.
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
"""The longest delay of a record, in microseconds; some 900 predictions and 220 landings of the year fall into
this time.
"""

_SEED = 2013


class Streams(NamedTuple):
    """Predictions and labels as tables, in the order of their arrival.

    predictions  one row for each (flight, model): model, id, time (scheduled departure), score, carrier,
                 origin
    labels       one row for each flight that landed: id, time (landing), label (1 = late, 0 = not); no model
    """

    predictions: pa.Table
    labels: pa.Table


def streams_of(flights: Flights, scores: Mapping[str, FloatArray]) -> Streams:
    """Return the predictions of every model and the labels of the flights as streams. O(n log n).

    scores  each model's score of every flight, by the model's name
    """
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
    """Return the order in which records arrive that are made at these times."""
    return np.argsort(times + rng.integers(0, LONGEST_WAY, len(times), endpoint=True), kind="stable")


def _timestamps(microseconds: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(microseconds).cast(pa.timestamp("us", tz="UTC"))
