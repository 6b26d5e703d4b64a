"""AUC of a sliding window, estimated from a compressed list of its scores (Tatti 2018).

Invariant, after every event: the list is (1 + epsilon)-compressed, so that the estimate is within
auc * epsilon / 2 of the AUC and the list has O((log k) / epsilon) nodes. How: `compressed_list`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Int8Array
from ..errors import InputError, MissingEventError
from ..events.inputs import as_labels, as_scores
from ..kernels.records import empty_records, zero_record
from ..kernels.rings import unrolled
from ..score_tree.layout import scores_of
from ..score_tree.slide import COURSE, DONE, HELD, MISSING, NO_WINDOW, Ring
from ..score_tree.store import refuse_beyond_limit, refuse_stop
from ..score_tree.tree import ScoreTree
from .compressed_list import ENDS, NEEDS_NODES, empty_list, run, with_room
from .threshold_queries import CompressedList, checked_epsilon

_NO_ESTIMATES: FloatArray = np.empty(0)


class CompressedAuc:
    """The AUC of a changing set of events, to within a relative error of epsilon / 2 (Tatti 2018).

    epsilon  |estimate - auc| <= auc epsilon / 2 after every event; 0 is exact, and slow.
    reverse  |estimate - auc| <= (1 - auc) epsilon / 2 instead, the better bound if the AUC is above a half.
             With `reverse` the error falls by more than the bound does. Without it, most negatives of a good
             classifier lie in the last and largest group, all with an error of one sign.

    An event costs O(log k + s) of k events and s = `size` nodes, which are O((log k) / epsilon), and a
    further O(log k) for each node that joins the list (`nodes_added`). When an event comes, at most one node
    joins. When an event goes, at most one node joins in every group. In a window of
    1,000 one node joins every seventh event, in a window of 10,000 one node every fiftieth. (The paper's list
    P would make the O(log k) an O(1), at the cost of a second descent for every negative.)

    When to use it: to study the method of the paper, or for its list, a ROC curve of `size` points with
    certified error (`nodes`). For the AUC alone the exact tree (`ScoreTree`, `ModelEvaluator`) is the better
    choice at every size of the window. The tree is exact, and takes .12, .20 and .33 us an event in windows
    of 100, 10,000 and 100,000. `CompressedAuc` takes .21, .28 and .40 with epsilon 0.1, since it needs a tree
    to find its nodes, and that tree already has the exact sum. (Both are far faster than the O(k) scan with
    which the paper compares: see docs/papers/tatti2018.md.) Weighted events in another ordered store need no
    CompressedAuc: `estimate_auc` asks such a store some queries.

    >>> auc = CompressedAuc(epsilon=0.1)
    >>> auc.insert([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> auc.auc(), len(auc)
    (0.875, 4)
    >>> auc.remove(0, 0.1)
    >>> auc.auc()
    0.75
    """

    def __init__(self, epsilon: float = 0.1, reverse: bool = False) -> None:
        self._tree = ScoreTree(keeps_hull=False)
        self._list = empty_list(64, int(not reverse), checked_epsilon(epsilon))
        self._ring = Ring(empty_records(1, HELD), zero_record(COURSE))
        self._course["window"] = NO_WINDOW

    @property
    def epsilon(self) -> float:
        """Twice the greatest relative error of the estimate."""
        return float(self._list.state["epsilon"][0])

    @property
    def reverse(self) -> bool:
        """Whether the error is relative to 1 - auc, not to auc."""
        return int(self._list.state["own"][0]) == 0

    @property
    def size(self) -> int:
        """Number of nodes of the compressed list, its two ends included.

        At most 2 log(m) / log(1 + epsilon) + 4; m is the number of events of the class that is grouped.
        """
        return int(self._list.state["count"][0])

    @property
    def nodes_added(self) -> int:
        """Number of nodes added so far because a group had become too large (the paper's AddNext)."""
        return int(self._list.state["added"][0])

    def __repr__(self) -> str:
        kind = ", reverse=True" if self.reverse else ""
        return f"<CompressedAuc(epsilon={self.epsilon:g}{kind}) of {len(self):,} events, {self.size} nodes>"

    def __len__(self) -> int:
        return len(self._tree)

    def insert(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        """Add an event, or arrays of them. O(log k + size) each.

        Raises InputError for a NaN, for an invalid label, and if events came by `slide`; CapacityError beyond
        2,496,000 events. The set is then unchanged.
        """
        y, s = self._events("insert", labels, scores)
        refuse_beyond_limit(len(self) + len(y))
        self._apply(y, s, 1)

    def remove(self, labels: npt.ArrayLike, scores: npt.ArrayLike) -> None:
        """Remove an event, or arrays of them. O(log k + size) each, and more for nodes that join (see above).

        Raises MissingEventError, an InputError, if an event is not in the set: no event is then removed.
        """
        y, s = self._events("remove", labels, scores)
        removed = self._apply(y, s, -1)
        if removed < len(y):
            self._apply(y[:removed], s[:removed], 1)
            raise MissingEventError(
                f"remove: no event of label {y[removed]} and score {s[removed]} is there (position "
                f"{removed} of the batch); nothing was removed"
            )

    def slide(self, labels: npt.ArrayLike, scores: npt.ArrayLike, window: int) -> FloatArray:
        """Let events come in the order given, and the oldest events go.

        Return the estimate after every event.

        labels, scores: arrays of one length, of any length, applied in one compiled call. window: how many
        events stay; the next call may have another window, and goes on from the state at the end of this
        call. The result is float64, NaN if a class is missing. Raises InputError as `insert` does, and if
        events came by `insert`.

        >>> CompressedAuc(epsilon=0.1).slide([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8], window=3)
        array([ nan, 1.  , 0.75, 0.75])
        """
        y = as_labels(labels)
        s = as_scores(scores, len(y))
        if isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 1:
            raise InputError(f"window: {window!r}; give a whole number of events, at least 1")
        held = int(self._course["held"])
        if held < len(self):
            raise InputError(
                "slide: events came by insert, in no order; let a CompressedAuc of its own slide"
            )
        window = int(window)
        most = max(held, min(window, held + len(y)) + 1)  # an event comes before the oldest goes
        refuse_beyond_limit(most)
        self._make_room_for(most)
        estimates = np.empty(len(y))
        self._course["window"] = window
        try:
            self._run(y, s, 1, estimates)
        finally:
            self._course["window"] = NO_WINDOW
        return estimates

    def auc(self) -> float | None:
        """Return the estimate; None without both classes. O(1)."""
        positives, negatives = self._tree.positives, self._tree.negatives
        if not (positives and negatives):
            return None
        pairs2 = int(self._list.state["pairs2"][0])
        all_pairs2 = 2 * positives * negatives
        return (all_pairs2 - pairs2 if self.reverse else pairs2) / all_pairs2

    def nodes(self) -> CompressedList:
        """Return the nodes of the list, without its ends, from the highest score down.

        O(size).

        `own` is the class that is grouped: the positives, or the negatives with `reverse`.
        """
        inner = slice(ENDS // 2, self.size - ENDS // 2)
        above, other_above, own_tied, other_tied = (
            column[inner].astype(np.float64) for column in self._list[1:-1]
        )
        totals = float(self._tree.positives), float(self._tree.negatives)
        own, other = totals[::-1] if self.reverse else totals
        scores = scores_of(~self._list.key[inner])
        return CompressedList(scores, above, other_above, own_tied, other_tied, own, other)

    @property
    def _course(self) -> Any:
        return self._ring.course[0]

    def _events(
        self, name: str, labels: npt.ArrayLike, scores: npt.ArrayLike
    ) -> tuple[Int8Array, FloatArray]:
        """Return one event, or many events, as arrays."""
        if int(self._course["held"]):
            raise InputError(
                f"{name}: events came by slide, which lets them go; use a CompressedAuc of its own"
            )
        y = as_labels(np.atleast_1d(np.asarray(labels)))
        return y, as_scores(scores, len(y))

    def _apply(self, labels: Int8Array, scores: FloatArray, sign: int) -> int:
        """Insert or remove a batch; return how many of its events were applied."""
        code = self._run(labels, scores, sign, _NO_ESTIMATES)
        applied = int(self._course["event"])
        if code != MISSING:
            refuse_stop(code, scores, applied)
        return applied

    def _run(self, labels: Int8Array, scores: FloatArray, sign: int, estimates: FloatArray) -> int:
        """Run the kernel to the end of a batch; make room whenever the kernel needs room."""
        self._course["event"] = 0
        while True:
            records = self._tree.records
            code = run(records, self._ring, self._list, labels, scores, sign, estimates)
            if code == NEEDS_NODES:
                self._list = with_room(self._list, 2 * len(self._list.key))
            elif code in (DONE, MISSING) or not self._tree.make_room(code):
                return code

    def _make_room_for(self, events: int) -> None:
        """Make the ring large enough for so many events; its oldest event comes first."""
        old = self._ring.events
        if events <= len(old):
            return
        held = int(self._course["held"])
        room = empty_records(max(events, 2 * len(old)), HELD)
        room[:held] = unrolled(old, int(self._course["oldest"]), held)
        self._ring = Ring(room, self._ring.course)
        self._course["oldest"] = 0
