"""rocsteady's measures by river's conventions, for users of river: `rocsteady.river` is this room.

`metrics` has the metrics, which this room hands on, `rolling` their common base, `class_window` the window of
scores of each class, `decision_window` that of predicted classes, `score_window` that of one score.
"""

from .metrics import *  # noqa: F403
from .metrics import __all__ as __all__
