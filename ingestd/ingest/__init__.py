"""The logic of a batch, independent of Spark."""
