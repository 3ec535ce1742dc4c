"""Validate the option `changelog-producer` and its combinations with other options.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/changelog-producer/#changelog-producer
"""

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.table_schema import TableSchema

INPUT = "input"
PRODUCERS = ("none", INPUT, "lookup", "full-compaction")
_COMPACTING = ("lookup", "full-compaction")


def changelog_producer(schema: TableSchema) -> str:
    """Return the value of `changelog-producer`, by default `none`, without validating it."""
    return honoured.CHANGELOG_PRODUCER.of(schema.options)


def writes_input(schema: TableSchema) -> bool:
    """Return whether writers write the changelog: `changelog-producer` is `input`.

    The result is False for a table without a primary key.
    """
    return bool(schema.primary_keys) and changelog_producer(schema) == INPUT


def check_changelog_options(schema: TableSchema) -> None:
    """Raise ConfigError if `changelog-producer` is invalid, or not allowed for the table."""
    producer = changelog_producer(schema)
    if producer == "none":
        return
    named = f"'changelog-producer' = '{producer}'"
    if producer not in PRODUCERS:
        raise ConfigError(f"option {named}: use one of {', '.join(PRODUCERS)}")
    if not schema.primary_keys:
        raise ConfigError(
            f"option {named} needs a primary key: the rows of a table without one are its "
            "changelog; remove the option"
        )
    if producer in _COMPACTING and honoured.STREAMING_READ_OVERWRITE.of(schema.options):
        raise ConfigError(
            f"option {named} cannot be used with 'streaming-read-overwrite' = 'true': a reader "
            "would see the rows of an overwrite twice"
        )
