"""A Kafka topic, by its URL (`topic`), and clients of topics (`client`). Needs the extra `kafka`."""
