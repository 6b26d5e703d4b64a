"""The fenced blocks of a page in order: the language, the file and the printed text of each block."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from tests.support import ROOT

PAGES = {
    str(path.relative_to(ROOT)): path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
"""Every page by its path in the repository."""

NOTEBOOKS = {"docs/tutorials/notebook.md"}
"""Pages whose Python blocks are cells of one notebook: they share their variables."""

SLOW = {"docs/tutorials/stream-learners.md"}
"""Pages that are slow though all of their commands run in this process: they train learners."""

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`([\w.-]+\.(?:csv|json|jsonl|py|sh|toml|yaml))`:$")
"""The end of the line before a block that is a file."""

STATUS = re.compile(r"# exit status (\d+)$")
INSTALLS = re.compile(r"(python3? -m (venv|pip)|pip install|git clone|cd |mkdir \.\./|source |\. )")
"""Begins a line that prepares a reader's machine: the machine of the tests is prepared."""

PLAIN = re.compile(r"rocsteady |python3? [\w-]+\.py\b")
"""Begins a command that can run in this process."""

LACKING = {
    "kafka://": "a Kafka broker",
    "flink": "a Flink cluster",
    "dataflow": "an account at Google Cloud",
    "kubectl": "a cluster of Kubernetes",
    "systemctl": "systemd",
    "docker ": "Docker",
    "kafka-topics.sh": "a Kafka broker",
    "apache_beam.io.gcp": "an account at Google Cloud",
    "runners.servers": "packages of servers",
    "localhost:": "a server",
    "https://": "a server",
    "/opt/": "a folder of the machine's administrator, and two minutes",
    "demo --live": "a minute of training, and six of playing",
    "rocsteady-demo/": "what the demo leaves",
    "electricity.csv.gz": "a data set that is not in the repository",
}
"""Words of blocks that cannot run on a plain machine: what the machine lacks. Their commands are parsed."""

BEFORE = re.compile(r"\w+=.*|do|then|else|if|while|!|exec|time")
"""A word that may stand before a command's name: a variable, or a word of the shell."""


class Block(NamedTuple):
    """A fenced block. `file` is the name of the file that it is; `shown` the text block right behind it."""

    page: str
    line: int
    language: str
    text: str
    file: str | None
    shown: str | None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def lacking(self) -> str | None:
        """What a plain machine lacks to run the block."""
        return next((lack for word, lack in LACKING.items() if word in self.text), None)

    @property
    def status(self) -> int:
        """The exit status that the block's last line says."""
        match = STATUS.search(self.text.rstrip())
        return int(match.group(1)) if match else 0

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block that do not prepare the machine; a line that is continued is one."""
        return [line for line in self._lines if not INSTALLS.match(line)]

    @property
    def left_out(self) -> list[str]:
        """The lines of a shell block that prepare the machine."""
        return [line for line in self._lines if INSTALLS.match(line)]

    @property
    def _lines(self) -> list[str]:
        return [line for line in _joined(self.text) if line.strip() and not line.startswith("#")]

    @property
    def is_plain(self) -> bool:
        """Whether a shell block runs rocsteady and scripts alone, without anything that only a shell does."""
        return all(PLAIN.match(line) and _words(line) is not None for line in self.commands)

    @property
    def is_slow(self) -> bool:
        """Whether the block runs and starts a Python of its own."""
        if self.language != "bash" or self.file or self.lacking or self.is_plain:
            return False
        return any(re.search(r"\b(rocsteady|python3?) |\./", line) for line in self.commands)


def blocks_of(page: str) -> list[Block]:
    text = PAGES[page].read_text("utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, match.start()) + 1,
            match[1],
            match[2],
            name[1] if (name := NAMED.search(text[: match.start()].rstrip())) else None,
            match[3],
        )
        for match in FENCE.finditer(text)
    ]


def words_of(line: str) -> list[str]:
    """The words of a plain command."""
    words = _words(line)
    assert words is not None, line
    return words


def _words(line: str) -> list[str] | None:
    """The words of a line, None where a shell would do more than to split it."""
    words = _split(line)
    quoted_away = re.sub(r"'[^']*'", "", line.partition(" #")[0])
    if re.search(r"[|<>&;$`*?]", re.sub(r'"[^"$`]*"', "", quoted_away)):
        return None
    return words


def rocsteady_calls(text: str) -> list[list[str]]:
    """The arguments of every `rocsteady ...` in a shell block, without pipes and redirections."""
    found = []
    for line in _joined(text):
        if not re.search(r"(?:^|[\s|&;])rocsteady ", line):
            continue
        call: list[str] = []
        words = iter([*_split(line), ";"])
        for word in words:
            if word in "<>":
                next(words)
            elif set(word) <= set("|&;"):
                found.append(call)
                call = []
            elif call or not BEFORE.fullmatch(word):
                call.append(word)
    return [call[1:] for call in found if call[:1] == ["rocsteady"]]


def _joined(text: str) -> list[str]:
    """The lines of a shell block as a reader's environment runs them; a line that is continued is one."""
    return text.replace("\\\n", " ").replace(".venv/bin/", "").splitlines()


def _split(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split = True
    return list(lexer)
