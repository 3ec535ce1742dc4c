"""Pure specification: bytes and documents in, frozen values out; no I/O, no clock."""
