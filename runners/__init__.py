"""The runners of a job: Flink, Prism, Dataflow and the engine in this process.

`presets` chooses a runner and its options. `preflight` checks what a runner needs before a job starts.
`submit` submits a job to its runner, such as Flink, and waits for its end; `flink_job` watches and cancels a
job on a Flink cluster. `reasons` finds why a job failed. `listening` makes the servers beside a job listen on
this machine alone. The room `servers` runs real servers to try jobs on.
"""
