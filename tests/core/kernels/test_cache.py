"""The cache of compiled kernels: damage costs a compilation, and a folder of others is not used."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rocsteady.core.kernels import cache_folder as kernels
from rocsteady.core.kernels.cache import remove_unfinished

from tests.support.invariants.kernel_modes import with_cache

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="numba is off")

PROGRAM = (
    "import numpy as np; from rocsteady.core.kernels.cache_folder import CACHE_FOLDER;"
    "from rocsteady.core.ids.index import hash_all; key = np.uint64(7); out = np.empty(1, np.uint64);"
    "hash_all(np.zeros(3, np.uint8), np.array([0, 3], np.int64), key, key, out);"
    "print(CACHE_FOLDER, sum(hash_all.stats.cache_hits.values()), out.tolist())"
)


def started(cache: Path) -> tuple[list[str], list[str]]:
    """Use a kernel in a process of its own; return (folder, hits, result) and its warnings."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=with_cache(cache),
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


def test_folders_of_other_versions_leave_when_a_new_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three that were used last stay, any that was used within the hour, and what is no such folder."""
    monkeypatch.setattr(kernels.settings, "CACHE_DIR", str(tmp_path))
    now = time.time()
    ages = [30, 2 * 3600, 3 * 3600, 4 * 3600, 5 * 3600]
    for number, age in enumerate(ages):
        folder = tmp_path / f"{number:016x}"
        folder.mkdir()
        (folder / "kernel.nbc").write_bytes(b"x")
        os.utime(folder, (now - age, now - age))
    (tmp_path / "notes").mkdir()
    made = kernels._cache_folder()
    assert made is not None
    assert {each.name for each in tmp_path.iterdir()} == {
        made.name,
        "notes",
        *(f"{n:016x}" for n in range(3)),
    }
    (tmp_path / f"{3:016x}").mkdir()
    os.utime(tmp_path / f"{3:016x}", (0, 0))
    assert kernels._cache_folder() == made  # it is there already: nothing is removed
    assert (tmp_path / f"{3:016x}").exists()


FAILING = """
import fcntl
import pytest
from numba import TypingError
from rocsteady.core.ids.index import hash_all
from rocsteady.core.kernels.cache_folder import CACHE_FOLDER

with pytest.raises(TypingError):
    hash_all("text", "text", "text", "text", "text")
locks = [*CACHE_FOLDER.rglob("*.lock")]
for path in locks:
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print(len(locks))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there are no such locks on this system")
def test_a_compilation_that_fails_leaves_the_kernel_to_other_processes(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FAILING]
    ran = subprocess.run(words, env=with_cache(tmp_path), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr


def test_what_a_killed_process_was_writing_is_removed(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    names = ["a.nbi", "a.nbi.7-0123abcd.tmp", "a.nbi.77-0123abcd.tmp"]
    for name in names:
        (tmp_path / "room" / name).write_text("x")
    remove_unfinished(tmp_path, 7)
    assert sorted(path.name for path in (tmp_path / "room").iterdir()) == [names[0], names[2]]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there are no such locks on this system")
def test_two_processes_that_start_at_once_compile_a_kernel_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=with_cache(tmp_path),
            stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    hits = sorted(process.communicate()[0].split()[1] for process in processes)
    assert hits == ["0", "1", "1", "1"]
