"""Which table needs maintenance and when, and what the driver tells of its batches."""
