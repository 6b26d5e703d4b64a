"""The names of the measures that are asked for."""

from __future__ import annotations

from ..errors import ConfigError
from ..rows.measure_table import (
    COSTLY_MEASURES,
    EVIDENCE_MEASURES,
    MEASURE_TABLE,
    MEASURES,
    PROBABILITY_MEASURES,
)


def named_measures(
    asked: tuple[str, ...] | str | None, *, probabilities: bool, evidence: bool = False
) -> tuple[str, ...]:
    """Return the names of the measures that were asked for, in the order of columns.

    Raises ConfigError for an unknown name.

    asked          names, "all", or None for all but `COSTLY_MEASURES`. "auc", "ks" and "polynomial_auc"
                   include the measures that belong to them
    probabilities  whether scores are probabilities; if not, the names of `PROBABILITY_MEASURES` are left out
    evidence       whether there is evidence; if not, the names of `EVIDENCE_MEASURES` are left out, else they
                   are always there
    """
    unfit = (*(() if probabilities else PROBABILITY_MEASURES), *(() if evidence else EVIDENCE_MEASURES))
    if asked is None:
        return tuple(name for name in MEASURES if name not in (*COSTLY_MEASURES, *unfit))
    wanted = {name for name in EVIDENCE_MEASURES if name not in unfit}
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    for name in names:
        if name == "all":
            wanted.update(name for name in MEASURES if name not in unfit)
        elif name not in MEASURES:
            raise ConfigError(f"measure {name!r} is not known; there are {', '.join(MEASURES)}, and all")
        elif name in unfit and name in EVIDENCE_MEASURES:
            raise ConfigError(
                f"measure {name!r} needs the AUC that the model must have: give it with evidence_below=0.8 "
                "(--evidence-below 0.8)"
            )
        elif name in unfit:
            raise ConfigError(
                f"measure {name!r} needs scores that are probabilities: say so with probabilities=True "
                "(--probabilities)"
            )
        else:
            wanted.update(each.name for each in MEASURE_TABLE if name in (each.name, each.beside))
    if not names:
        raise ConfigError("measures=(): name at least one, or leave it out for the usual ones")
    return tuple(name for name in MEASURES if name in wanted)
