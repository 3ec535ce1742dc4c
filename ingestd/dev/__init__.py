"""A Kafka broker and a workload for demos and tests."""
