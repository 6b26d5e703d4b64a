"""The Dockerfile's steps, against the repository: what it copies is there, and what it runs can be run."""

from __future__ import annotations

import re
import shlex
import tomllib

import rocsteady as rs
from rocsteady.pipelines.cli import parse

from tests.support import ROOT

PLACE = "/opt/rocsteady/source/"
TEXT = (ROOT / "examples" / "deploy" / "Dockerfile").read_text("utf-8")
STEPS = [
    step.split(maxsplit=1)
    for step in re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
    if step
]
KEPT = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def commands():
    """Return the commands of all RUN steps, each as words."""
    return [shlex.split(part) for name, text in STEPS if name == "RUN" for part in text.split("&&")]


def test_the_image_is_of_the_beam_that_ci_installs_and_named_by_our_version():
    pinned = re.search(r"^apache-beam==(.+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    (base, *_) = [text for name, text in STEPS if name == "FROM"]
    assert base == f"apache/beam_python3.11_sdk:{pinned[1]} AS worker"
    assert len(re.findall(rf"rocsteady(?:-dataflow)?:{re.escape(rs.__version__)} \.", TEXT)) == 2


def test_what_is_installed_is_in_the_repository_and_gets_into_the_image():
    copied = [text for name, text in STEPS if name == "COPY" and "--from" not in text]
    assert copied == [f". {PLACE.rstrip('/')}"]
    for name in KEPT:
        assert (ROOT / name).exists(), name
    needed = {"pyproject.toml", "__init__.py", "py.typed", "constraints.txt", "examples/deploy"}
    needed |= {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]}
    packages = {name.split(".")[1] for name in PROJECT["tool"]["setuptools"]["packages"] if "." in name}
    assert needed | packages == {*KEPT}


def test_each_step_is_a_command_that_can_be_run():
    programs = [words[0] for words in commands()]
    assert programs == ["pip", "rocsteady", "chmod", "pip"]
    for words in commands():
        if words[0] == "pip":
            assert words[words.index("-c") + 1] == f"{PLACE}constraints.txt"
            extra = re.fullmatch(rf"{PLACE.rstrip('/')}\[(\w+)\]", words[-1])[1]
            assert extra in PROJECT["project"]["optional-dependencies"]
        if words[0] == "rocsteady":
            command, options, rest = parse(words[1:])
            assert (command.name, options.compile, options.no_job, rest) == ("doctor", True, True, [])


def test_the_launcher_finds_the_program_of_the_template():
    variables = dict(part.split("=") for name, text in STEPS if name == "ENV" for part in text.split())
    place = variables["FLEX_TEMPLATE_PYTHON_PY_FILE"]
    assert place.startswith(PLACE)
    assert (ROOT / place.removeprefix(PLACE)).is_file()
    assert variables["NUMBA_CPU_NAME"] == "generic"
    assert variables["ROCSTEADY_CACHE_DIR"] in {word for words in commands() for word in words}
