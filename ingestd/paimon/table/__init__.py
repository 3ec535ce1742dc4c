"""Operations on one table: scan, read, write, commit, verify."""
