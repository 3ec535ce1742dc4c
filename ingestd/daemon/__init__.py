"""The daemon: signals, restarts, maintenance, HTTP pages and lag."""
