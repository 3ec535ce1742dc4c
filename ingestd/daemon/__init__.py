"""The long-running service: signals, restarts, the pages and the lag."""
