"""What a batch means, free of any engine."""
