"""The cache of compiled kernels: damage costs a compilation, and a folder of others is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rocsteady.core.kernels import compile as kernels

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="numba is off")

PROGRAM = (
    "import numpy as np; from rocsteady.core.kernels import compile;"
    "from rocsteady.core.ids.index import hash_all; key = np.uint64(7); out = np.empty(1, np.uint64);"
    "hash_all(np.zeros(3, np.uint8), np.array([0, 3], np.int64), key, key, out);"
    "print(compile.CACHE_FOLDER, sum(hash_all.stats.cache_hits.values()), out.tolist())"
)


def started(cache: Path) -> tuple[list[str], list[str]]:
    """Use a kernel in a process of its own; return (folder, hits, result) and its warnings."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**environment, "ROCSTEADY_CACHE_DIR": str(cache)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split(maxsplit=2), [line for line in ran.stderr.splitlines() if "Warning" in line]


def emptied(data: bytes) -> bytes:
    return b""


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def zeroed(data: bytes) -> bytes:
    return bytes(len(data))


def one_bit(data: bytes) -> bytes:
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_kernel_is_compiled_anew_once_with_a_warning(tmp_path: Path, ending: str) -> None:
    (_, hits, result), said = started(tmp_path / "cache")
    assert (hits, said) == ("0", [])
    for damage in (emptied, cut, zeroed, one_bit):
        for path in (tmp_path / "cache").rglob(f"*.{ending}"):
            path.write_bytes(damage(path.read_bytes()))
        (_, hits, again), said = started(tmp_path / "cache")
        assert (hits, again) == ("0", result), damage
        assert len(said) == 1
        assert "is damaged" in said[0]
        assert started(tmp_path / "cache") == ([_, "1", result], [])


def test_the_folder_is_made_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.settings, "CACHE_DIR", str(tmp_path / "a" / "b"))
    folder = kernels._cache_folder()
    assert folder is not None
    for place in (folder, folder.parent, folder.parent.parent):
        assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no modes on this system")
@pytest.mark.parametrize("above", [False, True])
def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: bool
) -> None:
    monkeypatch.setattr(kernels.settings, "CACHE_DIR", str(tmp_path / "cache"))
    folder = kernels._cache_folder()
    assert folder is not None
    place = folder.parent if above else folder
    place.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"is not used: .* can be written to by other users \(mode 777\)"):
        assert kernels._cache_folder() is None
    place.chmod(0o1777)  # sticky: others may add, and rename nothing of ours
    if above:
        assert kernels._cache_folder() == folder
    else:
        with pytest.warns(RuntimeWarning, match="can be written to by other users"):
            assert kernels._cache_folder() is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives folders away")
def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.settings, "CACHE_DIR", str(tmp_path / "cache"))
    folder = kernels._cache_folder()
    assert folder is not None
    kept = folder / "core"
    kept.mkdir(mode=0o700)
    for place in (folder, kept):
        os.chown(place, 54_321, -1)
        with pytest.warns(RuntimeWarning, match=rf"{place} belongs to another user \(number 54321\)"):
            assert kernels._cache_folder() is None
        os.chown(place, os.geteuid(), -1)
    assert kernels._cache_folder() == folder
