"""What every part of the configuration is: immutable, and without keys that nobody knows."""

from pydantic import BaseModel, ConfigDict

_NAMES_OF_PAIMON = frozenset(
    {
        "primary_keys",
        "partition_keys",
        "table_prefix",
        "table_suffix",
        "table_mapping",
        "including_tables",
        "excluding_tables",
        "merge_shards",
        "including_dbs",
        "excluding_dbs",
        "table_prefix_db",
        "table_suffix_db",
    }
)
"""Keys that Paimon's own ingestion actions have too; they keep the names they have there."""


def _key_of(field_name: str) -> str:
    return field_name if field_name in _NAMES_OF_PAIMON else field_name.replace("_", "-")


class Section(BaseModel):
    """A part of the configuration; keys are field names with `-` for `_`, but Paimon's."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        alias_generator=_key_of,
        validate_default=True,
    )
