"""A daemon that writes Kafka change streams to Apache Paimon tables, exactly once."""
