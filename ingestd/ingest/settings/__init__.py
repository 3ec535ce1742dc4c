"""What a pipeline is told to do, as frozen values."""
