# %% [markdown]
# A frame in a notebook: which of 200 models rank worse than they did, since when, and how surely.
#
#     python examples/make_data.py data
#     python examples/notebook.py data
#
# VS Code, PyCharm and Jupyter (with jupytext) show this file as a notebook with cells.

# %%
import sys
from pathlib import Path

import pandas as pd
import rocsteady as rs

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data")
frame = pd.concat([pd.read_csv(folder / name) for name in ("day1.csv", "day2.csv")])

# %% One row of measures after every 50 events of a model, each of the last 200
result = rs.evaluate(frame, time="time", slices=["country"], window="last:200", every=50)
print(result)

# %% The model that ranks worst at the end
summary = result.summary()
worst = summary.sort_values("auc").iloc[0]
print(worst[["model", "auc", "auc_low", "auc_high"]].to_string())

# %% Its rows
rows = result.rows[(result.rows["model"] == worst["model"]) & (result.rows["slice"] == "")]
print(rows[["time", "auc", "auc_low", "auc_high", "kappa_m"]].to_string(index=False))

# %% A page with everything, to send to others
result.report(str(folder / "report.html"))
