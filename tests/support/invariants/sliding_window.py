"""A ScoreWindow that is driven by events: it plans the steps that `ScoreWindow.take` follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from rocsteady.core.events.inputs import as_labels, as_scores
from rocsteady.core.measures.steps import ENTERS, EVENT, ROW_DUE, Steps
from rocsteady.core.score_tree.tree import RANKING
from rocsteady.core.score_tree.tree_rows import Ask
from rocsteady.core.score_tree.window import ScoreWindow, keeps_hull_for


class SlidingWindow(ScoreWindow):
    """The window of the last `size` events, or of as many as are told, with a row every `stride` events."""

    def __init__(
        self, size: int | None, *, stride: int = 1, keeps_hull: bool | None = None, **choices: Any
    ) -> None:
        if keeps_hull is None:
            keeps_hull = keeps_hull_for(size or 1, stride)
        super().__init__(size, keeps_hull=keeps_hull, **choices)
        self.stride, self.seq = stride, 0

    def slide(
        self,
        labels: npt.ArrayLike,
        scores: npt.ArrayLike,
        leaving: npt.ArrayLike | None = None,
        ask: Ask = RANKING,
    ) -> Any:
        """Apply events in order; return the rows. `leaving`: how many go with each, without a size."""
        y = as_labels(labels)
        s = as_scores(scores, len(y))
        events = np.arange(len(y))
        flags = np.full(len(y), EVENT | ENTERS, np.int8)
        flags[(self.seq + 1 + events) % self.stride == 0] |= ROW_DUE
        gone = np.asarray(len(self) + events >= (self._size or 0) if leaving is None else leaving, np.int64)
        self.seq += len(y)
        return self.follow(y, s, Steps(events, flags, gone, np.empty(0, np.int64)), ask).view(np.recarray)
