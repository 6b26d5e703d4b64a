"""Makes an order of events by its name in the settings."""

from __future__ import annotations

from .by_arrival import ArrivalOrder
from .by_position import PositionOrder
from .by_time import TimeOrder
from .order import InputOrder


def order_of(order: str) -> InputOrder:
    """Return a new order of events; `order` is its name in `EvaluatorSettings`."""
    if order == "arrival":
        return ArrivalOrder()
    return PositionOrder() if order == "position" else TimeOrder()
