"""Which table needs upkeep and when, and what the driver tells of its batches."""
