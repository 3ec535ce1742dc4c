"""Find the values that messages of updates with a changed primary key omit."""
