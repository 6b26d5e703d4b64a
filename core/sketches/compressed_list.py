"""The compressed list of Tatti 2018, kept beside a ScoreTree while events come and go.

The list C is a choice of nodes between two ends without a score. Nodes are distinct scores of one class,
`own` (the positives, or the negatives if the guarantee is reversed), from the HIGHEST score down. hp(v)
counts the events of `own` above a node v, and p(v) the events of `own` with its score. C is (1 +
epsilon)-compressed if, for neighbours v, w and, if there is one, the node u after w,

    Eq. 3   hp(w) <= (1 + epsilon) (hp(v) + p(v))        groups are small: this bounds the error
    Eq. 4   hp(u) >  (1 + epsilon) (hp(v) + p(v))        two groups together are not: this bounds their number

The paper counts from the lowest score up, with a lower score more likely positive: here s -> -s.

How the paper's structures are found here. The trees T and TP and the list P are the one ScoreTree: HeadStats,
MaxPos and next(v; P) are `crossing`, one descent. The gap counters of C are differences of cumulated counts,
gp(v; C) = hp(w) - hp(v). These counts lie side by side and are changed, checked and summed in vectors. So the
O(|C|) steps below take some ten nanoseconds.

Misprints of the paper, each of which breaks Eq. 3: algorithm 7, line 5 means p(u), not p(v); algorithm 8,
line 3 holds only where s(u) = s. (Algorithm 1, line 4 means s(v) > s.)

Source: Tatti 2018, Efficient estimation of AUC in a sliding window, sections 3 and 4.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from ..kernels.compile import entry, inlined, kernel
from ..kernels.records import at, whole, zero_record
from ..score_tree.layout import FIRST_KEY, PAD_KEY, Tree, key_of
from ..score_tree.query import crossing
from ..score_tree.slide import DONE, MISSING, NO_WINDOW, Ring, hold, look_ahead, obstacle, release
from ..score_tree.update import NO_HINT, NOT_FOUND, update

NEEDS_NODES = 16  # above the codes of `score_tree.slide`
ENDS = 2

_LIST_FIELDS: list[Any] = [
    ("count", "i8"),  # how many nodes, with both ends
    ("own", "i8"),  # the label of the class that is grouped
    ("pairs2", "i8"),  # twice the estimated number of pairs, as of the end of `run`
    ("added", "i8"),  # how many nodes AddNext has added so far
    ("epsilon", "f8"),
]
LIST = np.dtype(_LIST_FIELDS)


class Nodes(NamedTuple):
    """The list C: for each node its key and counts, from the highest score down, and one record LIST.

    key: int64, the complement of the folded score, so that keys ascend; `own_above`, `other_above`: events of
    each class above the node, hp and hn; `own`, `other`: events with the node's score, p and n (int32).
    """

    key: Any
    own_above: Any
    other_above: Any
    own: Any
    other: Any
    state: Any


def empty_list(room: int, own: int, epsilon: float) -> Nodes:
    """Make a list of two ends, with room for so many nodes."""
    state = zero_record(LIST)
    state["count"] = ENDS
    state["own"] = own
    state["epsilon"] = epsilon
    key = np.zeros(room, np.int64)
    key[:ENDS] = FIRST_KEY, PAD_KEY
    counts = np.zeros((4, room), np.int32)
    return Nodes(key, counts[0], counts[1], counts[2], counts[3], state)


def with_room(nodes: Nodes, room: int) -> Nodes:
    """Return the list with room for `room` nodes."""
    more = room - len(nodes.key)
    return Nodes._make([*(np.pad(column, (0, more)) for column in nodes[:-1]), nodes.state])


real = cast(Callable[[Any], float], np.float64)


@inlined
def position(nodes: Nodes, key: int) -> int:
    """Find the last node that is not below a score; `key` is the score's complemented key."""
    low = whole(0)
    high = nodes.state[0].count - 1  # the end, below every score
    while high - low > 1:
        middle = (low + high) >> 1
        if nodes.key[at(middle)] <= key:
            low = middle
        else:
            high = middle
    return low


@inlined
def move(nodes: Nodes, source: int, target: int) -> None:
    """Copy a node to another place of the list."""
    nodes.key[at(target)] = nodes.key[at(source)]
    nodes.own_above[at(target)] = nodes.own_above[at(source)]
    nodes.other_above[at(target)] = nodes.other_above[at(source)]
    nodes.own[at(target)] = nodes.own[at(source)]
    nodes.other[at(target)] = nodes.other[at(source)]


@inlined
def write_node_after(tree: Tree, nodes: Nodes, target: int, count: int) -> None:
    """Write, as a node, the first score, from the highest down, at which the events of `own` exceed a count.

    Such a score must exist.
    """
    found = crossing(tree, nodes.state[0].own, count)
    nodes.key[at(target)] = ~found.key
    nodes.own_above[at(target)] = found.own
    nodes.other_above[at(target)] = found.other
    nodes.own[at(target)] = found.own_tied
    nodes.other[at(target)] = found.other_tied


@inlined
def is_within(own_above: Any, through: float, epsilon: float) -> bool:
    """Return whether hp(w) <= (1 + epsilon) through, with through = hp(v) + p(v).

    The comparison is exact for epsilon = 0.
    """
    return real(own_above) - through <= epsilon * through


@inlined
def through(nodes: Nodes, place: int) -> float:
    """Return the events of `own` at or above a node: hp + p."""
    return real(nodes.own_above[at(place)]) + real(nodes.own[at(place)])


