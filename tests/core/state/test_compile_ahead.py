"""A second process compiles what a job needs; the first one then compiles nothing, or the rest."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_modes import ROOT, with_cache
from rocsteady.core.join.settings import JoinSettings
from rocsteady.core.kernels.cache import HAS_LOCKS, only_process
from rocsteady.core.kernels.cache_folder import COMPILED, source_fingerprint

pytestmark = pytest.mark.skipif(not (COMPILED and HAS_LOCKS), reason="kernels are not compiled and shared")

PROGRAM = """
import sys, time
from numba.core import event
from rocsteady.core.join.settings import JoinSettings
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
from rocsteady.core.join.settings import JoinSettings
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
    with only_process(folder) as is_only:
        assert is_only
        ran = run(tmp_path, "-m", "rocsteady.core.state.compile_ahead", input=settings)
        assert (ran.returncode, ran.stdout) == (0, b""), ran.stderr
        with only_process(folder) as second_is_only:
            assert not second_is_only
    assert list(folder.glob("*.compiled")) == list(folder.rglob("*.nbc")) == []


def test_only_commands_start_a_second_process():
    sources = [path for room in ("core", "transforms", "runners") for path in (ROOT / room).rglob("*.py")]
    assert len(sources) > 100
    for path in [*sources, ROOT / "__init__.py"]:
        assert path.name == "compile_ahead.py" or "compiled_ahead" not in path.read_text(), path
