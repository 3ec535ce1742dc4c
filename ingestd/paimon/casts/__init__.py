"""Values of one type as values of another, and as text, as Java does both."""
