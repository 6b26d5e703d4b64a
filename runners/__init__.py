"""The runners of a job: Flink, Prism, Dataflow and the engine in this process.

`presets` chooses a runner and its options. `preflight` checks what a runner needs before a job starts.
`listening` makes the servers beside a job listen on this machine alone. `flink_job` watches and cancels a job
on a Flink cluster. The room `servers` runs real servers to try jobs on.
"""