@kernel
def leave_node(tree: Tree, nodes: Nodes, place: int) -> None:
    """Replace a node without events of `own` by the next score of `own`; drop it if that score is listed."""
    state = nodes.state[0]
    above = whole(nodes.own_above[at(place)])
    if nodes.own_above[at(place + 1)] > above:
        write_node_after(tree, nodes, place, above)
        return
    for j in range(place, state.count - 1):
        move(nodes, j + 1, j)
    state.count -= 1


@kernel
def add_next(tree: Tree, nodes: Nodes) -> None:
    """Add the next score of `own` wherever Eq. 3 is broken; by the paper's lemma 1 Eq. 3 then holds.

    Takes one pass from the end, for any number of added nodes; each added node takes a descent.
    """
    state = nodes.state[0]
    size = state.count
    missing = whole(0)
    for j in range(size - 1):
        missing += not is_within(nodes.own_above[j + 1], through(nodes, j), state.epsilon)
    if missing == 0:
        return
    state.count += missing
    state.added += missing
    move(nodes, size - 1, size - 1 + missing)
    j = size - 2
    while missing > 0:
        if not is_within(nodes.own_above[at(j + 1)], through(nodes, j), state.epsilon):
            write_node_after(tree, nodes, j + missing, whole(nodes.own_above[at(j)]) + nodes.own[at(j)])
            missing -= 1
        move(nodes, j, j + missing)
        j -= 1


@kernel
def compress(nodes: Nodes) -> None:
    """Drop nodes in one pass, from the front, for Eq. 4 to hold. O(|C|); in vectors if no node is dropped."""
    state = nodes.state[0]
    size = state.count
    too_many = whole(0)
    for j in range(size - 2):
        too_many += is_within(nodes.own_above[j + 2], through(nodes, j), state.epsilon)
    if too_many == 0:
        return
    last = whole(0)  # the last node that stays
    for j in range(1, size - 1):
        if not is_within(nodes.own_above[at(j + 1)], through(nodes, last), state.epsilon):
            last += 1
            move(nodes, j, last)
    move(nodes, size - 1, last + 1)
    state.count = last + 2


@inlined
def follow(tree: Tree, nodes: Nodes, key: int, label: int, sign: int) -> None:
    """Update the list for an event that has just entered the tree (sign = 1) or left it (-1).

    This is the paper's AddPos and RemovePos, or AddNeg and RemoveNeg.
    """
    state = nodes.state[0]
    place = position(nodes, ~key)
    is_node = nodes.key[at(place)] == ~key
    if label != state.own:
        nodes.other[at(place)] += sign * is_node
        for j in range(place + 1, state.count):
            nodes.other_above[j] += sign
        return
    nodes.own[at(place)] += sign * is_node
    for j in range(place + 1, state.count):
        nodes.own_above[j] += sign
    if is_node and nodes.own[at(place)] == 0:
        leave_node(tree, nodes, place)
    add_next(tree, nodes)
    compress(nodes)


@kernel
def approximate_pairs2(nodes: Nodes) -> int:
    """ApproxAUC: twice the pairs of an `own` above an `other`, ties half.

    The events of a gap count as tied.
    """
    pairs2 = whole(0)
    for j in range(nodes.state[0].count - 1):
        own_above = whole(nodes.own_above[j])
        own = whole(nodes.own[j])
        other = whole(nodes.other[j])
        in_gap = whole(nodes.other_above[j + 1]) - nodes.other_above[j] - other
        pairs2 += (2 * own_above + own) * other + (own_above + own + nodes.own_above[j + 1]) * in_gap
    return pairs2


@inlined
def estimate(tree: Tree, nodes: Nodes) -> float:
    """Return the estimated AUC of a window; NaN without both classes."""
    state = tree.state[0]
    all_pairs2 = 2 * state.positives * (state.weight - state.positives)
    pairs2 = approximate_pairs2(nodes)
    if nodes.state[0].own == 0:
        pairs2 = all_pairs2 - pairs2
    return pairs2 / all_pairs2 if all_pairs2 > 0 else np.nan


@entry
def run(tree: Tree, ring: Ring, nodes: Nodes, labels: Any, scores: Any, sign: int, estimates: Any) -> int:
    """Apply a batch from the place where `ring.course` stands.

    Return DONE, or the code of what stopped the kernel.

    sign: 1 inserts, -1 removes. With a window (`ring.course.window`) the oldest events leave, and the
    estimate is written after every event. The loop has one call of `update`, whose code is most of the
    machine code.
    """
    course = ring.course[0]
    ahead = whole(NO_HINT)
    code = whole(DONE)
    while True:
        leaves = (course.window != NO_WINDOW) & (course.held > course.window)
        if (not leaves) & (course.event >= len(scores)):
            break
        if 2 * nodes.state[0].count > len(nodes.key):  # AddNext adds at most one node in every gap
            code = whole(NEEDS_NODES)
            break
        if leaves:
            key, label, hint = release(ring)
            step = whole(-1)
        else:
            key = key_of(scores[at(course.event)])
            label = whole(labels[at(course.event)])
            code = whole(obstacle(tree, ring, key, sign))
            if code != DONE:
                break
            step = whole(sign)
            hint = ahead
            ahead = look_ahead(tree, ring, scores, course.event + 1)
        index = update(tree, key, label, step, hint)
        if index == NOT_FOUND:
            code = whole(MISSING)
            break
        follow(tree, nodes, key, label, step)
        if not leaves:
            course.event += 1
            if course.window != NO_WINDOW:
                hold(ring, key, label, index, whole(0))
        if (course.event > 0) & (course.window != NO_WINDOW) & (course.held <= course.window):
            estimates[at(course.event - 1)] = estimate(tree, nodes)
    nodes.state[0].pairs2 = approximate_pairs2(nodes)
    return code
