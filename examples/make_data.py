"""Data to try the other examples with: two days of 200 models, of which one stops ranking on the second day.

    python examples/make_data.py data

writes into the folder `data`:

- `day1.csv`, `day2.csv`: scored and labelled events of two days, one event a line
- `predictions.csv`, `labels.csv`: events of three of the models, each label known up to an hour later
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

if len(sys.argv) != 2:
    sys.exit(__doc__)
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
random = np.random.default_rng(1)
count = 86_400  # events a day

for day, name in enumerate(["day1.csv", "day2.csv"]):
    model = random.integers(0, 200, count)
    label = random.random(count) < 0.3
    separation = np.where((model == 7) & (day == 1), 0.0, 2.0)  # model 7 ranks nothing on the second day
    score = 1 / (1 + np.exp(1 - random.normal(label * separation)))
    time = pd.Timestamp("2026-11-21") + pd.to_timedelta(day * 86_400 + np.arange(count), "s")
    events = pd.DataFrame(
        {
            "model": [f"model-{number:03}" for number in model],
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "score": score.round(4),
            "label": label.astype(int),
            "country": random.choice(["NZ", "AU", "FJ"], count),
        }
    )
    events.to_csv(folder / name, index=False)

few = events[(model == 7) | (model < 2)].reset_index(names="id")
few[["id", "model", "time", "score"]].to_csv(folder / "predictions.csv", index=False)
few["time"] = pd.to_datetime(few["time"]) + pd.to_timedelta(random.integers(60, 3_600, len(few)), "s")
known = few[random.random(len(few)) < 0.95].sort_values("time")  # 5% never get a label
known["known"] = known["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
known[["id", "label", "known"]].to_csv(folder / "labels.csv", index=False)
