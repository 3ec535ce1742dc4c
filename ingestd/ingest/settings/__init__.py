"""The settings and policies of a pipeline, as frozen values."""
