"""Recomputes the counts of a compressed list and the two conditions on its nodes from the entries."""

from __future__ import annotations

import numpy as np
from rocsteady.core.sketches.compressed_auc import CompressedAuc

from tests.support.invariants.score_tree import check_invariants as check_tree


def check_invariants(compressed: CompressedAuc) -> None:
    """Raise an AssertionError that names the first invariant that does not hold.

    Eq. 3 and Eq. 4 of Tatti 2018 bound the events of a class between two nodes from above and from below.
    """
    check_tree(compressed._tree)
    entries = compressed._tree.to_sorted()
    own, other = entries.positives[::-1], entries.negatives[::-1]
    if compressed.reverse:
        own, other = other, own
    nodes, epsilon = compressed.nodes(), compressed.epsilon
    at = np.searchsorted(-entries.scores[::-1], -nodes.scores)
    assert (entries.scores[::-1][at] == nodes.scores).all(), "a node's score is not there"
    assert (own[at] == nodes.own).all(), "p"
    assert (nodes.own > 0).all(), "a node without events of its class"
    assert (other[at] == nodes.other).all(), "n"
    assert (np.cumsum(own)[at] - own[at] == nodes.own_above).all(), "hp"
    assert (np.cumsum(other)[at] - other[at] == nodes.other_above).all(), "hn"
    above = np.concatenate([[0], nodes.own_above, [nodes.all_own]])
    through = np.concatenate([[0], nodes.own_above + nodes.own])
    assert (above[1:] - through <= epsilon * through).all(), "Eq. 3"
    assert (above[2:] - through[:-1] > epsilon * through[:-1]).all(), "Eq. 4"
