"""Pass blobs from stage 1 to stage 2 of a batch: through local files, and in bounded memory."""
