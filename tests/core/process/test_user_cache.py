"""What can be made again lies where the user keeps caches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rocsteady.core.process.user_cache import user_cache


@pytest.mark.parametrize(
    ("platform", "default"), [("linux", ".cache/rocsteady"), ("darwin", "Library/Caches/rocsteady")]
)
def test_the_convention_of_the_platform_holds_where_no_folder_is_named(monkeypatch, platform, default):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert user_cache() == Path("/somewhere/rocsteady")
    for other in ("relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", other)
        assert user_cache() == Path.home() / default
