"""The tables of a pipeline as the driver manages them, and their progress records."""
