"""What every refusal of a setting is held to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import rocsteady as rs


def assert_refused(make: Callable[[], object], words: Sequence[str]) -> None:
    """Assert that making something raises one sentence with these words: its field, the value, the remedy."""
    with pytest.raises(rs.ConfigError) as caught:
        make()
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)
