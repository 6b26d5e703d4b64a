"""A Kafka topic, by its URL (`topic`), and clients of topics (`client`). Needs the extra `kafka`.

`topic_watch` asks for a topic's id and its partitions while a job reads the topic.
"""
