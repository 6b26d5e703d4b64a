"""Temporary folders of killed processes go, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from rocsteady.core.process import temporary_folders
from rocsteady.core.process.temporary_folders import PREFIX, in_use, temporary_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked or removed there")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(place, name, old=True):
    folder = place / name
    folder.mkdir()
    if old:
        os.utime(folder, (1e9, 1e9))
    return folder


def test_a_folder_has_the_prefix_and_is_removed_behind_the_block(place):
    with temporary_folder() as folder:
        assert Path(folder).parent == place
        assert Path(folder).name.startswith(PREFIX)
        (Path(folder) / "file").touch()
    assert list(place.iterdir()) == []


def test_what_is_empty_ours_old_and_unused_is_removed_and_nothing_else(place):
    gone = left(place, f"{PREFIX}1")
    stay = [left(place, f"{PREFIX}2", old=False), left(place, "rocsteady-3"), left(place, f"{PREFIX}4")]
    (stay[-1] / "file").touch()
    os.utime(stay[-1], (1e9, 1e9))
    (link := place / f"{PREFIX}5").symlink_to(left(place, "elsewhere"))
    if os.geteuid() == 0:
        stay.append(left(place, f"{PREFIX}6"))
        os.chown(stay[-1], 54_321, -1)
    used = left(place, f"{PREFIX}7")
    with in_use(used) as is_free:
        assert is_free
        temporary_folders.remove_old()
    assert not gone.exists()
    assert all(folder.exists() for folder in (*stay, link, used))
    temporary_folders.remove_old()
    assert not used.exists()


def test_a_killed_process_leaves_a_folder_that_nobody_uses(place):
    program = (
        "import os, signal; from rocsteady.core.process.temporary_folders import temporary_folder\n"
        "with temporary_folder(): os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "TMPDIR": str(place)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    (folder,) = place.glob(f"{PREFIX}*")
    os.utime(folder, (1e9, 1e9))
    temporary_folders.remove_old()
    assert not folder.exists()
