"""Traces: the phases of a batch and their durations, as spans for an OpenTelemetry collector."""
