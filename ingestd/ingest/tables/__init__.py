"""The tables of a pipeline on the driver, and how far each got."""
