"""Column renames, column drops and comments in DDL messages of source databases."""
