"""Streams of scores and labels that stand in for the papers' own.

Data sets are files of the folder ROCSTEADY_DATA. Scores that do not come with the data are a logistic
regression's, as in both papers of Tatti: trained on a random tenth (missing values are the column's mean,
words become columns of 0 and 1), and applied to the rest, in the order of the file. That takes up to a
minute, so scores are kept in the user's cache folder, under a hash of the data's file and of this one.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rocsteady.core.arrays import FloatArray, Int8Array
from rocsteady.core.errors import ConfigError, InputError, MissingPackageError
from rocsteady.core.process.user_cache import user_cache

if TYPE_CHECKING:
    import pyarrow as pa

VARIABLE = "ROCSTEADY_DATA"
MOST_WORDS = 1000
"""A column of more different words names the rows rather than describes them, and is left out."""


@dataclass(frozen=True)
class Stream:
    """Scores, float64 (n,), and labels, int8 (n,), 0 or 1, in the order of the stream; and what they are."""

    name: str
    about: str
    labels: Int8Array
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def prevalence(self) -> float:
        """The share of positives."""
        return float(self.labels.mean())

    def first(self, n: int) -> Stream:
        """Return the first n events, all where there are fewer."""
        return Stream(self.name, self.about, self.labels[:n], self.scores[:n])

    def shuffled(self, seed: int = 1) -> Stream:
        """Return the events in a random order."""
        order = np.random.default_rng(seed).permutation(len(self))
        return Stream(self.name, self.about, self.labels[order], self.scores[order])


@dataclass(frozen=True)
class Examples:
    """Features, sparse (n, m), and labels, int8 (n,), 0 or 1, in the order of the file; and what they are."""

    name: str
    about: str
    features: Any
    labels: Int8Array


@dataclass(frozen=True)
class _Source:
    """A file, how to read its labels, and what the stream is."""

    file: str
    about: str
    label: Callable[[pa.Table], Any]
    label_column: str
    dropped: tuple[str, ...] = ()
    header: bool = True


def _equals(column: str, *values: Any) -> Callable[[pa.Table], Any]:
    return lambda table: np.isin(np.asarray(table[column].to_pylist()), values)


_SOURCES = {
    "covtype": _Source(
        "covtype.csv.gz",
        "Forest Covertype, class 2 against the others; logistic regression",
        _equals("Cover_Type", 2),
        "Cover_Type",
    ),
    "covtype4": _Source(
        "covtype.csv.gz",
        "Forest Covertype, class 4 against the others; logistic regression",
        _equals("Cover_Type", 4),
        "Cover_Type",
    ),
    "electricity": _Source(
        "electricity.csv.gz",
        "Electricity prices of New South Wales, up against down; logistic regression",
        _equals("class", "UP"),
        "class",
    ),
    "diabetes": _Source(
        "diabetic_data.csv.gz",
        "Diabetes in 130 hospitals, readmitted at all; logistic regression",
        _equals("readmitted", "<30", ">30"),
        "readmitted",
        dropped=("encounter_id", "patient_nbr"),
    ),
    "dota2": _Source(
        "dota2Train.csv.gz",
        "Dota2 games, won or lost; logistic regression",
        _equals("f0", 1),
        "f0",
        header=False,
    ),
    "aps": _Source(
        "aps_failure_6k_sample.csv.gz",
        "APS failure in Scania trucks, a sample of 6,006 of which 2,002 are distinct; logistic regression",
        _equals("class", 1),
        "class",
    ),
}
STREAMS = ("tvnews", *_SOURCES)


def load(name: str) -> Stream:
    """Return one of STREAMS: O(1) once it has been made, else the time of training.

    Raises:
        ConfigError: ROCSTEADY_DATA is not set, or no stream has the name.
        InputError: the folder lacks the file.
    """
    if name not in STREAMS:
        raise ConfigError(f"no stream is called {name!r}; there are {', '.join(STREAMS)}")
    path = data_file("scores_tvnews_lda.csv.gz" if name == "tvnews" else _SOURCES[name].file)
    if name == "tvnews":
        return _tv_news(path)
    kept = _cache_file(name, path)
    if kept.is_file():
        with np.load(kept) as arrays:
            return Stream(name, _SOURCES[name].about, arrays["labels"], arrays["scores"])
    stream = _score(name, path)
    _keep(kept, stream)
    return stream


def data_file(name: str) -> Path:
    """Return the path of a data set. Raises ConfigError, InputError as `load` does."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise ConfigError(f"{VARIABLE} is not set; export it to the folder of the papers' data sets")
    path = Path(folder) / name
    if not path.is_file():
        raise InputError(f"{path} does not exist; {VARIABLE} names the folder of the papers' data sets")
    return path


