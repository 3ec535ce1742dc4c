"""Operations on a table, one package each; imports between them follow the architecture."""
