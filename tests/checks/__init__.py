"""The checks of this repository, for a developer and for `.ci/run`.

`python -m tests.checks` runs the checks that the working tree's change can break (`changed`). `selection`
chooses the tests by the `graph` of files, which `modules` makes from the text of each file.
`python -m tests.checks lines` counts lines by room (`lines`); `coverage` makes a table of coverage by room.

`.ci/run` is `ci`: the scheduler in `schedule` runs `steps` on this machine (`host`). `python -m tests.checks
minutes` writes the table of steps into CONTRIBUTING (`minutes`). All of it needs Python's standard library
alone, since .ci/run installs the rest.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""
