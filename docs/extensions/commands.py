"""The commands as Markdown, generated from the declarations that the parser is made of.

Every argument has a heading of its own, so that it has a link: `commands/evaluate.md#--window`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from textwrap import dedent

from rocsteady.pipelines.arguments import Argument, Either, Group
from rocsteady.pipelines.commands import COMMANDS, Command

from .markdown import block, code, prose, sentence, table

_DEFAULT = re.compile(r" \[([^\[\]]*)\](?=[;.]|$)")
"""The default in a help text: "a weight [each counts 1]"."""


def commands_markdown() -> str:
    """Return the table of all commands, each with a link to its page."""
    return table(
        ["command", "what it does"],
        [
            [f"[`rocsteady {command.name}`](commands/{command.name}.md)", prose(command.summary)]
            for command in COMMANDS
        ],
    )


def command_markdown(name: str) -> str:
    """Return the page of a command, without its title."""
    command = next(command for command in COMMANDS if command.name == name)
    parts = [prose(command.about or command.summary), *_body(command, name, "##")]
    for action in command.actions:
        path = f"{name} {action.name}"
        parts += [f"## rocsteady {path}", prose(sentence(action.summary)), *_body(action, path, "###")]
    return "\n\n".join(parts)


def _body(command: Command, path: str, heading: str) -> Iterator[str]:
    """Yield usage, examples and arguments of a command or an action."""
    yield block(command.usage(f"rocsteady {path}"), "text")
    if path.count(" ") == 0:  # the actions of a command share its examples
        yield from _examples(command.epilog)
    plain = [each for each in command.arguments if not isinstance(each, Group)]
    if plain:
        yield f"{heading} Arguments"
        for argument in plain:
            yield from _argument(argument, heading + "#")
    for group in command.arguments:
        if isinstance(group, Group):
            yield f"{heading} {sentence(group.heading)[:-1]}"
            if group.about:
                yield prose(" ".join(group.about.split()))
            for option in group.options:
                yield from _options(option, heading + "#")


def _options(option: Argument | Either, heading: str) -> Iterator[str]:
    if isinstance(option, Argument):
        yield from _argument(option, heading)
        return
    for each in option.options:
        yield from _argument(each, heading)
        others = ", ".join(code(other.names) for other in option.options if other is not each)
        yield f"Not together with {others}."


def _argument(argument: Argument, heading: str) -> Iterator[str]:
    """Yield the heading of an argument, the form of its value with its default, and its text."""
    about, default = _without_default(argument)
    if argument.is_positional:
        yield f"{heading} {code(_value(argument))}"
    else:
        names = argument.names.split()
        yield f"{heading} {code(names[-1])}"
        facts = [code(f"{', '.join(names)} {_value(argument)}".strip())]
        facts += [f"default: {default}"] if default else []
        facts += ["required"] if argument.required else []
        facts += ["repeatable"] if argument.takes == "repeated value" else []
        facts += ["takes one value or several"] if argument.takes == "repeated values" else []
        yield "; ".join(facts)
    if text := about.removesuffix("; repeatable"):
        yield prose(sentence(text))


def _without_default(argument: Argument) -> tuple[str, str]:
    """Return the help text of an argument without its default, and the default as Markdown."""
    about = " " + argument.about.replace("%%", "%")
    if argument.default is not None:
        return about.replace(" [%(default)s]", "").strip(), code(argument.default)
    default = "".join(prose(found) for found in _DEFAULT.findall(about)[:1])
    return _DEFAULT.sub("", about, count=1).strip(), default


def _value(argument: Argument) -> str:
    if argument.takes == "nothing":
        return ""
    if argument.choices:
        return "|".join(argument.choices)
    return argument.metavar or argument.names.split()[-1].lstrip("-").replace("-", "_").upper()


def _examples(epilog: str) -> Iterator[str]:
    """Yield the end of a help text: captions and commands of its examples, then its remarks."""
    heading, *lines = epilog.strip().splitlines()
    yield f"**{heading[:-1].capitalize()}**"
    for kind, group in groupby(lines, key=_kind):
        part = [*group]
        if kind == "caption":
            yield prose(sentence(part[0].strip()[:-1]))[:-1] + ":"
        elif kind == "command":
            yield block(dedent("\n".join(part)), "bash")
        elif kind == "remark":
            yield prose(" ".join(part))


def _kind(line: str) -> str:
    """Return what a line of an epilog is."""
    if not line.startswith("  "):
        return "remark" if line else "nothing"
    return "caption" if line.endswith(":") else "command"
