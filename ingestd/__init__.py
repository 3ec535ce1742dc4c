"""Kafka change streams into Apache Paimon tables, exactly once."""
