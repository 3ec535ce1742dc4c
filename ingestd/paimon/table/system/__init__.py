"""System tables and statistics."""
