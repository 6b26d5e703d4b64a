"""The landings of the year in their order, scored by a learner and by its frozen copy.

The command `--live` plays them.

The copy learns from all landings before `FREEZES`, and from no later landing. So the copy gives every flight
before `FREEZES` the score of the learner.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from ...core.arrays import FloatArray
from ...transforms.sinks.table import replaced
from .flights import Flights, known_at_departure, read_flights, rows_of
from .learners import Progress, Training, prequential
from .models import LEARNERS

LEARNER = "logistic"
FROZEN = "logistic, frozen on 1 February"

FREEZES = int(np.datetime64("2013-02-01", "us").astype(np.int64))
"""The time from which the copy is frozen, in microseconds UTC."""

_MADE_FROM = b"made from"


def keep_landings(path: Path, training: Training, progress: Progress, *, first: int | None = None) -> None:
    """Write the landings to a Parquet file, unless the file already has them. Takes some 10 s of a processor.

    Columns: model, id, time (landing), score, label. Rows are in order of time, then id. `first` limits the
    year to the first departures, as in `train`.
    """
    made_from = f"{training.predictions.stem} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]}"
    if path.exists() and (parquet.read_schema(path).metadata or {}).get(_MADE_FROM) == made_from.encode():
        return
    progress(0.0, f"training {FROZEN!r}, once")
    flights = read_flights() if first is None else read_flights().first(first)
    known = rows_of(known_at_departure(flights))
    frozen = prequential(
        LEARNERS[LEARNER](),
        flights,
        known,
        lambda flight: progress(flight / len(flights), f"training {FROZEN!r}, once"),
        FREEZES,
    )
    table = _landings(flights, {LEARNER: _scores_of(LEARNER, flights, training), FROZEN: frozen})
    with replaced(str(path)) as file:
        parquet.write_table(table.replace_schema_metadata({_MADE_FROM: made_from}), file, compression="zstd")


def _scores_of(model: str, flights: Flights, training: Training) -> FloatArray:
    """Return the scores that a trained learner gave to the flights."""
    table = parquet.read_table(
        training.predictions, columns=["id", "score"], filters=[("model", "==", model)]
    )
    places = pc.index_in(pa.array(flights.id), table["id"].combine_chunks())
    return np.asarray(table["score"].take(places).to_numpy(), np.float64)


def _landings(flights: Flights, scores: dict[str, FloatArray]) -> pa.Table:
    """Return every model's event of every landing, in order of landing, then id."""
    landed = flights.landing_order
    of, models = np.repeat(landed, len(scores)), pa.array([*scores])
    columns = {
        "model": models.take(pa.array(np.tile(np.arange(len(scores)), len(landed)))),
        "id": pa.array(flights.id).take(pa.array(of)),
        "time": pa.array(flights.landing[of]).cast(pa.timestamp("us", tz="UTC")),
        "score": np.stack([each[landed] for each in scores.values()], axis=1).reshape(-1),
        "label": flights.label[of],
    }
    return pa.table(columns)
