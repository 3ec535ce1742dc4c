"""The settings of a pipeline, as frozen values."""
