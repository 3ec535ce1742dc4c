"""Change events in JSON: one decoder for all JSON formats, and native reading of their messages."""
