"""A learner of your own, for `compare_learners.py`. It is a module of its own, so that workers can import it.

    python examples/sliding_mean.py

tests it on three instances. A learner has `learn_one(x, y)` and `predict_proba_one(x)`, as in river.
"""

from collections import deque


class SlidingMean:
    """Predicts the share of positives among the last labels of the same `shop`."""

    def __init__(self, size=200):
        self.size = size
        self.labels = {}

    def predict_proba_one(self, x):
        """Return the probability of each class."""
        labels = self.labels.get(x["shop"], ())
        share = (sum(labels) + 1) / (len(labels) + 2)
        return {True: share, False: 1 - share}

    def learn_one(self, x, y):
        """Learn a label."""
        self.labels.setdefault(x["shop"], deque(maxlen=self.size)).append(bool(y))


if __name__ == "__main__":
    learner = SlidingMean()
    for label in (True, True, False):
        print(learner.predict_proba_one({"shop": 3}))
        learner.learn_one({"shop": 3}, label)
