"""How a paper's report shows what was measured: tables in Markdown, lines in SVG."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import numpy as np

MOST_POINTS = 300
"""Of a line: more cannot be told apart, and make a picture large."""

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#7f7f7f")


@dataclass(frozen=True)
class Line:
    """A line of a panel: its name in the legend, and its points."""

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    dashed: bool = False
    marker: bool = False


@dataclass(frozen=True)
class Panel:
    """A pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: list[Line] = field(default_factory=list)
    log_x: bool = False
    log_y: bool = False


def draw(path: Path, panels: Sequence[Panel]) -> str:
    """Write the panels side by side as SVG; return the Markdown that shows them from the same folder.

    The same figures make the same bytes. Names of lines stand in the first panel's legend, and in another
    panel's where its lines have other names.
    """
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    style = {"svg.fonttype": "none", "svg.hashsalt": path.stem, "font.size": 9, "axes.titlesize": 9}
    with mpl.rc_context(style):
        figure, axes = pyplot.subplots(
            1, len(panels), figsize=(0.6 + 3.4 * len(panels), 2.9), squeeze=False, layout="constrained"
        )
        for axis, panel, before in zip(axes[0], panels, [None, *panels], strict=False):
            names = [line.name for line in panel.lines]
            for i, line in enumerate(panel.lines):
                x, y = _thinned(np.asarray(line.x, float), np.asarray(line.y, float))
                axis.plot(
                    x, y, label=line.name, color=_COLOURS[i % len(_COLOURS)], linewidth=1.2,
                    linestyle="--" if line.dashed else "-", marker="o" if line.marker else None, markersize=3,
                )  # fmt: skip
            axis.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
            if panel.log_x:
                axis.set_xscale("log")
            if panel.log_y:
                axis.set_yscale("log")
            axis.grid(visible=True, alpha=0.3, linewidth=0.5)
            if before is None or names != [line.name for line in before.lines]:
                axis.legend(fontsize=8, frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return f"![{', '.join(panel.title for panel in panels)}]({path.name})\n"


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return as many points as can be seen: of each run of them the first, and the last of all."""
    if len(x) <= MOST_POINTS:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).astype(int))
    return x[kept], y[kept]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def prose(text: str) -> str:
    """Return text as a paragraph: in one line, whatever its lines were."""
    return " ".join(text.split()) + "\n"


def verdict(holds: bool) -> str:
    """Say whether a claim holds."""
    return "holds" if holds else "does not hold"


def machine(compiled: str = "all contenders are compiled by numba") -> str:
    """Say what the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        cpu = names[0] if names else cpu
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numba", "numpy"))
    return (
        f"{cpu}, {os.cpu_count()} cores (one used), Python {platform.python_version()}, {versions}. Times "
        f"are of the processor; {compiled}.\n"
    )
