"""The loss of a hull's edge, in fixed point."""

from __future__ import annotations

from ..kernels.compile import Integer, inlined
from ..kernels.records import whole


def fixed_point_scale(capacity: int) -> float:
    """Return the greatest power of two up to 2^61 / capacity: the sum of all losses stays below 2^59."""
    return float(2 ** (61 - max(1, int(capacity - 1).bit_length())))


LEAST_CAPACITY = 1024
"""The capacity with which a tree without a window size starts; it doubles when the tree is full."""


@inlined
def scale_of_weight(weight: int) -> float:
    """Return the fixed-point scale of a tree that never held more than `weight` events."""
    scale = 2.0**61 / LEAST_CAPACITY
    room = whole(LEAST_CAPACITY)
    while room < weight:
        room *= 2
        scale *= 0.5
    return scale


@inlined
def loss_in_fixed_point(dx: Integer, dy: Integer, curvature: float, scale: float) -> int:
    """Return the loss of a hull edge in fixed point: h(n, p) of Hand's measure, n = dx - dy, p = dy.

    With t = n + p and w = n p / t, h is w / 2 for the cost density Beta(1, 1) (curvature 0), and
    w (1 + w / t) / 2 for Beta(2, 2) (curvature 1).
    """
    inverse = 1.0 / dx
    w = dy * (dx - dy) * inverse
    return whole(0.5 * w * (1.0 + curvature * w * inverse) * scale)
