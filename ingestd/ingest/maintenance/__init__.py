"""The scheduling of maintenance for each table, and the driver's reports of its batches."""
