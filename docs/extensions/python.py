"""The public Python names as Markdown, generated from signatures and docstrings.

A name has a heading and a description of Sphinx's Python domain, so that types in signatures are links. A
keyword that a `TypedDict` declares (`**choices: Unpack[...]`) is shown as a parameter. Its default and its
description come from the settings that have a field of its name.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ForwardRef

import rocsteady
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.table import TableSettings
from rocsteady.transforms.events.fields import EventFields

from .definitions import Definition, definition_of, names_in
from .docstrings import described, markdown_of
from .markdown import code

SETTINGS = (EvaluatorSettings, TableSettings, EventFields, JoinSettings)
"""The classes of settings whose fields are keywords of other names."""

_PACKAGE = "rocsteady"
_LONGEST = 60
"""The most characters of a default that a signature shows."""

_CODE_SPAN = re.compile(r"(?<!\[)`(?:rs\.|rocsteady\.)?([A-Za-z]\w*(?:\.\w+)?)(\(\))?`")


def names_markdown(*names: str) -> str:
    """Return the descriptions of names of `rocsteady`, or of "module:name" for names that it lacks."""
    return "\n\n".join(_described(name) for name in names)


def value_of(name: str) -> Any:
    """Return a name of `rocsteady`, of `rocsteady.river`, or the value of "module:name"."""
    home, _, inner = name.rpartition(":")
    if home:
        return getattr(import_module(f"{_PACKAGE}.{home}"), inner)
    value: Any = rocsteady
    for part in name.split("."):
        value = getattr(value, part)
    return value


def public_names() -> list[str]:
    """Return every public name; of `rs.river` the names of its classes."""
    plain = [name for name in dir(rocsteady) if name != "river"]
    return [*plain, *(f"river.{name}" for name in rocsteady.river.__all__)]


def members(value: Any) -> dict[str, Any]:
    """Return the public methods and properties of a class by name.

    Those of the package's bases are among them, unless the pages describe the base.
    """
    found: dict[str, Any] = {}
    fields = getattr(value, "_fields", ())
    for base in value.__mro__:
        if not _is_ours(base) or (base is not value and base in described_classes()):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in found or name in fields or not _is_member(member):
                continue
            if not (inspect.getdoc(member) or "").startswith("See `"):
                found[name] = member
    return found


def _is_ours(value: Any) -> bool:
    return str(value.__module__).startswith(f"{_PACKAGE}.")


@cache
def described_classes() -> frozenset[Any]:
    """Return the classes that the pages describe."""
    return frozenset(value for name in documented() if inspect.isclass(value := value_of(name)))


def _is_member(value: Any) -> bool:
    kinds = (property, cached_property, classmethod, staticmethod)
    return inspect.isfunction(value) or isinstance(value, kinds)


# ---- signatures


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter as the page shows it.

    annotation  its type, as the source writes it
    module      the module in which the names of the annotation have their meaning
    about       the description of a keyword that a `TypedDict` declares
    """

    name: str
    annotation: str = ""
    default: str = ""
    module: str = ""
    about: str = ""

    def __str__(self) -> str:
        typed = f": {self.annotation}" if self.annotation else ""
        equals = (" = " if typed else "=") + self.default if self.default else ""
        return f"{self.name}{typed}{equals}"


def parameters(value: Any, owner: Any = None) -> list[Parameter]:
    """Return the parameters of a callable; `owner` is the class of a method."""
    try:
        signature = inspect.signature(value)
    except ValueError:  # exceptions
        return []
    given = [*signature.parameters.values()][owner is not None :]
    module = getattr(value, "__module__", "")
    found: list[Parameter] = []
    starred = False
    for each in given:
        if each.kind is each.KEYWORD_ONLY and not starred:
            found.append(Parameter("*"))
            starred = True
        starred = starred or each.kind is each.VAR_POSITIONAL
        annotation = _annotation(each.annotation)
        if each.kind is each.VAR_KEYWORD and annotation.startswith("Unpack["):
            found += _keywords(value, annotation[len("Unpack[") : -1])
            continue
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        found.append(Parameter(f"{stars}{each.name}", annotation, _default(value, each), module))
    return found


def _keywords(value: Any, name: str) -> Iterator[Parameter]:
    """Yield the keywords that the `TypedDict` of this name declares, in the module of the callable."""
    function = value.__init__ if inspect.isclass(value) else value
    own: dict[str, Any] = getattr(value, "defaults", {})
    for keyword, (annotation, module) in _declared(function.__globals__[name]).items():
        default, about = "...", ""
        for settings in SETTINGS:
            field = {each.name: each for each in dataclasses.fields(settings)}.get(keyword)
            if field is not None:
                default = repr(own.get(keyword, _field_default(field)))
                about = described(inspect.getdoc(settings) or "")[keyword]
                break
        yield Parameter(keyword, _annotation(annotation), default, module, about)


def _declared(keywords: Any) -> dict[str, tuple[Any, str]]:
    """Return the keywords of a `TypedDict` and its bases: each with its type and the module of its type."""
    found: dict[str, tuple[Any, str]] = {}
    for base in getattr(keywords, "__orig_bases__", ()):
        found |= _declared(base)
    for name, annotation in getattr(keywords, "__annotations__", {}).items():
        found.setdefault(name, (annotation, keywords.__module__))
    return found


