"""Route decoded changes to target tables, and convert them to rows of these tables."""
