"""How users name the reference, with which the latest windows are compared."""

from __future__ import annotations

from ..alerts.grammar import parse_reference
from ..alerts.rules import Span
from ..errors import ConfigError
from ..settings.periods import Period

EARLIER = "earlier"
"""The reference that is used if the user names none: all earlier windows."""


def reference_of(text: str | None) -> Span | Period | None:
    """Read the text that names a reference; None for all earlier windows.

    A period START..END names the windows that lie within the period. A span, such as 30d or 100 rows, names
    the windows of that time, or of so many rows, before the latest window begins. Raises ConfigError.

    >>> str(reference_of("2026-01-01..2026-02-01")), str(reference_of("30d")), reference_of("earlier")
    ('2026-01-01..2026-02-01', '30d', None)
    """
    if text is None or text.strip() == EARLIER:
        return None
    try:
        return parse_reference(text)
    except ConfigError:
        raise ConfigError(
            f"reference {text!r} is none of: {EARLIER}; a span, such as 30d or '100 rows'; a period, such as "
            "2026-01-01..2026-02-01, its earlier time first"
        ) from None
