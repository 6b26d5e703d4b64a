"""The columns of class scores and of class labels, and the class of each column.

`p_*` names every column that begins with p_; the class is the text that the star stands for. In a list, the
class is the name of the column without the beginning that all names of the list share, up to a sign such as _
or a dot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ...core.errors import ConfigError
from ...core.process.near_names import near_names
from ...core.settings.classes import class_name, class_text

_KEYWORDS = "class_scores=", "multi_label="
_OPTIONS = "--class-scores ", "--multi-label "
_SIGNS = "_.-:/ "
"""The signs at which the common beginning of a list's names may end."""


def class_columns(name: str, asked: Any, there: Collection[str] | None = None) -> dict[str, str]:
    r"""Return the column of each class, by the class.

    name   the setting, for errors: "class_scores=", "--class-scores "
    asked  "p_*", "p_cat,p_dog", a list of names, or a mapping from classes to names. In text,
           "cat=score1,dog=score2" is such a mapping, and a comma, an equals sign or a backslash within a name
           has a backslash before it
    there  the columns of the input; None if they are not known before events come

    The classes of a star are sorted: numbers by value, then other names. Raises ConfigError for names that
    give no classes.

    >>> class_columns("class_scores=", "p_*", ["label", "p_dog", "p_cat"])
    {'cat': 'p_cat', 'dog': 'p_dog'}
    >>> class_columns("class_scores=", "p_cat,p_cow"), class_columns("class_scores=", "cat,cow")
    ({'cat': 'p_cat', 'cow': 'p_cow'}, {'cat': 'cat', 'cow': 'cow'})
    >>> class_columns("class_scores=", r"p a\, b,p c\=d")
    {'a, b': 'p a, b', 'c=d': 'p c=d'}
    """
    if isinstance(asked, str) and "*" in asked:
        return _checked(name, asked, _of_star(name, asked, there))
    if isinstance(asked, str):
        pairs = listed(asked)
        named = [(class_, column) for class_, column in pairs if class_ is not None]
        if not named:
            return _checked(name, asked, _of_list(name, asked, [column for _, column in pairs]))
        if len(named) < len(pairs):
            raise ConfigError(
                f"{name}{asked}: a class is named for some columns; give CLASS=COLUMN for all, or for none "
                r"(a comma or = in a name is written \, or \=)"
            )
        return _checked(name, asked, named)
    if isinstance(asked, Mapping) and asked:
        return _checked(name, asked, [(class_, str(column)) for class_, column in asked.items()])
    if isinstance(asked, set | frozenset):
        raise ConfigError(f"{name}{asked!r}: a set has no order, and classes have one; give a list")
    names = list(asked) if isinstance(asked, Iterable) else []
    return _checked(name, asked, _of_list(name, asked, names))


def listed(text: str) -> list[tuple[str | None, str]]:
    r"""Return (class, column) of each part of a list in text; the class of a part without a sign is None.

    A comma, an equals sign or a backslash with a backslash before it is part of a name.

    >>> listed(r"a\,b\=p=q,c\=d")
    [('a,b=p', 'q'), (None, 'c=d')]
    """
    parts: list[list[str]] = [[]]
    for token in re.findall(r"\\[\\,=]|.", text, re.DOTALL):
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    found = list[tuple[str | None, str]]()
    for tokens in parts:
        sign = max((place for place, token in enumerate(tokens) if token == "="), default=-1)
        names = [
            "".join(token[-1] for token in some) for some in (tokens[: max(sign, 0)], tokens[sign + 1 :])
        ]
        found.append((names[0] if sign >= 0 else None, names[1]))
    return found


def _of_star(name: str, asked: str, there: Collection[str] | None) -> list[tuple[str, str]]:
    before, _, behind = asked.partition("*")
    if "*" in behind or "," in asked or "=" in asked:
        raise ConfigError(f"{name}{asked!r}: give one name with one star, such as 'p_*', or a list of names")
    if there is None:
        raise ConfigError(
            f"{name}{asked!r}: the columns of this input are not known before events come; name them all, "
            "such as p_cat,p_dog"
        )
    found = re.compile(f"{re.escape(before)}(.+){re.escape(behind)}", re.DOTALL)
    pairs = [(match[1], column) for column in there if (match := found.fullmatch(column))]
    if not pairs:
        near = near_names(before or behind, there)
        hint = f" (is {near[0]!r} one of them?)" if near else ""
        raise ConfigError(f"{name}{asked!r}: no column fits{hint}; give a star for the name of the class")
    return sorted(dict(pairs).items(), key=lambda pair: by_value(pair[0]))


