"""Operations on values and rows: grouping, casts, type merging, counts, event times."""
