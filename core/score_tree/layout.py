"""The records of a ScoreTree: their fields, units and meanings.

A ScoreTree holds the multiset of (score, label) of a window in score order. Events with equal
scores are one ENTRY with a weight (how many) and positives (how many of label 1). Consecutive
entries lie in a BUCKET, up to 62 of them; the buckets are the leaves of an AVL tree of NODES.

Coordinates: X = events, Y = positives, cumulated from the LOWEST score, so that an entry is a step (dX, dY)
and ends in a POINT. The slope of an edge is the share of positives among its events. The lower hull of all
points is the convex hull of the ROC curve, and its slopes are the isotonic calibration (PAV) of the scores.
Every subtree has its own coordinates, with the origin before its first entry: an insertion moves nothing
outside its path. Hulls are strict: a point on the line between two others is no vertex.

A key is the score's bits, folded so that the order of the integers is the order of the scores. Infinities and
denormals need no special case, and -0.0 is 0.0. The keys FIRST_KEY and PAD_KEY belong to no score. The entry
FIRST_KEY, of weight 0, is always the first of the first bucket: its point is the origin, so the hull begins
there and the tree is never empty. PAD_KEY fills unused slots.

A place is a child of a node or the root: the id of a node, or ~id (negative) of a bucket.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..kernels.cache_folder import BUCKET_SLOTS_VARIABLE
from ..kernels.compile import inlined
from ..kernels.records import at, whole
from ..measures.sums import loss_in_fixed_point

SLOTS = int(os.environ.get(BUCKET_SLOTS_VARIABLE, "64"))
"""The trip count of every loop over a bucket. It is fixed, so that loops compile to vectors without
remainders. Tests set it to 8: splits, merges, rotations and empty buckets are then common.
"""
if SLOTS % 8 or not 8 <= SLOTS <= 64:
    raise ValueError(f"{BUCKET_SLOTS_VARIABLE}={SLOTS}: use a multiple of 8 from 8 to 64")

# Slots 1..62: their bits fit an int64 whose sign is never set, and range(SLOTS) sees each of them.
BUCKET_CAPACITY = SLOTS - 2
# with at most so many entries, a bucket looks for a sibling to merge with
MERGE_BELOW = 3 * BUCKET_CAPACITY // 8
MERGED_AT_MOST = 3 * BUCKET_CAPACITY // 4
BULK_FILL = 3 * BUCKET_CAPACITY // 4

FIRST_KEY = -(2**63)
PAD_KEY = 2**63 - 1
INFINITE_KEY = 0x7FF0000000000000  # folded +inf; -inf folds to its complement; NaN lies outside

LEFT = 0
RIGHT = 1
NO_PLACE = -(2**31)  # no place: no node has this id, and no bucket has its complement

NO_SLOT = 64  # "no vertex above": the answer of lowest_bit for the empty set
FAR = 1 << 40  # an abscissa beyond every point

MAX_WEIGHT = 2_496_000
"""The most events in one tree. The sum of squared doubled ranks sets the limit: with P positives and N
negatives it is at most 4 P N^2 <= 16 k^3 / 27, which must stay below 2^63. (Products in the bridge search
allow 3.3 million events, the exact comparison of slopes in float64 2^26.)
"""
assert 16 * MAX_WEIGHT**3 // 27 < 2**63

# Fields of two elements are indexed by LEFT and RIGHT: one element for each child, mirrored. `tangent` is the
# end of the bridge on that child's hull, in the child's own coordinates (so that a shift of the left child
# moves nothing on the right). `slope_before` and `slope_after` are the slopes of the two edges of the child's
# hull that meet in that end (-inf, +inf at the ends of the hull). The bridge is right as long as its slope
# lies between these two slopes. `h_kept` is the loss summed over the part of the child's hull that the node's
# hull keeps, `h_bridge` the loss of the bridge.
_NODE_FIELDS: list[Any] = [
    ("separator", "i8"),  # keys in the left child are below `separator`, keys in the right child are not
    ("child", "i4", (2,)),
    ("parent", "i4"),
    ("height", "i4"),
    ("weight", "i4", (2,)),
    ("positives", "i4", (2,)),
    ("tangent_x", "i4", (2,)),
    ("tangent_y", "i4", (2,)),
    ("pairs2", "i8", (2,)),  # twice the pairs (negative below positive; a tie counts half)
    ("slope_before", "f8", (2,)),
    ("slope_after", "f8", (2,)),
    ("h_kept", "i8", (2,)),
    ("h_bridge", "i8"),
]
NODE = np.dtype(_NODE_FIELDS)
assert NODE.itemsize == 128, "two cache lines"

# Entries lie in slots 1..count; slot 0 is the origin, and loops may read one slot of padding behind the last
# entry. weight[t], positives[t]: cumulated through slot t, so they are the point of the entry.
_BUCKET_FIELDS: list[Any] = [
    ("vertices", "i8"),  # bit t: the point of slot t is a vertex of the bucket's hull; 0: unknown
    ("h", "i8"),  # the loss summed over the bucket's hull
    ("count", "i4"),
    ("parent", "i4"),
    ("key", "i8", (SLOTS + 2,)),
    ("weight", "i4", (SLOTS + 2,)),
    ("positives", "i4", (SLOTS + 2,)),
]
BUCKET = np.dtype(_BUCKET_FIELDS, align=True)

_STATE_FIELDS: list[Any] = [
    ("root", "i8"),
    ("free_node", "i8"),  # first of the unused nodes, which are chained by `parent`; NO_PLACE ends the chain
    ("free_bucket", "i8"),
    ("fresh_node", "i8"),  # nodes from this id on have never been used
    ("fresh_bucket", "i8"),
    ("bucket_count", "i8"),
    ("weight", "i8"),
    ("positives", "i8"),
    ("pairs2", "i8"),
    ("squares_positive", "i8"),  # sum over positives of (2 negatives below + ties)^2
    ("squares_negative", "i8"),  # sum over negatives of (2 positives above + ties)^2
    ("capacity", "i8"),
    ("keeps_hull", "i8"),  # 0: bridges, buckets' hulls and sums of losses are not kept
    ("scale", "f8"),  # fixed point of every loss: `fixed_point_scale` of the capacity
    ("follows_weight", "i8"),  # 1: a row states losses in the fixed point of the weight, not of the capacity
    ("curvature", "f8"),  # the cost density, see `edge_loss`
    ("keeps_area", "i8"),  # 1: `sums` holds the sums of AUM, with the next three fields (sums.py)
    ("reference", "i8"),  # the key between the two sums of AUM, as of the last row that asked for AUM
    ("negatives_above", "i8"),
    ("positives_below", "i8"),
    ("keeps_losses", "i8"),  # 1: `sums` holds the losses of probabilities
    ("reference_bucket", "i8"),  # the bucket in which the reference lay at that row: a hint for the next row
    # Two vertices of the hull, at the slopes KS_SLOPE and COST_SLOPE; `followed_vertices` follows them
    ("watched", "i8", (2,)),  # 1: the next fields hold the vertex; 0: unknown
    ("watched_x", "i8", (2,)),
    ("watched_y", "i8", (2,)),
    ("slope_into", "f8", (2,)),  # slopes of the hull's edges that meet in the vertex; -inf, +inf at its ends
    ("slope_out", "f8", (2,)),
    ("key_after", "i8", (2,)),  # the key of the entry behind the vertex; PAD_KEY: none
    ("guessed", "i8"),  # vertices of the hull that the last scan left, see `scan_hull`; 0: none
]
STATE = np.dtype(_STATE_FIELDS)

Records = npt.NDArray[np.void]


class Tree(NamedTuple):
    """The state that all kernels share: arrays of the three records (of STATE: one), and exact sums.

    sums: int64, WINDOW_SUMS by SUM_CHUNKS (measures/sums.py, kernels/exact_sums.py).
    """

    nodes: Any
    buckets: Any
    state: Any
    sums: Any


@inlined
def key_of(score: float) -> int:
    """Fold a score's bits so that integers order as scores do. A NaN gives a key beyond +-INFINITE_KEY."""
    bits: Any = np.float64(score + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0
    return bits ^ ((bits >> np.int64(63)) & np.int64(PAD_KEY))


@inlined
def score_of(key: int) -> float:
    """Return the score that folds to `key`."""
    bits: Any = np.int64(key)
    return np.int64(bits ^ ((bits >> np.int64(63)) & np.int64(PAD_KEY))).view(np.float64)


@inlined
def is_score(key: int) -> bool:
    """Return whether a key is the key of a number: no NaN folds into this range."""
    return (key <= INFINITE_KEY) & (key >= ~INFINITE_KEY)


@inlined
def edge_loss(dx: int, dy: int, state: Any) -> int:
    """Return the loss of a hull edge, in the tree's fixed point and for its cost density."""
    return loss_in_fixed_point(dx, dy, state.curvature, state.scale)


@inlined
def hull_loss(tree: Tree, place: int) -> int:
    """Return the loss summed over the whole hull of a subtree."""
    if place >= 0:
        node = tree.nodes[at(place)]
        return node.h_kept[LEFT] + node.h_bridge + node.h_kept[RIGHT]
    return tree.buckets[at(~place)].h


@inlined
def parent_of(tree: Tree, place: int) -> int:
    """Return the id of the node above a node or bucket; NO_PLACE for the root."""
    if place >= 0:
        return whole(tree.nodes[at(place)].parent)
    return whole(tree.buckets[at(~place)].parent)


def keys_of(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Fold an array of scores to keys, as `key_of` does for one score."""
    bits = (scores + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))


def scores_of(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Unfold an array of keys to scores, as `score_of` does for one key."""
    bits = np.ascontiguousarray(keys, dtype=np.int64)
    return (bits ^ ((bits >> 63) & np.int64(2**63 - 1))).view(np.float64)
