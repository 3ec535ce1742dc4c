"""The message layouts of the JSON formats."""
