"""The powers of two by which the masses of the classes are scaled, and when a tree needs other scales."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math

from ..kernels.compile import inlined
from ..kernels.records import whole
from .layout import SQUARES_ALLOWED, TINY_TOTAL, Forest, root_run


@inlined
def times_power(value: float, exponent: int) -> float:
    """Return value * 2^exponent; infinite or 0 if it is out of range."""
    exponent = min(whole(2000), max(whole(-2000), whole(exponent)))
    half = exponent >> 1
    return value * math.ldexp(1.0, int(half)) * math.ldexp(1.0, int(exponent - half))


@inlined
def common_exponent(tree: Forest) -> int:
    """Return the exponent of the one scale to which both classes are brought."""
    state = tree.state[0]
    if state.events[0] == 0:
        return state.exponent[1]
    if state.events[1] == 0:
        return state.exponent[0]
    return max(state.exponent[0], state.exponent[1])


@inlined
def wants_rebuild(tree: Forest) -> bool:
    """Whether sums should be computed again from the events. Needs fresh masses."""
    state = tree.state[0]
    run = root_run(tree)
    if state.spoiled != 0:
        return True
    for c in range(2):
        mass = run.mass[c]
        if state.events[c] == 0:
            continue
        if mass < TINY_TOTAL:
            return True
        # The squares are at least those of equal weights; their sum itself may be stale.
        if state.lost_squares[c] * state.events[c] > SQUARES_ALLOWED * (mass * mass):
            return True
    return False
