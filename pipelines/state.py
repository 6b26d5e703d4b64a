"""State that outlives a job: what `--export-state` and `--import-state` ask for, and `rocsteady state`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..core.errors import ConfigError, InputError, OtherConfigurationError
from ..core.state_import import check_join
from ..transforms.state_folder import Export, check_new_folder, read_export
from .evaluation import Evaluation


@contextmanager
def state_taken_up(job: Evaluation, options: argparse.Namespace) -> Iterator[Evaluation]:
    """Yield a job with the state that it takes up and the one it leaves, as its options say.

    Raises ConfigError, or InputError.
    """
    folder = options.export_state
    if folder is not None:
        check_new_folder("--export-state", folder)
    for option, value in (("--export-state", folder), ("--import-state", options.import_state)):
        if value is not None and job.alerts is not None:
            raise ConfigError(
                f"{option} {value}: the rules of --alert have a state that is not exported in this version; "
                "leave --alert out, and watch the rows of all jobs together"
            )
    job = replace(job, export=folder)
    if options.import_state is None:
        yield job
        return
    export = read_export(options.import_state)
    check_fits(export, job)
    yield replace(job, begins_with=export)


def check_fits(export: Export, job: Evaluation) -> None:
    """Raise InputError where a job cannot take up an export: it has other steps, or settings."""
    wanted, there = [step.name for step in job.steps()], [step.name for step in export.steps]
    if sorted(wanted) != sorted(there):
        raise InputError(
            f"--import-state {export.folder} holds the state of {' and '.join(there)}, and this job has "
            f"{' and '.join(wanted)}; give --labels to both jobs, or to none"
        )
    join = export.step("join")
    if join is not None and job.join is not None:
        try:
            check_join(join.settings, job.join.settings)
        except OtherConfigurationError as difference:
            raise InputError(f"--import-state {export.folder}: {difference}") from None
