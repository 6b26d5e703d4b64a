"""What several tests share, in packages by subject. No test is here, and the product imports none of it.

`oracles`: slow, obvious twins of what the product computes. `invariants`: numbers of a data structure
computed anew, and drivers that try a state machine in every order. `streams`: events, batches and
partitions as input. `servers`: real servers and receivers on this machine. `pages`: tables for a report,
blocks of the documentation, the site, the served page. `stored`: bytes of every stored form, whole and
damaged. `processes`: commands, jobs and Beam's runners, in this process or in one of their own. `browser`:
a Chromium. `thorough` says how many cases a test tries, and `requirements` what a test needs of a machine.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""
