"""The two stages of a batch, and what their tasks report."""
