"""Retention: tags, branches, expiry, rollback, orphan files."""
