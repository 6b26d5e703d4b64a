"""Live jobs: `rocsteady evaluate -`, `--follow`, and topics with `--runner local`, in this process.

`run` runs a job from its start to its end. `evaluation` gives the records to the job's `machines`, and the
resulting rows to the sinks. `checkpoints` lets a job that was killed go on.
"""
