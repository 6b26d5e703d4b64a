"""McNemar's test of two classifiers over the same instances.

One form is for one look at a stream, the other for any number of looks.

Both count the discordant instances: those that one classifier got wrong and the other right. `mcnemar` has a
p-value for a single look. `McnemarEvidence` has a p-value that holds at all looks at once.

Sources: Bifet et al. 2015, section 3 (no continuity correction); Ville 1939 (the bound of a bettor's wealth).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy  # parts of scipy take up to .5 s of processor time to import, each when it is first used

from ..errors import InputError


@dataclass(frozen=True)
class McnemarTest:
    """Counts of instances that only one of two classifiers got wrong, and their test.

    statistic  sign(a - b) (a - b)^2 / (a + b): positive if b is better. Its absolute value is chi-squared
               with one degree of freedom if both have the same error rate
    """

    only_a_wrong: float
    only_b_wrong: float
    statistic: float
    p_value: float


def mcnemar(only_a_wrong: float, only_b_wrong: float) -> McnemarTest:
    """Test two classifiers by the numbers of instances that only one of them got wrong. O(1).

    only_a_wrong, only_b_wrong  how many instances only a, or only b, got wrong

    No continuity correction, as in the paper. Raises InputError for counts below zero.

    >>> mcnemar(10, 30)
    McnemarTest(only_a_wrong=10, only_b_wrong=30, statistic=-10.0, p_value=0.001565402258002549)
    """
    a, b = _count("only_a_wrong", only_a_wrong), _count("only_b_wrong", only_b_wrong)
    if a + b == 0:
        return McnemarTest(only_a_wrong, only_b_wrong, 0.0, 1.0)
    statistic = math.copysign((a - b) ** 2 / (a + b), a - b)
    return McnemarTest(only_a_wrong, only_b_wrong, statistic, float(scipy.special.chdtrc(1, abs(statistic))))


def _count(name: str, value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"{name}={value!r}: give how many instances, from 0")
    return float(value)


@dataclass
class McnemarEvidence:
    """McNemar's test for any number of looks at a stream: its p-value holds at all moments together.

    Under the null, the next discordant instance is an error of a or of b with probability 1/2 each, whatever
    came before. E = 2^n B(a + 1/2, b + 1/2) / B(1/2, 1/2), n = a + b, is the wealth of a bettor who begins
    with 1 and mixes all other probabilities by Jeffreys' prior. E ever exceeds 1/p with probability at most p
    (Ville). So p = min(1, 1 / max E).

    only_a_wrong, only_b_wrong  the instances so far that only a, or only b, got wrong
    greatest                    the natural logarithm of the greatest E so far

    >>> evidence = McnemarEvidence()
    >>> [round(evidence.update(*counts), 4) for counts in ((0, 5), (1, 0), (0, 9), (8, 3))]
    [0.127, 0.127, 0.0061, 0.0061]
    """

    only_a_wrong: int = 0
    only_b_wrong: int = 0
    greatest: float = 0.0

    def update(self, only_a_wrong: int, only_b_wrong: int) -> float:
        """Count more discordant instances, and return the p-value. O(1).

        only_a_wrong, only_b_wrong  the numbers of these instances that only a, or only b, got wrong

        E is not computed between two calls, which costs a little power but no validity.
        """
        a, b = _count("only_a_wrong", only_a_wrong), _count("only_b_wrong", only_b_wrong)
        if a != int(a) or b != int(b):
            raise InputError(f"{only_a_wrong!r} and {only_b_wrong!r} are no counts; give whole numbers")
        self.only_a_wrong += int(a)
        self.only_b_wrong += int(b)
        a, b = self.only_a_wrong, self.only_b_wrong
        betaln = scipy.special.betaln
        now = (a + b) * math.log(2) + betaln(a + 0.5, b + 0.5) - betaln(0.5, 0.5)
        self.greatest = max(self.greatest, float(now))
        return self.p_value

    @property
    def p_value(self) -> float:
        """The p-value now; it never rises."""
        return math.exp(-self.greatest)
