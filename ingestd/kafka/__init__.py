"""Access to Kafka and schema registries; the only package that imports the Kafka client."""
