"""Times of tests, which count microseconds from 1970 on, as an evaluator takes them without a unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def moments(micros: npt.ArrayLike | None) -> npt.NDArray[np.datetime64] | None:
    """Return whole microseconds as datetime64; None where there are none."""
    whole: Any = micros
    return None if whole is None else np.asarray(whole, "M8[us]")


def moment(micros: int) -> np.datetime64:
    """Return a time as datetime64."""
    return np.datetime64(micros, "us")
