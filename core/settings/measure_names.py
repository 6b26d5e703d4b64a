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
    return tuple(name for name in MEASURES if name in wanted)


def with_and_without(
    asked: tuple[str, ...] | str | None,
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return what is asked for in two parts: names, or None for the usual measures, and texts with values.

    Raises ConfigError if nothing is asked for.

    >>> with_and_without(("auc", "tpr_at_fpr:0.05"))
    (('auc',), ('tpr_at_fpr:0.05',))
    """
    if asked is None:
        return None, ()
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    if not names:
        raise ConfigError("measures=(): name at least one, or leave it out for the usual ones")
    texts = tuple(name for name in names if isinstance(name, str) and ":" in name)
    return tuple(name for name in names if name not in texts), texts


def value_of(text: str) -> tuple[str, str, str]:
    """Return the measure of a text with a value, the setting that the value replaces, and the value's text.

    Raises ConfigError for a measure that takes no value.

    >>> value_of("partial_auc:0:0.2")
    ('partial_auc', 'partial_fpr', '0:0.2')
    """
    name, _, value = text.partition(":")
    settings = {measure.name: measure.parameter for measure in MEASURE_TABLE if measure.parameter}
    if name not in settings:
        raise ConfigError(f"measure {text!r}: {name!r} takes no value; {', '.join(settings)} do")
    return name, settings[name], value


def column_order(text: str) -> tuple[int, list[float]]:
    """Return the key by which texts with values are sorted: the order of measures, then of values."""
    name, *values = text.split(":")
    return MEASURES.index(name), list(map(float, values))
