"""Streams of events with a dict from class to score, as classifiers of river predict them."""

from __future__ import annotations

import random


def class_predictions(n: int, seed: int = 3, kind: str = "tied") -> tuple[list[str], list[dict[str, float]]]:
    """Labels of four classes, and scores whose sums are 1.

    A dict lacks classes of score 0. Class c leaves for good, and class d comes late. `kind` is "tied" with
    few different scores, or "plain". Scores are whole numbers of 2^-20, so that their sums are 1 exactly.
    """
    rng = random.Random(seed)
    labels = [rng.choice("aabc" if i < n // 2 else "aabd") for i in range(n)]
    steps = 8 if kind == "tied" else 2**20
    predictions = []
    for i, label in enumerate(labels):
        known = [name for name in ("abc" if i < n // 2 else "abcd") if name == label or rng.random() < 0.7]
        shares = [rng.random() + (name == label) for name in known]
        scores = [int(steps * share / sum(shares)) for share in shares]
        scores[0] += steps - sum(scores)
        predictions.append({name: score / steps for name, score in zip(known, scores, strict=True) if score})
    return labels, predictions