def _default(value: Any, parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return ""
    text = repr(parameter.default)
    if text == "<factory>":
        field = next(each for each in dataclasses.fields(value) if each.name == parameter.name)
        text = repr(_field_default(field))
    if isinstance(parameter.default, int) and not isinstance(parameter.default, bool):
        text = f"{int(parameter.default):_}"
    return "..." if text.startswith("<") or "\n" in text or len(text) > _LONGEST else text


def _field_default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _annotation(annotation: Any) -> str:
    """Return an annotation as it is written in the source."""
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


# ---- Markdown


def _described(name: str) -> str:
    """Return the heading and the description of a name, with those of its methods."""
    value = value_of(name)
    shown = name.rpartition(":")[2]
    docstring = inspect.getdoc(value) or ""
    given = parameters(value)
    said = described(docstring)
    more = {each.name: each.about for each in given if each.about and each.name not in said}
    body = [markdown_of(docstring, linked, more)]
    signature = f"{shown}({', '.join(map(str, given))})"
    if not inspect.isclass(value):
        kind, signature = "function", f"{signature} -> {_returns(value)}"
    elif issubclass(value, Warning | Exception):
        kind, signature = "exception", shown
    else:
        kind = "class"
        body += [_member(value, inner, member) for inner, member in members(value).items()]
    note = ["Other names take or return it; it is not an attribute of `rs`."] if ":" in name else []
    if bases := [base for base in getattr(value, "__bases__", ()) if base in described_classes()]:
        body.insert(1, f"A kind of {' and '.join(linked(code(base.__name__)) for base in bases)}.")
    return "\n\n".join([f"## {shown}", *note, _directive(kind, signature, "\n\n".join(body))])


def _member(owner: Any, name: str, member: Any) -> str:
    """Return the description of a method or a property of a class."""
    function = _function(member)
    about = markdown_of(inspect.getdoc(member) or "", linked)
    returns = _returns(function)
    if isinstance(member, property | cached_property):
        return _directive("property", name, about, f":type: {returns}", fence="`````")
    options = [f":{type(member).__name__}:"] if isinstance(member, classmethod | staticmethod) else []
    given = parameters(function, None if isinstance(member, staticmethod) else owner)
    signature = f"{name}({', '.join(map(str, given))}) -> {returns}"
    return _directive("method", signature, about, *options, fence="`````")


def _directive(kind: str, signature: str, body: str, *options: str, fence: str = "``````") -> str:
    """Return a description of Sphinx's Python domain, without an entry in the page's contents."""
    lines = [f"{fence}{{py:{kind}}} {signature}", f":module: {_PACKAGE}", ":no-contents-entry:", *options]
    return "\n".join([*lines, "", body, fence])


def _function(member: Any) -> Callable[..., Any]:
    """Return the function of a method or a property."""
    for name in ("fget", "func", "__func__"):
        if (function := getattr(member, name, None)) is not None:
            return function  # type: ignore[no-any-return]
    return member  # type: ignore[no-any-return]


def _returns(function: Any) -> str:
    """Return the type that a function returns, as the source writes it."""
    return _annotation(inspect.signature(function).return_annotation)


def linked(text: str) -> str:
    """Return Markdown in which the public names of code spans are links to their descriptions."""
    return _CODE_SPAN.sub(_link, text)


def _link(span: re.Match[str]) -> str:
    name, _, member = span[1].partition(".")
    if name not in _full_names():
        name = name.removesuffix("s")  # `MeasureRows`
    if (full := _full_names().get(name)) is None:
        return span[0]
    value = value_of(full)
    if member and not (inspect.isclass(value) and member in members(value)):
        return span[0]
    return f"[{span[0]}](#{_PACKAGE}.{f'{name}.{member}' if member else name})"


# ---- types that signatures name


def types_markdown() -> str:
    """Return the descriptions of the package's types that signatures name and that are no public names."""
    found: dict[str, Definition] = {}
    waiting = [named for name in documented() for named in _types_named(value_of(name))]
    shown = {name.rpartition(":")[2] for name in documented()}
    while waiting:
        name, module = waiting.pop()
        if name in shown or name in found or (definition := definition_of(name, module)) is None:
            continue
        found[name] = definition
        if definition.value is None:
            waiting += _types_named(getattr(import_module(definition.module), name), fields_only=True)
        else:
            waiting += [(inner, definition.module) for inner in names_in(definition.value)]
    return "\n\n".join(_type(found[name]) for name in sorted(found))


def documented() -> list[str]:
    """Return the names that the pages of docs/reference/python describe, in their order."""
    pages = sorted((Path(__file__).parents[1] / "reference" / "python").glob("*.md"))
    blocks = [
        block for page in pages for block in re.findall(r"\{generated\} names (.*)", page.read_text("utf-8"))
    ]
    return [name for block in blocks for name in block.split()]


def _types_named(value: Any, *, fields_only: bool = False) -> list[tuple[str, str]]:
    """Return the names of types in the signatures of a value and its members, each with its module."""
    found = [(each.annotation, each.module) for each in parameters(value)]
    functions = [] if inspect.isclass(value) else [value]
    if inspect.isclass(value) and not fields_only:
        for member in members(value).values():
            function = _function(member)
            found += [(each.annotation, function.__module__) for each in parameters(function)]
            functions.append(function)
    found += [(_returns(function), function.__module__) for function in functions]
    return [(name, module) for annotation, module in found if annotation for name in names_in(annotation)]


def _type(definition: Definition) -> str:
    """Return the description of a type."""
    about = markdown_of(definition.about, linked) if definition.about else ""
    if definition.value is not None:
        written = " | ".join(linked(code(part)) for part in definition.value.split(" | "))
        return _directive("data", definition.name, f"{written}\n\n{about}")
    value = getattr(import_module(definition.module), definition.name)
    is_record = dataclasses.is_dataclass(value) or hasattr(value, "_fields")
    given = f"({', '.join(map(str, parameters(value)))})" if is_record else ""
    return _directive("class", f"{definition.name}{given}", about)


@cache
def _full_names() -> dict[str, str]:
    """Return the names that pages describe, by the names that they have there."""
    return {name.rpartition(":")[2]: name for name in documented()}
