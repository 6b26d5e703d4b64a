"""Commands and jobs, in this process or in one of their own.

`command` runs the command line; `terminal` runs a command in a pseudo-terminal; `live_job` and `killed_job`
run jobs that follow a stream. `beam_runs` has Beam's runners, `beam_memory` makes them start sooner,
`failing_dofn` fails in them, `launchers` cleans up behind them. `clock` stands in for the one on the wall.
`smoke` tries what is installed.
"""
