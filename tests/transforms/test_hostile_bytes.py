"""Readers of stored bytes meet damage whose checksums are right: they answer with named errors alone."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib

import numpy as np
import pytest
from rocsteady.core.errors import RocsteadyError

from tests.support.invariants.kernel_modes import ROOT
from tests.support.stored.damage import damaged
from tests.support.stored.readers import BETWEEN_STAGES, FORMS, INHERITED, in_the_package
from tests.support.thorough import THOROUGH

CASES = 4_000 if THOROUGH else 25
MOST_CASES = 20 * CASES
"""Damage to some forms is seldom refused: they are tried until it is."""
UNCHECKED = (
    "transforms.evaluate.shards:RowsCoder.decode",
    "transforms.prequential.folds:FoldOutputCoder.decode",
)
"""Bytes between two stages of one job, mostly numbers, any of which can be."""

OUT_OF_BOUNDS = "index is out of bounds"
"""What a kernel says with NUMBA_BOUNDSCHECK=1; without that it reads and writes beside its arrays."""


def test_every_reader_is_known():
    assert set(in_the_package()) == {INHERITED.get(name, name) for name in FORMS} | BETWEEN_STAGES


@pytest.mark.parametrize("name", FORMS)
def test_what_a_reader_writes_it_reads(name):
    form = FORMS[name]
    for sample in form.samples():
        form.use(form.read(sample), sample)


def out_of_bounds(error):
    while error is not None:
        if isinstance(error, IndexError) and OUT_OF_BOUNDS in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers that damage makes infinite
@pytest.mark.parametrize("name", FORMS)
def test_damage_with_right_checksums_is_refused_by_name(name):
    form = FORMS[name]
    samples = form.samples()
    refused = used = 0
    for case in range(MOST_CASES):
        if case >= CASES and (refused or name in UNCHECKED):
            break
        random = np.random.default_rng([zlib.crc32(name.encode()), case])
        data = damaged(samples[case % len(samples)], random)
        try:
            form.use(form.read(data), data)
            used += 1
        except RocsteadyError as error:
            if out_of_bounds(error):
                raise AssertionError(f"{name}: case {case}: a kernel left its arrays") from error
            refused += 1
        except BaseException as error:
            raise AssertionError(f"{name}: case {case}: {error!r}") from error
    assert refused + used >= CASES
    assert refused or name in UNCHECKED


@pytest.mark.slow
@pytest.mark.skipif("NUMBA_BOUNDSCHECK" in os.environ, reason="this is the run with checked kernels")
def test_what_passes_the_readers_leads_no_kernel_out_of_its_arrays():
    words = ["-m", "pytest", "-q", "-x", "-n0", "-m", "slow", "-k", "damage_with_right_checksums", __file__]
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_DISABLE_JIT": "0"}
    ran = subprocess.run([sys.executable, *words], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert f"{len(FORMS)} passed" in ran.stdout
