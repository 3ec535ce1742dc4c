"""Change events in JSON: one decoder for all JSON formats, in Python and native code."""
