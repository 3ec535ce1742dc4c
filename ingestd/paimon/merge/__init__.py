"""Merge engines, which compute one row per primary key from Arrow tables."""
