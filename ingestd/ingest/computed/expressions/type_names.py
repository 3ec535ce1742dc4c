"""Names of types in SQL as types of a table."""

from collections.abc import Mapping, Sequence

from ingestd.paimon.spec.data_types import DataType

_PLAIN: Mapping[str, str] = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INT",
    "BIGINT": "BIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "DATE": "DATE",
    "TEXT": "STRING", "STRING": "STRING", "BYTES": "BYTES",
}  # fmt: skip
_UNSIZED: Mapping[str, str] = {
    "VARCHAR": "STRING", "CHAR": "STRING", "BINARY": "BYTES", "VARBINARY": "BYTES",
}  # fmt: skip
_WITH_PRECISION: Mapping[str, str] = {
    "TIME": "TIME", "TIMESTAMP": "TIMESTAMP", "TIMESTAMPNTZ": "TIMESTAMP",
    "TIMESTAMPLTZ": "TIMESTAMP_LTZ", "TIMESTAMPTZ": "TIMESTAMP_LTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ", "DATETIME": "TIMESTAMP",
}  # fmt: skip


def type_of_words(word: str, sizes: Sequence[int]) -> DataType:
    """The type that a word and the numbers behind it mean; ValueError if there is none."""
    word = word.upper()
    if word in _PLAIN and not sizes:
        return DataType(_PLAIN[word])
    if word in _UNSIZED and len(sizes) <= 1:
        return DataType(word, length=sizes[0]) if sizes else DataType(_UNSIZED[word])
    if word in _WITH_PRECISION and len(sizes) <= 1:
        return DataType(_WITH_PRECISION[word], precision=sizes[0] if sizes else None)
    if word == "DECIMAL" and len(sizes) <= 2:
        precision = sizes[0] if sizes else None
        return DataType("DECIMAL", precision=precision, scale=sizes[1] if sizes[1:] else None)
    raise ValueError(f"no type {word}")
