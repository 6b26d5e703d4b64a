"""How a runner may add, merge and compact the accumulators of a CombineFn."""

from __future__ import annotations

import random
from typing import Any

from rocsteady.transforms.combine.auc import CombineEvents


def grown_at_random(combine: CombineEvents[Any], pairs: list[Any], rng: random.Random) -> bytes:
    """Return the accumulator of all pairs, added and merged in an order of chance."""
    accumulators = [combine.create_accumulator() for _ in range(rng.randint(1, 6))]
    for pair in pairs:
        place = rng.randrange(len(accumulators))
        accumulators[place] = combine.add_input(accumulators[place], pair)
        if rng.random() < 0.01:
            accumulators[place] = combine.compact(accumulators[place])
        if rng.random() < 0.005:
            some = [accumulators.pop() for _ in range(rng.randint(1, len(accumulators)))]
            accumulators += [combine.merge_accumulators(iter(some)), combine.create_accumulator()]
        assert all(type(accumulator) is bytes for accumulator in accumulators)
    rng.shuffle(accumulators)
    return combine.merge_accumulators(accumulators)
