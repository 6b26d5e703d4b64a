"""rocsteady's measures by river's conventions, for users of river: `rocsteady.river` is this room.

`metrics` has the metrics, which this room hands on. `rolling` has their common base. `class_window` has the
window of scores of each class, `decision_window` the window of predicted classes, `score_window` the window
of one score.
"""

from .metrics import *  # noqa: F403
from .metrics import __all__ as __all__
