"""Settings that an existing table does not follow: keys and options that it was created without.

Keys, buckets and options of the configuration create a table; an existing table keeps its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ingestd.ingest.schemas.new_tables import is_for_keyed_tables
from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.option_types import ChangeRule, Support, TableOption
from ingestd.paimon.spec.table_options import find_option
from ingestd.paimon.spec.table_schema import TableSchema

_AGAIN = "move the table away and let it be created again"
_RESCALE = "`ingestd rescale` changes the number of buckets of a table with fixed buckets"
_ALTER = "change the option of the table (ALTER TABLE in Spark or Flink)"


@dataclass(frozen=True, slots=True)
class DeclaredDifference:
    """A setting that an existing table has otherwise; `way_out` is how to change the table."""

    key: str
    declared: str
    actual: str
    way_out: str

    def __str__(self) -> str:
        return (
            f"{self.key} = {self.declared} has no effect, the table exists with {self.actual}; "
            f"correct the setting, or {self.way_out}"
        )


def declared_differences(
    schema: TableSchema, settings: TableSettings
) -> tuple[DeclaredDifference, ...]:
    """Return the keys and options that the settings declare and the table has otherwise.

    `settings` include the defaults. Options are compared by their values: `64mb` and `64 mb`, or a
    default and a missing option, do not differ. Options that ingestd ignores in every table are
    left out.
    """
    return (*_keys(schema, settings), *_options(schema, settings.options))


def _keys(schema: TableSchema, settings: TableSettings) -> Iterator[DeclaredDifference]:
    if settings.primary_keys is not None and settings.primary_keys != schema.primary_keys:
        yield DeclaredDifference(
            "primary-keys", _names(settings.primary_keys), _names(schema.primary_keys), _AGAIN
        )
    if settings.partition_keys and settings.partition_keys != schema.partition_keys:
        yield DeclaredDifference(
            "partition-keys", _names(settings.partition_keys), _names(schema.partition_keys), _AGAIN
        )


def _options(schema: TableSchema, declared: Mapping[str, str]) -> Iterator[DeclaredDifference]:
    for name, value in sorted(declared.items()):
        option = find_option(name)
        if option is None or option.support is not Support.HONOURED:
            continue
        if name == honoured.BUCKET.name and is_for_keyed_tables(declared, schema.primary_keys):
            continue
        given = schema.options.get(option.given(schema.options) or name)
        if given is not None and option.parse(name, given) == option.parse(name, value):
            continue
        if given is None and option.parse(name, value) == option.default:
            continue
        yield DeclaredDifference(
            f"options.{name}", value, given or _default(option), _way_out(option)
        )


def _default(option: TableOption[object]) -> str:
    missing = option.default is None or option.default == ()
    return "no value" if missing else f"the default {option.default}"


def _way_out(option: TableOption[object]) -> str:
    if option.name == honoured.BUCKET.name:
        return _RESCALE
    return _AGAIN if option.change is ChangeRule.NEVER else _ALTER


def _names(columns: Sequence[str]) -> str:
    return f"[{', '.join(columns)}]" if columns else "none"
