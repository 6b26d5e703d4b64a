"""A second process compiles what a job needs; the first one then compiles nothing, or the rest."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.kernels.cache import HAS_LOCKS
from rocsteady.core.kernels.cache_folder import COMPILED, source_fingerprint
from rocsteady.core.process.temporary_folders import in_use

from tests.support.invariants.kernel_modes import ROOT, with_cache

pytestmark = pytest.mark.skipif(not (COMPILED and HAS_LOCKS), reason="kernels are not compiled and shared")

PROGRAM = """
import sys, time
from numba.core import event
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.kernels.cache_folder import CACHE_FOLDER
from rocsteady.core.state import compile_ahead
settings = JoinSettings(1_000_000)
with event.install_listener("numba:compile", event.RecordingListener()) as compiled:
    with compile_ahead.compiled_ahead(settings):
        second = compile_ahead._second
        share = compile_ahead.share_compiled()
        while second and second._process.poll() is None and not [*CACHE_FOLDER.glob("*.compiled")]:
            time.sleep(0.01)
        compile_ahead.warm_up(settings)
        grown = second is None or share < compile_ahead.share_compiled() < 1.0
print(second is not None, grown, len(compiled.buffer), compile_ahead.share_compiled())
print("" if second is None else second._process.poll() is not None)
"""


def run(cache: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *words], env=with_cache(cache), capture_output=True, **options)


def test_the_second_process_compiles_and_a_third_is_not_needed(tmp_path):
    first = run(tmp_path, "-c", PROGRAM)
    assert first.stdout.decode().split() == ["True", "True", "0", "None", "True"], first.stderr
    again = run(tmp_path, "-c", PROGRAM)
    assert again.stdout.decode().split() == ["False", "True", "0", "None"], again.stderr


@pytest.mark.slow
def test_what_a_job_compiled_alone_needs_no_second_process(tmp_path):
    alone = """
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.state.compile_ahead import warm_up
warm_up(JoinSettings(1_000_000))
"""
    assert run(tmp_path, "-c", alone).returncode == 0
    after = run(tmp_path, "-c", PROGRAM)
    assert after.stdout.decode().split() == ["False", "True", "0", "None"], after.stderr


@pytest.mark.slow
def test_one_process_compiles_ahead_at_a_time(tmp_path):
    folder = tmp_path / source_fingerprint()
    folder.mkdir(mode=0o700)
    settings = pickle.dumps((JoinSettings(1_000_000),))
    with in_use(folder) as is_only:
        assert is_only
        ran = run(tmp_path, "-m", "rocsteady.core.state.compile_ahead", input=settings)
        assert (ran.returncode, ran.stdout) == (0, b""), ran.stderr
        with in_use(folder) as second_is_only:
            assert not second_is_only
    assert list(folder.glob("*.compiled")) == list(folder.rglob("*.nbc")) == []


def test_only_commands_start_a_second_process():
    sources = [path for room in ("core", "transforms", "runners") for path in (ROOT / room).rglob("*.py")]
    assert len(sources) > 100
    for path in [*sources, ROOT / "__init__.py"]:
        assert path.name == "compile_ahead.py" or "compiled_ahead" not in path.read_text(), path


SAME = """
from numba.core import event
import rocsteady as rs
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.state.compile_ahead import _mark_of, warm_up
settings = [
    TableSettings(rs.EvaluatorSettings(window=rs.LastEvents(n), threshold=at))
    for n, at in [(2_000, 0.5), (10_000, 0.3)]
]
marks = {_mark_of(one) for one in settings}
days = {_mark_of(rs.EvaluatorSettings(window=rs.LastDuration(window))) for window in ("1d", "7d")}
other = _mark_of(rs.EvaluatorSettings(window=rs.AllEvents()))
warm_up(settings[0])
with event.install_listener("numba:compile", event.RecordingListener()) as compiled:
    warm_up(settings[1])
print(len(marks), len(days), other in marks | days, len(compiled.buffer), _mark_of(settings[1]).exists())
"""


@pytest.mark.slow
def test_settings_of_one_mark_need_the_same_kernels(tmp_path):
    ran = run(tmp_path, "-c", SAME)
    assert ran.stdout.decode().split() == ["1", "1", "False", "0", "True"], ran.stderr


UNKEPT = """
import errno, warnings
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.kernels import cache
from rocsteady.core.state.compile_ahead import _mark_of, warm_up
def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")
cache._CheckedFile._write = full
warnings.simplefilter("ignore")
warm_up(JoinSettings(1_000_000))
print(_mark_of(JoinSettings(1_000_000)).exists())
"""


@pytest.mark.slow
def test_there_is_no_mark_where_a_kernel_could_not_be_kept(tmp_path):
    ran = run(tmp_path, "-c", UNKEPT)
    assert ran.stdout.decode().split() == ["False"], ran.stderr


STOPPED = """
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.kernels import cache
from rocsteady.core.state.compile_ahead import warm_up
waited = []
cache._patience_seconds = 0.2
cache._locks = lambda file: waited.append(file) and False
warm_up(JoinSettings(1_000_000))
print(cache._patience_seconds, len(waited) > len(set(waited)))
"""


@pytest.mark.slow
def test_who_waited_in_vain_for_one_kernel_waits_for_no_other(tmp_path):
    """As for a process that Ctrl-Z has stopped, which may hold two kernels."""
    ran = run(tmp_path, "-c", STOPPED)
    assert ran.stdout.decode().split() == ["0.0", "True"], ran.stderr
