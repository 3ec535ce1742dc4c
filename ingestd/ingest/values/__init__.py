"""Values and rows as such: groups, casts, merged types, counts, times."""
