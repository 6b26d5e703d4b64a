"""A Kafka topic, by its URL (`topic`), and clients of it (`client`). Needs the extra `kafka`."""
