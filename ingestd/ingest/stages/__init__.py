"""The two stages of a batch, and the findings of their tasks."""
