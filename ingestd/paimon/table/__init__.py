"""Operations on one table, a package each; imports point down only, as in the architecture."""
