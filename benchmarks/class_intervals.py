"""Intervals of the means of classes: python -m benchmarks.class_intervals [--quick] [--output FILE].

How often the 95% intervals of macro, weighted and M hold the truth, in draws from models whose truth is
known (tests/support/streams/class_coverage.py).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.support.streams.class_coverage import BEYOND, MODELS, Model, coverage

from .pages import with_commit
from .processes import table


def section(models: dict[str, Model], draws: int) -> str:
    rows = []
    for name, model in models.items():
        held, truth = coverage(model, draws)
        cells = [f"{value:.3f}" for value in truth] + [f"{share:.1%}" for share in held]
        rows.append([name, f"{len(model.shares)}", f"{model.events:,}", *cells])
        print(rows[-1], flush=True)
    head = [
        "draws from",
        "classes",
        "events",
        "macro",
        "weighted",
        "M",
        "macro held",
        "weighted held",
        "M held",
    ]
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few draws")
    default = Path(__file__).parent.parent / "docs" / "benchmarks" / "class_intervals.md"
    parser.add_argument("--output", type=Path, default=default)
    options = parser.parse_args()
    draws = 50 if options.quick else 6_000
    text = (
        "# Intervals of classes, measured\n\n"
        f"How often 95% intervals of `auc_macro`, `auc_weighted` and `auc_m` hold the truth, in {draws:,} "
        "draws of each kind. Scores are normal, with a variance of 1. The truth is that of 400,000 events. "
        "With this number of draws a share of 95% has a standard error of 0.3%.\n\n"
        "## Fifty events of each class or more, M up to .95\n\n"
        "With weights and with fading, each class has an effective size of some 50.\n\n"
        f"{section(MODELS, draws)}\n"
        "## Beyond\n\n"
        "Near 1 and with few events the intervals are too narrow. Draws in which a class has fewer than two "
        "events have no interval, and do not count.\n\n"
        f"{section(BEYOND, draws)}"
    )
    options.output.write_text(with_commit(text))
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
