"""Decode Protobuf schemas and messages into columns."""
