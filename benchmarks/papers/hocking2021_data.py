"""What hocking2021 learns from: changepoint problems of DNA copy numbers, and classes made unbalanced."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rocsteady.core.arrays import FloatArray, Int8Array
from rocsteady.core.errors import InputError
from rocsteady.core.learning.aum.error_functions import ErrorFunctions

from .data import data_file, examples, read_csv


class Problems(NamedTuple):
    """Changepoint problems: features, float64 (n, d), their error functions, and where each comes from."""

    features: FloatArray
    errors: ErrorFunctions
    profiles: np.ndarray
    chromosomes: np.ndarray


def neuroblastoma() -> Problems:
    """Return the problems of the neuroblastoma data: one for each profile and chromosome with labels."""
    table = read_csv(data_file("aum_neuroblastoma_errors.csv.gz"))
    profile, chromosome = (np.asarray(table[name]).astype(str) for name in ("profile.id", "chromosome"))
    example = np.char.add(np.char.add(profile, "."), chromosome)
    numbers = (np.asarray(table[name], np.float64) for name in ("min.log.lambda", "fp", "fn"))
    given = read_csv(data_file("aum_neuroblastoma_features.csv.gz"))
    names = _names(np.asarray(given["id"]).astype(str), set(example.tolist()))
    columns = (np.asarray(given[name], np.float64) for name in given.column_names if name != "id")
    features = np.column_stack([column for column in columns if np.isfinite(column).all()])
    origin = np.array([name.split(".") for name in names])
    errors = ErrorFunctions.of_penalties(example.tolist(), *numbers, names=names)
    return Problems(features, errors, *origin.T)


def _names(read: np.ndarray, known: set[str]) -> list[str]:
    """Return ids, profile.chromosome, as text. A reader takes them as numbers: 4.1 and 4.10 would be one."""
    names: list[str] = read.tolist()
    if len(set(names)) < len(names) or not set(names) <= known:
        raise InputError("aum_neuroblastoma_features.csv.gz: its ids are not those of the errors")
    return names


class Classes(NamedTuple):
    """Features, dense, and labels of two classes; how many to train on and to test with."""

    name: str
    features: FloatArray
    labels: Int8Array
    train: int
    test: int


def classes(quick: bool) -> list[Classes]:
    """Return the data of the unbalanced classification, in place of the paper's zip codes."""
    from sklearn.datasets import load_digits

    features, digits = load_digits(return_X_y=True)
    is_01 = digits < 2
    found = [
        Classes("digits 0, 1", features[is_01], digits[is_01].astype(np.int8), 160, 160),
        Classes("digits even, odd", features, (digits % 2).astype(np.int8), 1000, 528),
    ]
    if not quick:
        for name in ("covtype", "electricity"):
            given = examples(name)
            rows = np.sort(np.random.default_rng(0).permutation(len(given.labels))[:20_000])
            found.append(Classes(name, given.features[rows].toarray(), given.labels[rows], 1000, 528))
    return found


def unbalanced(given: Classes, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows to descend on, rows to stop by, each with that share of positives, and a balanced test."""
    rng = np.random.default_rng(seed)
    positives, negatives = (rng.permutation(np.flatnonzero(given.labels == y)) for y in (1, 0))
    half = given.test // 2
    test = np.concatenate([positives[:half], negatives[:half]])
    few = max(round(given.train * share), 2)
    chosen = positives[half : half + few], negatives[half : half + given.train - few]
    return *(np.concatenate([part[i::2] for part in chosen]) for i in (0, 1)), test  # type: ignore[return-value]
