"""Dry runs: process sample records without writing anything."""
