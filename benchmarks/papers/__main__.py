"""A paper's figures run again: python -m benchmarks.papers NAME [--output FOLDER] [--quick].

Writes FOLDER/NAME.md and its pictures, FOLDER/NAME-*.svg, whole: nothing in them is kept by hand.

A paper is a module here with a function `report(folder, quick)`: it measures, writes its pictures into the
folder and returns the text.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

from rocsteady.core.errors import MissingPackageError, RocsteadyError

from benchmarks.pages import with_commit

PAPERS = {
    "calders2007": "Calders & Jaroszewicz 2007, Efficient AUC optimization for classification",
    "tatti2018": "Tatti 2018, Efficient estimation of AUC in a sliding window",
    "tatti2021": "Tatti 2021, Maintaining AUC and H-measure over time",
    "hocking2021": "Hocking & Hillman 2021, Optimizing ROC curves with a sort-based surrogate loss",
    "bifet2015": "Bifet et al. 2015, Efficient online evaluation of big data stream classifiers",
}
DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "docs" / "papers"


def main(arguments: list[str]) -> int:
    """Return the exit status: 2 where the call was wrong, 1 where something else stood in the way."""
    lines = "\n".join(f"  {name}  {title}" for name, title in PAPERS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=f"Run a paper's figures again.\n\n{lines}",
        epilog="Data sets are read from the folder that the environment variable ROCSTEADY_DATA names.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paper", help=", ".join(PAPERS))
    parser.add_argument("--output", type=Path, default=DEFAULT_FOLDER, help="folder; docs/papers by default")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to see that it works")
    options = parser.parse_args(arguments)
    if options.paper not in PAPERS:
        parser.error(f"no paper is called {options.paper!r}; there are {', '.join(PAPERS)}")
    try:
        start = time.perf_counter()
        options.output.mkdir(parents=True, exist_ok=True)
        text = _report(options.paper, options.output, options.quick)
        written = options.output / f"{options.paper}.md"
        written.write_text(with_commit(text))
    except RocsteadyError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except OSError as error:
        print(f"{parser.prog}: cannot write to {options.output}: {error}", file=sys.stderr)
        return 1
    print(text)
    print(f"{written} was written in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 0


def _report(paper: str, folder: Path, quick: bool) -> str:
    try:
        module = import_module(f"benchmarks.papers.{paper}")
        text: str = module.report(folder, quick)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(("benchmarks", "rocsteady")):
            raise
        raise MissingPackageError(
            f"{paper} needs the package {error.name}, which is not installed: pip install '.[bench]'"
        ) from error
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
