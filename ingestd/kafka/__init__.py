"""The only door to the Kafka client."""