def by_value(name: str) -> tuple[bool, int, str]:
    """Return the key of a class that sorts whole numbers by value, before other names."""
    text = class_name(name)
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    return not is_number, int(text) if is_number else 0, text


def _of_list(name: str, asked: Any, names: list[Any]) -> list[tuple[str, str]]:
    if not names or not all(isinstance(each, str) and each for each in names):
        raise ConfigError(
            f"{name}{asked!r}: give a pattern such as 'p_*', or the names of columns such as p_cat,p_dog"
        )
    # all names begin with the text that the least and the greatest name share
    first, last = min(names), max(names)
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    length = max(first[:same].rfind(sign) for sign in _SIGNS) + 1 if len(names) > 1 else 0
    if any(len(each) == length for each in names):
        length = 0
    return [(each[length:], each) for each in names]


def _checked(name: str, asked: Any, pairs: list[tuple[Any, str]]) -> dict[str, str]:
    said, columns, named = name.strip(" ="), dict[str, str](), dict[str, str]()
    for given, column in pairs:
        class_ = class_name(given)
        if not class_ or not column:
            raise ConfigError(f"{name}{asked!r}: a class or its column has no name; name each")
        if (other := named.setdefault(class_text(given), column)) is not column or class_ in columns:
            raise ConfigError(
                f"{said}: the columns {other!r} and {column!r} are both of class {class_!r}; name one "
                "column for each class"
            )
        columns[class_] = column
    twice, times = Counter(columns.values()).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{said}: the column {twice!r} is named twice; name one column for each class")
    return columns


def class_roles(class_scores: Any, multi_label: Any, there: Collection[str] | None = None) -> dict[str, Any]:
    """Return the fields of `EventFields` that class scores and class labels give. Raises ConfigError.

    multi_label  the columns of labels, one for each class of the scores; None if an event is of one class
    """
    of_scores, of_labels = _KEYWORDS
    scores = class_columns(of_scores, class_scores, there)
    labels = None if multi_label is None else class_columns(of_labels, multi_label, there)
    return _roles(scores, labels, f"{of_labels}{multi_label!r}")


def class_roles_of_files(
    class_scores: str,
    multi_label: str | None,
    heads: Mapping[str, Collection[str]] | None,
    label_heads: Mapping[str, Collection[str]] | None,
) -> dict[str, Any]:
    """Return the fields of `EventFields` that the options of a command give. Raises ConfigError.

    heads        the columns of each file, by its name; None if they are not known
    label_heads  the columns of each file with labels: `heads`, unless labels have files of their own
    """
    of_scores, of_labels = _OPTIONS
    scores = _columns_of_files(of_scores, class_scores, heads)
    labels = None if multi_label is None else _columns_of_files(of_labels, multi_label, label_heads)
    return _roles(scores, labels, f"{of_labels}{multi_label!r}")


def _columns_of_files(option: str, asked: str, heads: Mapping[str, Collection[str]] | None) -> dict[str, str]:
    """Return the column of each class, which is the same in all files. Raises ConfigError."""
    if not heads:
        return class_columns(option, asked, None if heads is None else [])
    first, *others = heads
    columns = class_columns(option, asked, heads[first])
    for name in others:
        if class_columns(option, asked, heads[name]) != columns:
            raise ConfigError(
                f"{option}{asked}: {name} has columns of other classes than {first}; name the columns that "
                "all files have, such as p_cat,p_dog"
            )
    return columns


def _roles(scores: dict[str, str], labels: dict[str, str] | None, said: str) -> dict[str, Any]:
    """Return the fields of `EventFields` for columns of scores and of labels; `said` is for errors."""
    roles: dict[str, Any] = {"class_names": tuple(scores), "class_scores": tuple(scores.values())}
    if labels is None:
        return roles
    named = {class_text(class_): class_ for class_ in scores}
    labels = {named.get(class_text(class_), class_): column for class_, column in labels.items()}
    if scores.keys().isdisjoint(labels):
        raise ConfigError(
            f"{said}: the classes of scores are {', '.join(map(repr, scores))}, and those of labels "
            f"{', '.join(map(repr, labels))}; name the class of each column: CLASS=COLUMN,..."
        )
    for what, some, others in (("label", labels, scores), ("score", scores, labels)):
        if lacking := next((class_ for class_ in others if class_ not in some), None):
            raise ConfigError(
                f"{said}: class {lacking!r} has no column of its {what}; each class has a column of scores "
                "and one of labels"
            )
    return {**roles, "class_labels": tuple(labels[class_] for class_ in scores)}
