"""Decode Avro messages, with or without Debezium's envelope, into columns."""
