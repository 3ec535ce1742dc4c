"""Operations on one table, one package each; imports follow the layers in the architecture."""
