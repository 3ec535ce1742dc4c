"""Avro messages to columns, and Debezium's envelopes in them."""
