"""The console: read-only HTML views of the daemon's state, which work without scripts."""
