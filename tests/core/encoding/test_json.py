"""JSON of stored bytes: numbers that are none are refused, whichever way they are written."""

from __future__ import annotations

import pytest
from rocsteady.core.encoding.json import read_json
from rocsteady.core.errors import CorruptBytesError


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 5_000])
def test_a_number_beyond_all_is_refused(number: str) -> None:
    with pytest.raises(CorruptBytesError, match="a progress contradicts itself"):
        read_json(f'{{"offset": {number}}}', "a progress")


def test_finite_numbers_are_read_as_they_are() -> None:
    assert read_json("[1e308, -5e-324, 0.1, 12]", "a list") == [1e308, -5e-324, 0.1, 12]
