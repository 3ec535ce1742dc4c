"""The two stages of a batch, and the reports of their tasks."""
