"""The orders in which events apply: the texts of the setting `order`."""

from __future__ import annotations

from ..errors import ConfigError
from .durations import duration_text, parse_lateness


def checked_order(order: str) -> str:
    """Return the canonical spelling of an order. Raises ConfigError for any other text.

    >>> checked_order("time:60s")
    'time:1m'
    """
    if order in ("position", "time", "arrival"):
        return order
    kind, limited, text = order.partition(":") if isinstance(order, str) else ("", "", "")
    if kind != "time" or not limited:
        raise ConfigError(
            f"order={order!r}: give 'position', 'time' or 'arrival', or 'time:10m' where events may come up "
            "to 10 minutes late"
        )
    try:
        return f"time:{duration_text(parse_lateness(text))}"
    except ConfigError:
        raise ConfigError(
            f"order={order!r}: {text!r} is no length of time; say how late events may come, as in 'time:10m'"
        ) from None
