"""Real servers on one machine, from packages and without Docker.

They are a Flink cluster, a Kafka broker, and Prism.

`packages` fetches the servers, and `closed_jar` makes Flink's job server listen on this machine alone.
`flink` and `kafka` run their server by `processes`. `flink_settings` checks settings of Flink. `up` starts
the servers that are asked for, or that have ended. `worker` is the pool of Python workers.
"""
