"""Draw the README's picture from the rows of the demo: `python -m benchmarks.readme_picture ROWS SVG`.

Needs matplotlib, which nothing else here does.
"""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from pyarrow import parquet

COLOURS = {"logistic": "#0072b2", "naive-bayes": "#d55e00"}  # told apart by colour-blind readers


def draw(rows_path: str, picture_path: str) -> None:
    rows = parquet.read_table(rows_path)
    columns = {name: rows[name].to_numpy(zero_copy_only=False) for name in rows.column_names}
    mpl.rcParams.update({"svg.hashsalt": "rocsteady", "svg.fonttype": "none", "font.size": 10})
    figure, axes = plt.subplots(figsize=(8.5, 3.4), layout="constrained")
    for model, colour in COLOURS.items():
        chosen = (columns["model"] == model) & (columns["slice"] == "") & (columns["window_events"] == 10_000)
        time, auc, low, high = (columns[name][chosen] for name in ("time", "auc", "auc_low", "auc_high"))
        axes.fill_between(time, low.astype(float), high.astype(float), color=colour, alpha=0.25, linewidth=0)
        axes.plot(time, auc.astype(float), color=colour, linewidth=1.2, label=model)
        axes.text(time[-1] + np.timedelta64(2, "D"), auc[-1], model, color=colour, va="center")
    axes.set_ylabel("AUC of the last 10,000 landings")
    axes.set_title(
        "Does the flight land 15 minutes late? Two online learners over 2013, with 95% intervals", size=10
    )
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(right=np.datetime64("2014-02-05"))
    figure.savefig(picture_path, metadata={"Date": None})


if __name__ == "__main__":
    draw(*sys.argv[1:3])
