"""Complete rows of updates that changed the primary key and left out large values."""
