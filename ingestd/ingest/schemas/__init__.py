"""Schemas: columns discovered in messages, columns of tables, and schema changes."""
