"""JSON to columns through the native reader, if it is installed."""
