"""The distributions of misclassification costs over which an H-measure averages the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import ConfigError
from .durations import is_positive
from .windows import number_text, read_number


@dataclass(frozen=True)
class BetaCost:
    """An H-measure where the cost of a false positive has the distribution Beta(a, b) on [0, 1] (Hand 2009).

    a, b  numbers above 0. Beta(2, 2) has its mode at equal costs

    >>> str(BetaCost(2, 2))
    'beta:2,2'
    """

    a: float = 2.0
    b: float = 2.0

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            value = getattr(self, name)
            if not is_positive(value):
                raise ConfigError(
                    f"BetaCost({name}={value!r}): a Beta distribution needs {name} > 0 and finite"
                )
            object.__setattr__(self, name, float(value))

    def __str__(self) -> str:
        return f"beta:{number_text(self.a)},{number_text(self.b)}"

    def beta(self, prevalence: float) -> tuple[float, float]:  # noqa: ARG002  all costs have this method
        """Return (a, b), for any share of positives `prevalence`."""
        return self.a, self.b


@dataclass(frozen=True)
class UniformCost:
    """An H-measure where every cost of a false positive is equally likely: the distribution is Beta(1, 1).

    >>> str(UniformCost())
    'uniform'
    """

    def __str__(self) -> str:
        return "uniform"

    def beta(self, prevalence: float) -> tuple[float, float]:  # noqa: ARG002  all costs have this method
        """Return (1, 1), for any share of positives `prevalence`."""
        return 1.0, 1.0


@dataclass(frozen=True)
class SeverityCost:
    """An H-measure by severity ratio: the cost of a false positive divided by the cost of a false negative.

    ratio  a number above 0, "balanced", or None

    With a number r, the costs follow Beta(2, 1 + 1/r), whose mode is r / (1 + r). With None, r is positives
    over negatives in the window, so the costs follow Beta(2, 1 + negatives/positives). None is the default of
    R's hmeasure (Hand & Anagnostopoulos 2014). "balanced" is the other recommendation of these authors:
    Beta(1 + share of positives, 1 + share of negatives).

    >>> str(SeverityCost()), str(SeverityCost(0.1)), str(SeverityCost("balanced"))
    ('severity', 'severity:0.1', 'severity:balanced')
    """

    ratio: float | Literal["balanced"] | None = None

    def __post_init__(self) -> None:
        if self.ratio is None or self.ratio == "balanced":
            return
        if not is_positive(self.ratio):
            raise ConfigError(
                f"SeverityCost(ratio={self.ratio!r}): a severity ratio is a number > 0, 'balanced' or None"
            )
        object.__setattr__(self, "ratio", float(self.ratio))

    def __str__(self) -> str:
        if self.ratio is None:
            return "severity"
        return "severity:balanced" if self.ratio == "balanced" else f"severity:{number_text(self.ratio)}"

    def beta(self, prevalence: float) -> tuple[float, float]:
        """Return (a, b) for `prevalence`, a share of positives strictly between 0 and 1."""
        if self.ratio == "balanced":
            return 1.0 + prevalence, 2.0 - prevalence
        ratio = prevalence / (1.0 - prevalence) if self.ratio is None else self.ratio
        return 2.0, 1.0 + 1.0 / ratio


Cost = BetaCost | UniformCost | SeverityCost


def parse_cost(text: str) -> Cost:
    """Read a distribution of costs from a text.

    The text is such as `beta:2,2`, `uniform`, `severity`, `severity:0.1` or `severity:balanced`.

    >>> parse_cost("severity:0.1")
    SeverityCost(ratio=0.1)
    """
    kind, _, rest = text.partition(":")
    if kind == "beta" and rest.count(",") == 1:
        a, b = rest.split(",")
        return BetaCost(read_number(a, f"cost {text!r}"), read_number(b, f"cost {text!r}"))
    if text == "uniform":
        return UniformCost()
    if text == "severity":
        return SeverityCost()
    if text == "severity:balanced":
        return SeverityCost("balanced")
    if kind == "severity" and rest:
        return SeverityCost(read_number(rest, f"cost {text!r}"))
    raise ConfigError(
        f"cost {text!r} is not known; use beta:A,B, uniform, severity, severity:RATIO or severity:balanced"
    )
