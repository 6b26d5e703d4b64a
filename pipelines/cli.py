"""The command line: parses the arguments, runs one command, and returns an exit status.

Exit status
    0         The command is done. Dead letters are no failure.
    1         The job failed after its start.
    2         An argument is wrong, or the input was found wrong before the job started.
    3         Nothing was evaluated.
    4         A rule of --fail-if holds.
    129, 130, 143  The command got SIGHUP, SIGINT or SIGTERM.

An error that a user can cause is one sentence on stderr, never a traceback. Only commands that run a job
import Beam, so that `--help` is instant.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import cast

from ..core.errors import ConfigError, InputError, RocsteadyError
from ..core.process.collector import without_collections
from ..core.process.console import ConsoleFormatter, say, show_error, show_warning
from ..core.process.near_names import near_names
from ..core.process.standard_streams import MainThreadOnly, open_closed_streams, writing_out
from .commands import COMMANDS, Command, command_parser
from .stopping import Interruptible

_ENDINGS = (".csv", ".tsv", ".parquet", ".jsonl", ".gz", ".state")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status. Without `argv`, read sys.argv and own the process."""
    open_closed_streams()
    if argv is not None:
        return _main(argv, ends_process=False)
    sys.excepthook = show_error
    status = _main(sys.argv[1:], ends_process=True)
    _silence_what_is_torn_down()
    gc.freeze()  # the interpreter would collect garbage at its end, which took 0.2 s
    if status > 128 and any(not thread.daemon for thread in threading.enumerate()[1:]):
        sys.stderr.flush()
        os._exit(status)  # after an interrupt, an engine's threads would keep the process for minutes
    return status


def _silence_what_is_torn_down() -> None:
    """Silence logging and other threads' output before the process ends.

    A runner's threads would otherwise log and print errors while their server stops.
    """
    logging.disable()
    threading.excepthook = lambda _: None
    sys.stderr = MainThreadOnly(sys.stderr)


def _main(arguments: Sequence[str], *, ends_process: bool) -> int:
    with Interruptible(ends_process=ends_process) as interruption, _quiet_libraries():
        try:
            status = _run([*arguments], ends_process=ends_process)
            with writing_out():
                pass  # the end of the block writes the data that stdout still holds
        except BrokenPipeError:  # the reader of stdout has gone, so no message can reach it
            return 1
        except (KeyboardInterrupt, Exception) as error:
            if interruption.signal is not None or isinstance(error, KeyboardInterrupt):
                return interruption.say()
            if isinstance(error, RocsteadyError):
                say(error)
            elif isinstance(error, OSError):
                say(f"{error.filename or 'the system'}: {error.strerror or error}")
            else:
                raise
            return 2 if isinstance(error, ConfigError | InputError) else 1
        return status


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Let only rocsteady's loggers print while the block runs.

    Beam logs remarks on its optional parts, and long tracebacks.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(ConsoleFormatter("rocsteady: %(message)s"))
    handler.addFilter(lambda record: record.name.startswith("rocsteady"))
    root = logging.getLogger()
    before, root.handlers[:] = root.handlers[:], [handler]
    stderr, showwarning = sys.stderr, warnings.showwarning
    warnings.showwarning = show_warning
    try:
        yield
    finally:
        root.handlers[:] = before
        warnings.showwarning = showwarning
        sys.stderr = stderr  # an interruption hides stderr from Beam's threads


def _run(arguments: list[str], *, ends_process: bool) -> int:
    if not arguments:
        command_parser()[0].print_help(sys.stderr)
        return 2
    command, options, rest = parse(arguments)
    run = _imported(command.run, stays=ends_process)
    return int(run(options, rest) if command.takes_beam else run(options))


def parse(arguments: list[str]) -> tuple[Command, argparse.Namespace, list[str]]:
    """Return the command that the arguments name, its options, and the remaining words, Beam's options.

    Raise ConfigError for a command or an option that is not known.
    """
    parser, parts = command_parser()
    commands = {command.name: command for command in COMMANDS}
    _refuse_unknown_command(arguments[0], [*commands])
    _refuse_dashed_file(arguments)
    if arguments[0] in commands and commands[arguments[0]].takes_beam:
        arguments = _with_joined_values(arguments, parts[arguments[0]])
    options, rest = parser.parse_known_args(arguments)
    command = commands[options.command]
    if rest and not command.takes_beam:
        raise ConfigError(f"argument {rest[0]!r} is not known (see rocsteady {options.command} --help)")
    return command, options, rest


def _imported(path: str, *, stays: bool) -> Callable[..., int]:
    """Import the function of a command, from module:function.

    Garbage collections would look through all imported objects again and again: a fifth of the processor time
    of a short command. So none runs during this import. With `stays`, later collections leave out all objects
    that exist after it.
    """
    module, _, function = path.partition(":")
    with without_collections():
        run = getattr(import_module(f"{__package__}.{module}"), function)
        if stays:
            gc.freeze()
    return cast(Callable[..., int], run)


def _refuse_unknown_command(name: str, commands: Sequence[str]) -> None:
    if name.startswith("-") or name in commands:
        return
    near = near_names(name, commands)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(commands)}"
    raise ConfigError(f"command {name!r} is not known; {hint}")


def _refuse_dashed_file(arguments: Sequence[str]) -> None:
    """Raise ConfigError for a file name that looks like an option."""
    for argument in arguments:
        if argument == "--":
            return
        named = argument.startswith("-") and "=" not in argument and argument.lower().endswith(_ENDINGS)
        if named and (not argument.startswith("--") or Path(argument).exists()):
            raise ConfigError(f"{argument} reads like an option; for the file of that name say ./{argument}")


def _with_joined_values(arguments: list[str], command: argparse.ArgumentParser) -> list[str]:
    """Join Beam's options, which are not options of rocsteady, to their values.

    Beam is imported only if there are such options.
    """
    own = command._option_string_actions
    if {"-h", "--help"} & {*arguments} or all(
        word.split("=")[0] in own or not word.startswith("--") for word in arguments
    ):
        return arguments
    from ..runners.presets import RunnerError, join_values

    try:
        return join_values(arguments, own)
    except RunnerError as mistake:
        raise ConfigError(f"{mistake} (see {command.prog} --help)") from None
