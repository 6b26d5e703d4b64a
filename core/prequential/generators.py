"""Synthetic streams whose concepts change at known places: SEA, hyperplanes, RBF, LED, Agrawal.

river's generators make the instances; the module imports river only when instances are asked for.

Invariant
    A stream depends on its settings alone. If a stream is made in several shards, each shard makes the
    whole stream and yields only its own instances: a learner costs far more than making an instance does (4
    to 150 us). Moving concepts change with every instance; if each shard made only its own instances,
    concepts would drift apart. So a stream is the same, ids included, in any number of shards.

At a drift of width w at position p, the next concept takes over with probability 1 / (1 + exp(-4 (n - p) /
w)), as in MOA's concept drift streams; with w = 0 it takes over at once. The paper's LED(50000), SEA(50) and
SEA(50000) give widths (Bifet et al. 2015, Table 3). HYP(10,0.001) and RBF(50,0.001) say how many features or
centroids move, and how far with each instance.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ..errors import ConfigError
from ..ids.chances import seed_of
from ..process.imports import optional_module

SCHEME = "generate"
KINDS = ("sea", "hyperplane", "rbf", "led", "agrawal")
SHAPES = "sea[:WIDTH], led[:WIDTH], agrawal[:WIDTH], hyperplane[:FEATURES:CHANGE], rbf[:CENTROIDS:SPEED]"

_NOISE = {"sea": 0.1, "hyperplane": 0.05, "rbf": 0.0, "led": 0.1, "agrawal": 0.05}
_MOST_MOVING = {"hyperplane": 10, "rbf": 50}
_LED_DRIFTS = (1, 3, 5, 7)
_AGRAWAL = ("salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan")
_AGRAWAL_TEXT = ("elevel", "car", "zipcode")
_FEATURES = {"sea": 3, "hyperplane": 10, "rbf": 10, "led": 24}
_MAX_COUNT = 10**12

Instance = dict[str, Any]


@dataclass(frozen=True)
class GeneratedStream:
    """A stream of `count` instances.

    kind    one of KINDS
    count   how many instances the stream has
    seed    a whole number from 0; another seed makes another stream of the same kind
    drifts  ascending: the instances, counted from 0, at which a concept gives way to the next
    width   the width of each drift, in instances; see the module
    moving  how many features (hyperplane, of 10) or centroids (rbf, of 50) move with every instance
    speed   how far these features or centroids move
    noise   sea, hyperplane: the probability that a label is inverted; led: the probability that an attribute
            is inverted; agrawal: by how much attributes are perturbed. None: .1, .05, .1 and .05. rbf has no
            noise

    After the last concept the first concept follows again. Concepts are SEA's thresholds 8, 9, 7 and 9.5;
    Agrawal's functions 0 to 9; LED with 1, 3, 5 and 7 attributes exchanged; other hyperplanes; other
    centroids.

    >>> stream = GeneratedStream.parse("sea:50", count=1_000, seed=1)
    >>> stream.drifts, stream.width, stream.numbers, stream.classes
    ((250, 500, 750), 50, ('x0', 'x1', 'x2'), ('0', '1'))
    """

    kind: str
    count: int
    seed: int = 1
    drifts: tuple[int, ...] = ()
    width: int = 0
    moving: int = 0
    speed: float = 0.0
    noise: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"the stream {self.kind!r} is not known; there are {SHAPES}")
        for name, value, least, greatest in (
            ("count", self.count, 1, _MAX_COUNT),
            ("seed", self.seed, 0, (1 << 63) - 1),
            ("width", self.width, 0, _MAX_COUNT),
            ("moving", self.moving, 0, _MOST_MOVING.get(self.kind, 0)),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= greatest:
                raise ConfigError(
                    f"{self.kind}: {name}={value!r}; give a whole number from {least:,} to {greatest:,}"
                )
        are_places = all(isinstance(at, int) and 0 < at < self.count for at in self.drifts)
        if not are_places or list(self.drifts) != sorted(set(self.drifts)):
            raise ConfigError(
                f"{self.kind}: drifts={list(self.drifts)}; give numbers of instances in ascending order, "
                f"above 0 and below the count of {self.count:,}"
            )
        if not 0.0 <= self.speed <= 1.0:
            raise ConfigError(f"{self.kind}: a speed of {self.speed!r}; give a number from 0 to 1")
        if self.noise is not None and not 0.0 <= self.noise <= (0.0 if self.kind == "rbf" else 1.0):
            most = "rbf has none, leave it out" if self.kind == "rbf" else "give a number from 0 to 1"
            raise ConfigError(f"{self.kind}: noise={self.noise!r}; {most}")

    @classmethod
    def parse(
        cls, text: str, count: int, seed: int = 1, drifts: Sequence[int] | None = None, **choices: Any
    ) -> GeneratedStream:
        """Read a stream from the text by which the paper names it: `sea:50000`, `hyperplane:10:0.001`.

        SHAPES lists all forms.

        drifts  None: a drift at each quarter if a width is given, else no drift

        Raises ConfigError.
        """
        kind, *words = text.lower().split(":")
        if kind in _MOST_MOVING and len(words) == 2:
            choices |= {"moving": _number(text, words[0], int), "speed": _number(text, words[1], float)}
        elif kind not in _MOST_MOVING and len(words) == 1:
            if "width" in choices:
                raise ConfigError(f"the stream {text!r} says its width twice; leave out width=")
            choices["width"] = _number(text, words[0], int)
        elif words:
            raise ConfigError(f"the stream {text!r} is not understood; there are {SHAPES}")
        if drifts is None and "width" in choices:
            drifts = sorted({count * quarter // 4 for quarter in (1, 2, 3)} - {0})
        return cls(kind, count, seed, tuple(drifts or ()), **choices)

    @classmethod
    def of_url(cls, url: str) -> GeneratedStream:
        """Read `generate://sea:50?count=100000&seed=1&drift=50000,70000&width=50&noise=0.1`.

        Raises ConfigError.

        >>> GeneratedStream.of_url("generate://hyperplane:10:0.001?count=5000").moving
        10
        """
        parts = urlsplit(url)
        if parts.scheme != SCHEME or not parts.netloc or parts.path.strip("/"):
            raise ConfigError(
                f"{url!r} is no stream to generate: write {SCHEME}://NAME?count=N, NAME of {SHAPES}"
            )
        choices: dict[str, Any] = {}
        drifts: list[int] | None = None
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name == "drift":
                drifts = [*(drifts or ()), *(_number(url, word, int) for word in value.split(",") if word)]
            elif name in ("count", "seed", "width", "noise") and name not in choices:
                choices[name] = _number(url, value, float if name == "noise" else int)
            else:
                raise ConfigError(
                    f"{url!r}: {name!r} is not known or given twice; there are count, seed, "
                    "drift, width and noise"
                )
        if "count" not in choices:
            raise ConfigError(f"{url!r} does not say how many instances; add count=100000")
        return cls.parse(parts.netloc, drifts=drifts, **choices)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the features that are numbers."""
        if self.kind == "agrawal":
            return tuple(name for name in _AGRAWAL if name not in _AGRAWAL_TEXT)
        return tuple(f"x{place}" for place in range(_FEATURES[self.kind]))

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the features that are text."""
        return _AGRAWAL_TEXT if self.kind == "agrawal" else ()

    @property
    def classes(self) -> tuple[str, ...]:
        """All labels of the stream, as text."""
        return tuple("0123456789") if self.kind == "led" else ("0", "1")

    def instances(self, shard: int = 0, shards: int = 1) -> Iterator[Instance]:
        """Yield every `shards`-th instance from number `shard` on, in order.

        Each is a dict of its features by name, `label` (0 or 1; text for LED's ten classes), `id`
        ("seed-number") and `time`, its number, as seconds. Raises MissingPackageError if river is missing.
        """
        if not 0 <= shard < shards:
            raise ConfigError(f"shard {shard} of {shards}: shards are numbered from 0")
        names = _AGRAWAL if self.kind == "agrawal" else self.numbers
        texts = frozenset(self.texts)
        label_type: type = str if self.kind == "led" else int
        concepts: dict[int, Iterator[tuple[dict[Any, Any], Any]]] = {}
        chance = random.Random(seed_of(self.seed, "drift", 0))
        for number in range(self.count):
            concept = self._concept(number, chance.random())
            if concept not in concepts:
                concepts[concept] = iter(self._generator(concept))
            features, label = next(concepts[concept])
            if number % shards != shard:
                continue
            instance: Instance = {
                name: str(value) if name in texts else float(value)
                for name, value in zip(names, features.values(), strict=True)
            }
            instance["label"] = label_type(label)
            instance["id"] = f"{self.seed}-{number}"
            instance["time"] = number
            yield instance

    def _concept(self, number: int, chance: float) -> int:
        """Return the concept of an instance.

        One random number serves all drifts: a later drift needs a smaller number.
        """
        if not self.width:
            return sum(number >= at for at in self.drifts)
        return sum(chance < (1.0 + math.tanh(2.0 * (number - at) / self.width)) / 2.0 for at in self.drifts)

    def _generator(self, concept: int) -> Any:
        """Return the generator of river for a concept."""
        synth = optional_module("river.datasets.synth", "a generated stream")
        seed = seed_of(self.seed, self.kind, concept)
        noise = _NOISE[self.kind] if self.noise is None else self.noise
        if self.kind == "sea":
            return synth.SEA(variant=concept % 4, noise=noise, seed=seed)
        if self.kind == "agrawal":
            return synth.Agrawal(classification_function=concept % 10, perturbation=noise, seed=seed)
        if self.kind == "led":
            return synth.LEDDrift(
                seed=seed,
                noise_percentage=noise,
                irrelevant_features=True,
                n_drift_features=_LED_DRIFTS[concept % len(_LED_DRIFTS)],
            )
        if self.kind == "hyperplane":
            return synth.Hyperplane(
                seed=seed,
                n_features=10,
                n_drift_features=self.moving,
                mag_change=self.speed,
                noise_percentage=noise,
            )
        return synth.RandomRBFDrift(
            seed_model=seed,
            seed_sample=seed_of(self.seed, "rbf samples", concept),
            n_classes=2,
            n_features=10,
            n_centroids=50,
            change_speed=self.speed,
            n_drift_centroids=self.moving,
        )


def _number(text: str, word: str, kind: type) -> Any:
    try:
        return kind(word)
    except ValueError:
        wanted = "whole number" if kind is int else "number"
        raise ConfigError(f"{text!r}: {word!r} is no {wanted}; there are {SHAPES}") from None
