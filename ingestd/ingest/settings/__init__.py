"""The settings and policies of a pipeline, and the checks that apply limits."""
