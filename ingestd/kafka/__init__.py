"""Access to Kafka and schema registries; only it and `dev` import the Kafka client."""
