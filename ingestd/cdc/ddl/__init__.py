"""What the statements of a source database prove of its columns: renamed, or gone."""
