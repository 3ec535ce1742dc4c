"""The tables of a pipeline on the driver, and their progress."""
