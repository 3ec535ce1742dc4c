"""Turn the messages of one batch into rows of target tables."""
