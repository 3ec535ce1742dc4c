"""Assignment of rows to buckets."""
