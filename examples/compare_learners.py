"""Two stream learners, trained and tested on the same stream and compared: one of river's, one of your own.

    python examples/compare_learners.py

prints for each measure which of the two is better at the end, by Wilcoxon's test over the folds. The learner
`SlidingMean` is in `sliding_mean.py` beside this file. Put your own in its place.
"""

import apache_beam as beam
import rocsteady as rs
from sliding_mean import SlidingMean

COUNT = 6_000


def instances():
    """Return a stream in which each shop's frequent class is another one from the middle on."""
    stream = []
    for number in range(COUNT):
        shop = number * 7 % 10
        often = (shop < 5) == (number < COUNT // 2)
        bought = number // 10 * 13 % 10 < (8 if often else 2)
        stream.append({"id": number, "shop": shop, "bought": int(bought)})
    return stream


def main():
    """Train, test and compare."""
    prequential = rs.Prequential(
        {"naive-bayes": "naive-bayes", "sliding-mean": SlidingMean},
        features=["shop"],
        label="bought",
        id="id",
        folds=6,
        window=rs.LastEvents(1_000),
    )
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        run = pipeline | beam.Create(instances()) | prequential
        tests = run.comparisons | beam.Filter(lambda row: row.seq == COUNT and row.test == "wilcoxon")
        tests | beam.Map(lambda row: print(f"{row.measure}: {row.better} is better, p = {row.p_value:.4f}"))


if __name__ == "__main__":
    main()
