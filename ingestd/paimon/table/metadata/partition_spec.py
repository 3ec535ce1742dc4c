"""Parse partitions as typed by users, such as `dt=2024-01-01,hr=3`.

Specification: https://paimon.apache.org/docs/1.4/concepts/basic-concepts/#partition

Some or all partition columns may be given. Values are literals without quotes; the table's
`partition.default-name` stands for null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingestd.errors import ConfigError
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.literals import parse_literal
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

PartitionSpec = Mapping[str, object]
"""Values of some partition columns by name."""


@dataclass(frozen=True, slots=True)
class AnyPartitionOf:
    """A test whether a partition has the values of at least one of several partition specs.

    It is called with the values of a partition, in the order of the partition keys. A spec consists
    of pairs (index among the partition keys, value).
    """

    specs: tuple[tuple[tuple[int, object], ...], ...]

    def __call__(self, values: tuple[object, ...]) -> bool:
        """Return whether a partition matches, by its values in the order of the partition keys."""
        return any(all(is_same_value(values[i], value) for i, value in spec) for spec in self.specs)


def is_same_value(left: object, right: object) -> bool:
    """Return whether two values of a partition column are equal.

    NaN is equal to itself, null (None) too, and 0.0 is equal to -0.0.
    """
    return left == right or (left != left and right != right)


def parse_partition_spec(table: FileStoreTable, text: str) -> PartitionSpec:
    """Parse the spec `column=value[,column=value]`; slashes may replace the commas.

    Raises ConfigError for a column that is not a partition key or is repeated, for an invalid
    value, and for a table without partitions.
    """
    keys = table.schema.partition_keys
    if not keys:
        raise ConfigError(f"table {table.name} has no partitions")
    spec: dict[str, object] = {}
    for pair in text.replace("/", ",").split(",") if "=" in text else [text]:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or name not in keys or name in spec:
            raise ConfigError(
                f"partition '{text}' of table {table.name}: write column=value, with commas "
                f"between them, each column once; the partition columns are {', '.join(keys)}"
            )
        is_null = value == table.options.partition_default_name
        spec[name] = None if is_null else parse_literal(value, table.schema.field(name))
    return spec


def partition_filter(table: FileStoreTable, specs: Sequence[PartitionSpec]) -> PartitionFilter:
    """Return a filter for partitions that have the values of at least one of the specs.

    If every spec has all partition columns, the filter is a set of serialized partitions, by which
    manifests are pruned. Without specs, no partition matches.
    """
    keys = table.schema.partition_keys
    if all(len(spec) == len(keys) for spec in specs):
        rows = (tuple(spec[key] for key in keys) for spec in specs)
        return frozenset(serialize_row(table.partition_types, row) for row in rows)
    return AnyPartitionOf(
        tuple(tuple((keys.index(name), value) for name, value in spec.items()) for spec in specs)
    )
