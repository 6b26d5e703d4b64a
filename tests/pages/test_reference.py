"""The reference is whole: every command, option, public name, parameter and column stands on a page."""

from __future__ import annotations

import argparse
import doctest
import inspect
import re
from functools import cached_property
from pathlib import Path

import pytest
import rocsteady as rs
from extensions import columns, docstrings, markdown, python
from extensions.definitions import definition_of, names_in
from extensions.generated import filled
from rocsteady.core.rows.columns import COLUMNS
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.pipelines.commands import COMMANDS, command_parser
from rocsteady.pipelines.report.data import GROUPS

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference"


def page(name: str) -> str:
    """Return a page of the reference with its generated parts."""
    return filled((REFERENCE / f"{name}.md").read_text())


# ---- commands


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the last spelling of every option of a parser and of its actions, in order."""
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [option for part in action.choices.values() for option in options_of(part)]
        elif action.option_strings and action.dest != "help":
            found.append(action.option_strings[-1])
    return found


def test_every_command_has_a_page_and_every_page_is_of_a_command():
    pages = {path.stem for path in (REFERENCE / "commands").glob("*.md")}
    assert pages == {command.name for command in COMMANDS}
    listed = page("commands")
    assert all(f"[`rocsteady {name}`](commands/{name}.md)" in listed for name in pages)
    assert all(f"\ncommands/{name}\n" in listed for name in pages)


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_a_page_has_every_option_of_the_parser_and_no_other(command):
    _, parsers = command_parser()
    headings = re.findall(r"^#+ `(-.*)`$", page(f"commands/{command}"), re.MULTILINE)
    assert sorted(headings) == sorted(options_of(parsers[command]))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_page_has_the_examples_of_the_help_and_its_texts(command):
    text = page(f"commands/{command.name}")
    shown = " ".join("".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL)).split())
    lines = command.epilog.splitlines()
    examples = [line for line in lines if line.startswith("  ") and not line.endswith(":")]
    assert examples
    assert all(" ".join(line.split()) in shown for line in examples)
    assert "%(" not in text
    assert "%%" not in text


def test_an_option_shows_its_value_default_and_choices():
    text = page("commands/evaluate")
    assert "### `--every`\n\n`--every N|1h`; default: `100`\n\nA row every N events" in text
    assert "`--time-unit s|ms|us|ns`; default: `s`" in text
    assert "`--slice COL[,COL]`; repeatable" in text
    assert "`--model-name NAME`; default: the file's name" in text
    assert "Not together with `--model-name`." in text
    assert "`-o, --output PATH`; required" in page("commands/rows")


def test_no_page_names_an_option_of_a_command_that_is_gone():
    _, parsers = command_parser()
    known = {f"rocsteady {name}": {*options_of(parser), "--help"} for name, parser in parsers.items()}
    unknown = [
        (path.name, option)
        for path in DOCS.rglob("*.md")
        for name, options in known.items()
        for target, option in re.findall(r"commands/(\w+)\.md#(-[\w-]+)", path.read_text())
        if f"rocsteady {target}" == name and option not in options
    ]
    assert unknown == []


# ---- Python


def test_every_public_name_stands_on_one_page():
    documented = [name for name in python.documented() if ":" not in name]
    assert sorted(documented) == sorted(python.public_names())
    assert len(documented) == len(dir(rs)) - 1 + len(rs.river.__all__)  # each but `river` itself


def test_every_public_method_is_described():
    texts = "\n".join(page(f"python/{path.stem}") for path in (REFERENCE / "python").glob("*.md"))
    described = {*re.findall(r"\{py:(?:method|property)\} (\w+)", texts)}
    classes = [value for name in python.documented() if inspect.isclass(value := python.value_of(name))]
    assert len(classes) > 80
    assert {name for value in classes for name in python.members(value)} == described


def examples_of(name: str) -> list[doctest.DocTest]:
    """Return the examples of a name and its members; they know the public names."""
    value = python.value_of(name)
    docs = {name: value, **(python.members(value) if inspect.isclass(value) else {})}
    known = {each: getattr(rs, each) for each in rs.__all__} | {name.rpartition(":")[2]: value}
    parse = doctest.DocTestParser().get_doctest
    parsed = [
        parse(inspect.getdoc(found) or "", dict(known), label, None, 0) for label, found in docs.items()
    ]
    return [test for test in parsed if test.examples]


@pytest.mark.parametrize("name", python.documented())
def test_examples_run_as_a_reader_would_type_them(name):
    tests = examples_of(name)
    for test in tests:
        said: list[str] = []
        assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)


def unexplained():
    """Yield the parameters of public names that no text of their page explains."""
    for name in python.documented():
        value = python.value_of(name)
        texts, callables = [inspect.getdoc(value) or ""], [(name, value, None)]
        for member, found in python.members(value).items() if inspect.isclass(value) else ():
            texts.append(inspect.getdoc(found) or "")
            if not isinstance(found, property | cached_property):
                owner = None if isinstance(found, staticmethod) else value
                callables.append((f"{name}.{member}", python._function(found), owner))
        text = "\n".join(texts)
        for shown, function, owner in callables:
            for parameter in python.parameters(function, owner):
                word = parameter.name.strip("*")
                is_measure = word in columns.MEANINGS and "auc" in getattr(value, "_fields", ())
                if word and not (parameter.about or is_measure or re.search(rf"\b{word}\b", text)):
                    yield shown, parameter


def test_every_parameter_is_explained_by_a_text_or_by_a_type_of_its_own():
    arrays = {"FloatArray", "Int8Array", "Int64Array", "Values"}
    missing = [
        (shown, str(parameter))
        for shown, parameter in unexplained()
        if not any(
            type_ not in arrays and definition_of(type_, parameter.module)
            for type_ in names_in(parameter.annotation)
        )
    ]
    assert missing == []


def test_keywords_of_a_typed_dict_are_parameters_with_defaults_and_texts():
    given = {each.name: each for each in python.parameters(rs.EvaluateModels)}
    assert str(given["threshold"]) == "threshold: float = 0.5"
    assert str(given["shards"]) == "shards: int | None = 64"
    assert given["at_fpr"].about == "the false positive rate of tpr_at_fpr, in [0, 1]."
    assert [*given][:4] == ["*", "settings", "clock", "cache_bytes"]
    text = python.names_markdown("EvaluateModels")
    assert "`at_fpr`\n: the false positive rate of `tpr_at_fpr`" in text


def test_types_that_are_no_public_names_are_described():
    text = python.types_markdown()
    assert "{py:data} Window\n" in text
    assert "[`LastEvents`](#rocsteady.LastEvents)" in text
    assert "{py:class} DelongTest(" in text


def test_a_docstring_becomes_markdown():
    text = docstrings.markdown_of(
        """Return a < b, see `ConfigError`.

        a, b   numbers, such as "x_y" or 2 * 3,
               and more
        longer text in one column

        - a point with --order
          and its end

            rows | beam.Map(print)

        >>> 1 + 1
        2
        """,
        python.linked,
    )
    assert text.splitlines() == [
        "Return a \\< b, see [`ConfigError`](#rocsteady.ConfigError).",
        "",
        "`a`, `b`",
        ': numbers, such as `"x_y"` or 2 \\* 3, and more',
        "",
        "`longer`",
        ": text in one column",
        "",
        "- a point with `--order`",
        "  and its end",
        "",
        "```python",
        "rows | beam.Map(print)",
        "```",
        "",
        "```pycon",
        ">>> 1 + 1",
        "2",
        "```",
    ]


# ---- columns, formats, errors


KINDS = (
    "row",
    "class-row",
    "roll-up",
    "alert",
    "curve-point",
    "dead-letter",
    "comparison",
    "mean",
    "summary",
)


def test_every_column_of_a_row_stands_once_on_its_page():
    anchors = re.findall(r"^\| `(\w+)`\{#\w+\} \|", page("columns"), re.MULTILINE)
    assert sorted(anchors) == sorted(COLUMNS)
    assert set(MEASURES) < set(columns.MEANINGS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_of_every_table_has_a_meaning(kind):
    schema, about = columns.described_columns(kind)
    missing = {name for name in schema.names if name not in about}
    assert missing == ({*columns.NUMBER_COLUMNS} if kind == "row" else set())
    assert f"{{generated}} columns {kind}\n" in (REFERENCE / "columns.md").read_text()


def test_every_group_of_measures_stands_on_the_page_of_columns():
    groups = re.findall(r"\{generated\} measures (\w+)", (REFERENCE / "columns.md").read_text())
    assert sorted(groups) == sorted(GROUPS)


def test_every_schema_is_linked():
    text = (REFERENCE / "columns.md").read_text() + (REFERENCE / "formats.md").read_text()
    for schema in (DOCS / "schemas").glob("*.json"):
        assert text.count(f"(../schemas/{schema.name})") == 2


def test_the_page_of_errors_has_every_exception():
    text = page("errors")
    exceptions = [name for name in rs.__all__ if name.endswith(("Error", "Warning"))]
    assert exceptions
    assert all(f"| [`{name}`](python/errors.md#{name.lower()}) |" in text for name in exceptions)


def test_values_and_options_in_a_text_become_code():
    assert markdown.sentence("last:N events") == "last:N events."
    assert markdown.prose("kafka://host:9092/rows, .csv.gz") == "`kafka://host:9092/rows`, `.csv.gz`"
