"""The transforms for Beam YAML: settings are text and numbers, outputs have names.

A YAML pipeline names the transforms in its providers. Beam then fetches no package, but uses the installed
package:

    providers:
      - type: python
        config: {}
        transforms:
          EvaluateModels: rocsteady.transforms.yaml_transforms.EvaluateModelsYaml
          JoinLabels: rocsteady.transforms.yaml_transforms.JoinLabelsYaml
          Alert: rocsteady.transforms.yaml_transforms.AlertYaml

Texts have the form of the command line: `window: last:7d`, `every: 1h`, `cost: severity`, `slices: [carrier,
"carrier,origin"]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from ..core.errors import ConfigError
from .evaluate.alert import Alert
from .evaluate.join_labels import JoinedLabels, JoinLabels
from .evaluate.models import EvaluateModels

Outputs = dict[str, beam.PCollection[Any]]


class EvaluateModelsYaml(beam.PTransform[beam.PCollection[Any], Outputs]):
    """`EvaluateModels`; the outputs are rows, dead_letters, late and duplicates.

    The settings are those of `EvaluateModels`, with the same names and texts. A cross of slices is "a,b".
    Raises ConfigError for an invalid setting.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        for name in settings.keys() & {"curves", "curves_points"}:
            raise ConfigError(f"{name}: Beam YAML has no output for curves; leave it out")
        self._models = _made(EvaluateModels, _read(settings))

    def expand(self, events: Any) -> Outputs:
        """Evaluate the events."""
        result = _one(events, "EvaluateModels") | "Evaluate" >> self._models
        return {name: getattr(result, name) for name in ("rows", "dead_letters", "late", "duplicates")}


class JoinLabelsYaml(beam.PTransform[Any, Outputs]):
    """`JoinLabels`; the inputs are predictions and labels, or one input with both.

    The outputs are those of `JoinedLabels`.

    The output `events` has packed events for EvaluateModels, whose order must then be "time:D". D is
    label_lead (ttl if label_lead is not given), plus an eighth of ttl, plus lateness. With second_label
    "last", D is longer by ttl. `JoinLabels.order` computes this order.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._join = _made(JoinLabels, _read(settings))

    def expand(self, inputs: Any) -> Outputs:
        """Join the inputs."""
        if isinstance(inputs, Mapping):
            if {*inputs} != {"predictions", "labels"} and len(inputs) != 1:
                raise ConfigError(
                    f"JoinLabels: its inputs are {', '.join(map(str, inputs))}; name them predictions and "
                    "labels, or give one that has both"
                )
            both = len(inputs) == 2
            inputs = (inputs["predictions"], inputs["labels"]) if both else next(iter(inputs.values()))
        joined: JoinedLabels = inputs | "Join" >> self._join
        return joined._asdict()


class AlertYaml(beam.PTransform[beam.PCollection[Any], beam.PCollection[Any]]):
    """`Alert`; rules are texts in the form of the command line: a list, or a single text."""

    def __init__(self, rules: Sequence[str] | str) -> None:
        super().__init__()
        texts = [rules] if isinstance(rules, str) else rules
        self._alert = Alert(*texts)

    def expand(self, rows: Any) -> beam.PCollection[Any]:
        """Watch the rows."""
        alerts: beam.PCollection[Any] = _one(rows, "Alert") | "Alert" >> self._alert
        return alerts


def _read(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the crosses of slices as tuples, the form that the Python transforms take."""
    read = dict(settings)
    if (slices := read.get("slices")) is not None:
        texts = [slices] if isinstance(slices, str) else slices
        read["slices"] = [tuple(text.split(",")) if isinstance(text, str) else tuple(text) for text in texts]
    return read


def _made(transform: Any, settings: Mapping[str, Any]) -> Any:
    try:
        return transform(**settings)
    except TypeError as error:
        _, _, what = str(error).partition("() ")
        raise ConfigError(f"{transform.__name__}: {what or error}") from None


def _one(inputs: Any, whose: str) -> Any:
    """Return the single input, which Beam YAML passes alone or in a mapping by name."""
    if isinstance(inputs, Mapping):
        if len(inputs) != 1:
            raise ConfigError(
                f"{whose}: it has {len(inputs)} inputs, {', '.join(map(str, inputs))}; give one"
            )
        return next(iter(inputs.values()))
    return inputs