def _cache_file(name: str, path: Path) -> Path:
    """Return where a stream is kept: another data file, or another way to score it, is another place."""
    key = hashlib.sha256(path.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:16]
    return user_cache() / "papers" / f"{name}-{key}.npz"


def _keep(path: Path, stream: Stream) -> None:
    """Write the stream where it can be written: without, the next run trains again."""
    part = path.with_suffix(f".{os.getpid()}.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(part, labels=stream.labels, scores=stream.scores)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)


def read_csv(path: Path, header: bool = True, lines: int | None = None) -> pa.Table:
    """Read a compressed CSV file, or so many lines of it; empty fields and "?" are missing."""
    from pyarrow import csv

    with gzip.open(path) as file:
        return csv.read_csv(
            io.BytesIO(b"".join(islice(file, lines))),
            csv.ReadOptions(autogenerate_column_names=not header),
            convert_options=csv.ConvertOptions(null_values=["", "?"], strings_can_be_null=True),
        )


def _tv_news(path: Path) -> Stream:
    """Return the scores of the test part; those that the discriminant was trained on flatter it."""
    table = read_csv(path)
    test = np.asarray(table["part"].to_pylist()) == "test"
    labels = (table["label"].to_numpy()[test] == 1).astype(np.int8)
    about = "TV News commercials, the test part; linear discriminant analysis"
    return Stream("tvnews", about, labels, table["score"].to_numpy()[test].astype(np.float64))


def _score(name: str, path: Path) -> Stream:
    """Train on a random tenth; return the scores of the rest."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingPackageError(
            f"the scores of {name} need scikit-learn, which is not installed: pip install '.[bench]'"
        ) from error
    source = _SOURCES[name]
    features, labels = _read(source, path)
    is_training = np.zeros(len(labels), bool)
    is_training[np.random.default_rng(1).permutation(len(labels))[: len(labels) // 10]] = True
    model = LogisticRegression(max_iter=1000).fit(features[is_training], labels[is_training])
    scores = model.decision_function(features[~is_training])
    return Stream(name, source.about, labels[~is_training], scores.astype(np.float64))


def examples(name: str) -> Examples:
    """Return the features and labels that a stream's scores come from. Raises as `load` does."""
    source = _SOURCES[name]
    features, labels = _read(source, data_file(source.file))
    return Examples(name, source.about.partition(";")[0], features, labels)


def _read(source: _Source, path: Path) -> tuple[Any, Int8Array]:
    table = read_csv(path, source.header)
    labels = source.label(table).astype(np.int8)
    return _features(table.drop_columns([source.label_column, *source.dropped])), labels


def _features(table: pa.Table) -> Any:
    """Return a sparse matrix, a row an event: numbers with mean 0 and deviation 1, words as 0 and 1."""
    import pyarrow as pa
    from scipy import sparse

    columns = []
    for column in table.itercolumns():
        if pa.types.is_string(column.type):
            words, codes = np.unique(column.fill_null("?").to_pylist(), return_inverse=True)
            if len(words) <= MOST_WORDS:
                rows = np.arange(len(codes))
                columns.append(sparse.csr_matrix((np.ones(len(codes)), (rows, codes))))
            continue
        numbers = column.cast(pa.float64()).to_numpy()
        if np.isnan(numbers).all():
            continue
        numbers = np.nan_to_num(numbers, nan=np.nanmean(numbers))
        deviation = numbers.std()
        if deviation > 0:
            columns.append(sparse.csr_matrix(((numbers - numbers.mean()) / deviation)[:, np.newaxis]))
    return sparse.hstack(columns, format="csr")
