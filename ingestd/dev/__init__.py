"""A real Kafka for demos and tests, and something to put into it."""
