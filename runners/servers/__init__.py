"""Real servers on one machine, from packages and without Docker: a Flink cluster, a Kafka broker, Prism.

`packages` fetches the servers, and `closed_jar` makes Flink's job server listen on this machine alone.
`flink` and `kafka` run their server by `processes`. `worker` is the pool of Python workers.
"""
