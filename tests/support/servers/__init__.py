"""Servers, receivers and launchers on this machine, and what is seen of them from outside.

`kafka_topics`, `secure_broker` and `beams_kafka_job` need a Kafka broker; `prometheus` and `scraping` look
at counters as a monitoring server does; `otlp_receiver` and `json_server` take what a job sends.
`google_cloud`, `dataflow_graph` and `dataflow_worker` are the parts of Dataflow that can be had.
`counting_job` shows every state that a runner kept. `sockets` lists who listens.
"""
