"""Schemas: columns found in messages, columns of tables, and schema changes."""
