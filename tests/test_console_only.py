"""Nothing in the package prints past core/process/console.py, which makes names from outside safe."""

import ast
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
ROOMS = ("core", "transforms", "pipelines", "runners")
WRITER = "core/process/console.py"

STREAMS = {
    "core/process/standard_streams.py": "opens closed streams, and writes data to stdout",
    "pipelines/cli.py": "swaps stderr for one without threads",
    "runners/submit.py": "swaps stderr for one without threads",
}
"""Modules that use sys.stdout or sys.stderr for more than to ask whether it is a terminal, and why."""

LOGGERS = {
    "core/process/imports.py": "drops a remark of Beam",
    "pipelines/cli.py": "the root logger gets the handler whose formatter is safe",
    "pipelines/evaluate/command.py": "the root logger gets the handler whose formatter is safe",
    "pipelines/monitoring/otlp.py": "silences the logger of OpenTelemetry while metrics are sent",
    "runners/preflight.py": "sets a level of Beam's logger",
    "runners/submit.py": "the root logger is silenced after an interruption",
    "runners/servers/__main__.py": "sets the level of the root logger",
    "runners/servers/packages.py": "sets a level of Beam's logger",
    "transforms/kafka/client.py": "makes a logger that writes nothing",
}
"""Modules that use loggers other than those of `console.logger`, and why."""

LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


@cache
def nodes():
    """Return calls, names and attributes: (module, node, the attribute that is asked of the node).

    A module without any of the words below cannot print; parsing all of them takes seconds.
    """
    found = []
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            name = path.relative_to(PACKAGE).as_posix()
            text = path.read_text("utf-8")
            if not re.search(r"print|std(out|err)|logg|argparse|/dev/|os\.", text):
                continue
            asked = {}
            for node in ast.walk(ast.parse(text)):  # from the outside in
                if isinstance(node, ast.Attribute):
                    asked[node.value] = node.attr
                if isinstance(node, ast.Call | ast.Name | ast.Attribute | ast.ImportFrom):
                    found.append((name, node, asked.get(node)))
    return found


def is_of(node, module, names):
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == module
        and node.attr in names
    )


def test_only_the_writer_prints():
    printing = [
        f"{name}:{node.lineno}"
        for name, node, _ in nodes()
        if isinstance(node, ast.Name) and node.id in ("print", "pprint")
    ]
    assert printing == []


def test_only_listed_modules_touch_the_streams():
    streams = {"stdout", "stderr", "__stdout__", "__stderr__"}
    found = {name for name, node, asked in nodes() if is_of(node, "sys", streams) and asked != "isatty"}
    imported = [
        each.name
        for _, node, _ in nodes()
        if isinstance(node, ast.ImportFrom) and node.module == "sys"
        for each in node.names
    ]
    assert found - {WRITER} == set(STREAMS)
    assert not streams & set(imported)


def test_only_listed_modules_write_to_the_standard_descriptors():
    found = [
        name
        for name, node, _ in nodes()
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("os.write", "open", "os.fdopen")
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value in (1, 2, "/dev/stdout", "/dev/stderr", "/dev/tty")
    ]
    assert found == ["core/state/compile_ahead.py"]  # its stdout is a pipe to the process that started it


def test_loggers_come_from_the_writer():
    makers = {"getLogger", "Logger", "basicConfig", "captureWarnings"} | LEVELS
    found = {name for name, node, _ in nodes() if is_of(node, "logging", makers)}
    assert found - {WRITER} == set(LOGGERS)


def test_a_log_message_is_a_constant_so_that_names_are_arguments():
    wrong = [
        f"{name}:{node.lineno}"
        for name, node, _ in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and "logger" in ast.unparse(node.func.value)
        and not isinstance(node.args[0], ast.Constant)
    ]
    assert wrong == []


def test_every_parser_is_one_whose_errors_are_safe():
    wrong = [
        f"{name}:{node.lineno}"
        for name, node, _ in nodes()
        if isinstance(node, ast.Call) and is_of(node.func, "argparse", {"ArgumentParser"})
    ]
    assert wrong == []
