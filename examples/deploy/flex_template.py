"""A Flex Template for Dataflow: jobs of `rocsteady evaluate` that are started by a form, or by one request.

In the image, Dataflow's launcher runs this file with the parameters of the template and Beam's options:

    python flex_template.py --source=gs://BUCKET/*.csv --output=gs://BUCKET/rows/ --runner=DataflowRunner ...

Here, the file writes the template, which belongs in Cloud Storage:

    python examples/deploy/flex_template.py spec REGISTRY/rocsteady-dataflow:0.1.0 > rocsteady.json

The parameters are the options of `rocsteady evaluate`, as its parser declares them, without those of
`NOT_THERE`. A parameter has "_" where its option has "-". An option that may be repeated takes several values
with ";" between them, so none of these values may contain ";".
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rocsteady.core.errors import ConfigError
from rocsteady.core.process.console import say
from rocsteady.pipelines.arguments import Argument, Group
from rocsteady.pipelines.evaluate.parser import EVALUATE

NOT_THERE = frozenset(
    (
        "alert_exec", "alert_post", "follow", "otlp", "prometheus", "prometheus_models", "reference",
        "report", "runner", "title", "until_idle",
    )
)  # fmt: skip
"""Options for files and programs of the machine that runs the command. The launcher gives the runner."""

RENAMED = {"sources": "source", "labels": "label_source"}
"""Parameters with another name than their option. The launcher gives the labels of the job as --labels."""

BETWEEN = ";"
TRUE, FALSE = "true", "false"
IMAGE = "sdk_container_image"

_URL = "[A-Za-z][A-Za-z0-9+.-]+://[^;]+"
_WHOLE = "[0-9]+"
REGEXES = {
    "source": f"{_URL}(;{_URL})*",
    "label_source": f"{_URL}(;{_URL})*",
    "output": _URL,
    "dead_letters": _URL,
    "curves": _URL,
    "alerts": _URL,
    "control": _URL,
    "export_state": _URL,
    "import_state": _URL,
    "shards": _WHOLE,
    "cache_bytes": _WHOLE,
    "window": "(last|fading):[0-9].*|adaptive(:.+)?|all",
    "every": "[0-9].*",
    IMAGE: "[^ ]+",
}
"""What a value is, for a form to check. `rocsteady evaluate` checks the rest when the launcher runs it."""

_HELP = {
    "source": "URLs or globs of files, such as gs://BUCKET/day-*.parquet (.csv .csv.gz .parquet .jsonl "
    ".jsonl.gz), or of topics, kafka://host:port/topic",
    "output": "URL of a file (.csv .parquet .jsonl), of a folder, gs://BUCKET/rows/ with its slash, or of a "
    "topic, kafka://host:port/topic; where a topic is read without an end, a folder or a topic",
    IMAGE: "the image of the workers, which is the template's own",
}


def declared() -> Iterator[tuple[str, Argument, str]]:
    """Yield each parameter's name, its option of `rocsteady evaluate`, and the heading of the option."""
    for part in EVALUATE:
        heading, options = (part.heading, part.options) if isinstance(part, Group) else ("", (part,))
        for option in options:
            for argument in getattr(option, "options", (option,)):  # those of an Either, or one
                name = argument.names.split()[-1].lstrip("-").replace("-", "_")
                if name not in NOT_THERE:
                    yield RENAMED.get(name, name), argument, heading


def template(image: str) -> dict[str, Any]:
    """Return the template whose launcher and workers run in an image."""
    own = {
        "name": IMAGE, "label": "Image", "helpText": _HELP[IMAGE], "isOptional": False, "paramType": "TEXT",
        "regexes": [_anchored(IMAGE)], "defaultValue": image,
    }  # fmt: skip
    return {
        "image": image,
        "sdkInfo": {"language": "PYTHON"},
        "metadata": {
            "name": "rocsteady evaluate",
            "description": "How well classifiers rank and decide: exact streaming measures, for every model",
            "streaming": True,
            "supportsAtLeastOnce": False,
            "supportsExactlyOnce": True,
            "parameters": [*(_parameter(*each) for each in declared()), own],
        },
    }


def _parameter(name: str, argument: Argument, heading: str) -> dict[str, Any]:
    text = argument.about.replace("%(default)s", argument.default or "").replace("%%", "%")
    text = _HELP.get(name, text) + f" (several: with {BETWEEN!r} between them)" * _is_several(argument)
    made: dict[str, Any] = {
        "name": name,
        "label": f"{name} ({argument.metavar})" if argument.metavar else name,
        "helpText": text,
        "isOptional": name not in ("source", "output"),
        "paramType": "TEXT",
    }
    if heading:
        made["groupName"] = heading
    if argument.default is not None:
        made["defaultValue"] = argument.default
    if name in REGEXES:
        made["regexes"] = [_anchored(name)]
    if argument.takes == "nothing":
        made |= {"paramType": "BOOLEAN", "defaultValue": FALSE}
    elif argument.choices:
        made |= {"paramType": "ENUM", "enumOptions": [{"value": choice} for choice in argument.choices]}
    return made


def _anchored(name: str) -> str:
    return f"^({REGEXES[name]})$"


def _is_several(argument: Argument) -> bool:
    return argument.takes == "words" or argument.takes.startswith("repeated")


def command_of(arguments: Sequence[str]) -> list[str]:
    """Return the words of `rocsteady` for what the launcher says. Raises ConfigError.

    An empty value is a parameter that was not filled in. Other names are Beam's options, and are kept.
    """
    parameters = {name: argument for name, argument, _ in declared()}
    sources: list[str] = []
    words: list[str] = []
    for said in arguments:
        flag, _, value = said.partition("=")
        name = flag.removeprefix("--")
        argument = parameters.get(name)
        if name == "labels":
            words.append(f"--job_labels={value}")
        elif argument is None:
            words.append(said)
        elif argument.takes == "nothing":
            if value.lower() not in (TRUE, FALSE, ""):
                raise ConfigError(f"parameter {name} {value!r}: give {TRUE} or {FALSE}")
            words += [argument.names] * (value.lower() == TRUE)
        elif value:
            values = value.split(BETWEEN) if _is_several(argument) else [value]
            if argument.is_positional:
                sources += values
            else:
                words += [f"{argument.names.split()[-1]}={each}" for each in values]
    if not re.match(_anchored("source"), BETWEEN.join(sources)):
        raise ConfigError(
            f"parameter source {BETWEEN.join(sources)!r}: give URLs of files or topics, such as "
            "gs://BUCKET/day-*.csv"
        )
    return ["evaluate", *sources, *words]


def main(arguments: Sequence[str]) -> int:
    """Write the template, or run `rocsteady evaluate` for the launcher; return the exit status."""
    if arguments[:1] == ["spec"]:
        if len(arguments) != 2:
            say("give the name of the image: spec REGISTRY/rocsteady-dataflow:0.1.0")
            return 2
        print(json.dumps(template(arguments[1]), indent=2))
        return 0
    from rocsteady.pipelines.cli import main as rocsteady

    try:
        return rocsteady(command_of(arguments))
    except ConfigError as mistake:
        say(mistake)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
