"""Commits: conflicts, manifests, and the snapshot."""
