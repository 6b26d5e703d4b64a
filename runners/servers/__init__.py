"""Real servers on one machine, from packages and without Docker: a Flink cluster, a Kafka broker, Prism."""
