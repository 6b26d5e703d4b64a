"""The numbers that Bifet et al. 2015 print: tables 1, 2, 3 and 4."""

from __future__ import annotations

from rocsteady.core.prequential.folds import METHODS

from .bifet2015_runs import CHANGES
from .bifet2015_streams import STREAMS

CLASSIFIER_A = (77.98, 72.26, 76.95, 77.94, 72.23, 76.90, 77.93, 72.37, 76.93, 77.97)
CLASSIFIER_B = (77.91, 72.27, 76.97, 76.57, 71.63, 75.48, 75.75, 71.33, 74.54, 77.94)

Cells = dict[tuple[float, str], float]
"""By chance of noise and method."""


def _cells(text: str) -> Cells:
    keys = [(change, method) for change in CHANGES for method in METHODS]
    return dict(zip(keys, map(float, text.split()), strict=True))


TABLE_2: dict[tuple[str, bool], Cells] = {
    ("mcnemar", False): _cells(".71 .52 .66  .86 .80 .73  .88 .84 .75"),
    ("mcnemar", True): _cells(".77 .80 .42  .88 .94 .56  .90 .95 .58"),
    ("sign", False): _cells(".11 .11 .10  .77 .82 .44  .82 .88 .50"),
    ("sign", True): _cells(".12 .12 .09  .77 .83 .44  .82 .89 .50"),
    ("wilcoxon", False): _cells(".11 .11 .14  .79 .84 .51  .83 .90 .55"),
    ("wilcoxon", True): _cells(".11 .10 .19  .80 .84 .54  .83 .91 .59"),
}
"""Shares of rejections, by test and whether prequential; columns bootstrap, cv, split under each noise."""

SECONDS: dict[tuple[str, bool], tuple[float, float, float]] = {
    ("bootstrap", False): (883, 877, 900),
    ("bootstrap", True): (813, 820, 808),
    ("cv", False): (1105, 1121, 1148),
    ("cv", True): (1202, 1214, 1294),
    ("split", False): (415, 422, 421),
    ("split", True): (109, 111, 112),
}
"""Table 2, seconds of a run under each noise."""


def _by_stream(*rows: str) -> dict[str, Cells]:
    return dict(zip(STREAMS, map(_cells, rows), strict=True))


TABLE_3 = _by_stream(
    ".86 .64 .98  .97 .98 .98  .98 .99 .99",
    ".45 .16 .79  .99 .92 .88  1.0 1.0 .94",
    ".73 .45 .86  .82 .78 .98  .96 .99 1.0",
    ".92 .85 .96  .96 .92 1.0  .99 .96 1.0",
    ".67 .35 .88  .69 .39 .89  .70 .43 .89",
    ".68 .35 .89  .70 .41 .89  .71 .44 .89",
    ".61 .32 .61  1.0 1.0 1.0  1.0 1.0 1.0",
    ".61 .40 .83  1.0 1.0 1.0  1.0 1.0 1.0",
    ".89 .80 .36  .98 .98 .39  .99 .99 .40",
    ".26 .20 .36  .18 .43 .39  .20 .44 .39",
    ".88 .74 .36  .97 .96 .39  .98 .98 .40",
    ".76 .68 .37  .91 .76 .39  .91 .76 .41",
    ".89 .80 .36  .96 .92 .37  .98 .94 .40",
)
"""McNemar's test; its averages are those of table 2, not prequential."""

TABLE_4 = _by_stream(
    ".12 .10 .10   .99 1.0 .63  1.0 1.0 .97",
    ".12 .13 .14  1.0 1.0 .72  1.0 1.0 .98",
    ".08 .10 .10   .79 1.0 1.0  1.0 1.0 1.0",
    ".11 .09 .10   .82 .49 1.0  1.0 .99 1.0",
    ".11 .12 .14   .26 .27 .11   .36 .45 .12",
    ".10 .09 .09   .21 .29 .11   .32 .49 .11",
    ".09 .10 .13  1.0 1.0 1.0  1.0 1.0 1.0",
    ".13 .09 .11  1.0 1.0 1.0  1.0 1.0 1.0",
    ".11 .10 .32  1.0 1.0 .29  1.0 1.0 .33",
    ".14 .10 .30   .32 1.0 .33   .13 1.0 .29",
    ".12 .10 .32  1.0 1.0 .28  1.0 1.0 .28",
    ".10 .11 .31  1.0 .85 .31   .99 .86 .30",
    ".10 .09 .31  1.0 1.0 .32  1.0 1.0 .29",
)
"""Wilcoxon's signed ranks; its averages are those of table 2, prequential."""
