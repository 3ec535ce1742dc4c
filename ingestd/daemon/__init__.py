"""The long-running service: the only threads and signals."""
