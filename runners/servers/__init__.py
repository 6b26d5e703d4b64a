"""Real servers on one machine, from packages and without Docker: a Flink cluster, a Kafka broker, Prism.

`packages` fetches the servers, and `closed_jar` makes Flink's job server listen on this machine alone.
`flink` and `kafka` run their server by `processes`. `settings` checks settings of Flink. `up` starts what is
asked for or has ended. `worker` is the pool of Python workers.
"""
