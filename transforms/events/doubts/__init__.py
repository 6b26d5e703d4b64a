"""Warnings in the log of likely mistakes in event times and labels, as soon as the mistakes occur.

Each mistake has a module: `units` numbers that probably count another unit, `formats` a format of times that
swaps days and months, `outlying` times in files that lie far from all others, `ahead` an event of a stream so
far ahead of the wall clock that later events count as late, `labels` a label such as "NA" that counts as
negative, and `classes` labels and predictions with too few classes in common. A warning does not change the
job's results.

A worker warns of each column once, whatever the number of files and batches: `once` keeps the warnings.
"""

from . import classes, once


def reset() -> None:
    """Forget the warnings, before a job starts."""
    once.forget()
    classes.forget()


def told() -> list[str]:
    """Return this process's warnings on units and labels since the last `reset`, at the end of a job."""
    classes.tell_classes_at_end()
    return once.kept()
