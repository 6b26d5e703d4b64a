"""What a job needs is compiled, or loaded, before its first event."""

from __future__ import annotations

import subprocess
import sys

import pytest
from rocsteady.core.kernels import compile as kernels

PROGRAM = """
import sys
import numpy as np
import rocsteady as rs
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.table.table import EvaluatorTable, warm_up
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.settings.windows import parse_window

def there():
    modules = [module for name, module in sys.modules.items() if name.startswith("rocsteady.core.")]
    found = [each for module in modules for each in vars(module).values() if hasattr(each, "signatures")]
    return {(str(each.py_func), signature) for each in found for signature in each.signatures}

window, every = parse_window(sys.argv[1]), rs.EveryEvents(int(sys.argv[2]))
settings = TableSettings(rs.EvaluatorSettings(window=window, every=every, order="arrival"))
warm_up(settings)
before = there()
rng = np.random.default_rng(1)
table = EvaluatorTable(settings)
for n in (1_500, 10, 1_500, 1_500):
    models = rs.TextColumn.of(list("ab" * (n // 2)))
    batch = rs.EventBatch(models, rng.random(n).round(2), rng.integers(0, 2, n).astype(np.int8))
    table.apply(batch.pack())
    table = EvaluatorTable.from_bytes(table.to_bytes(), settings)
table.apply(EndOfInput().pack())
print(len(before), sorted(name for name, _ in there() - before))
"""


@pytest.mark.skipif(not kernels.COMPILED, reason="interpreted")
@pytest.mark.parametrize(
    ("window", "every"),
    [pytest.param("last:300", 1, marks=pytest.mark.slow), ("last:300", 100), ("last:3000", 1_000)],
)
def test_no_kernel_is_new_to_the_first_events(window: str, every: int) -> None:
    words = [sys.executable, "-c", PROGRAM, window, str(every)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    number, _, new = ran.stdout.strip().partition(" ")
    assert (int(number or 0) > 3, new) == (True, "[]"), ran.stderr
