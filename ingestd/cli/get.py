"""`ingestd get`: print the rows with given primary keys."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

import pyarrow as pa
import typer

from ingestd.cli.output import AsJson
from ingestd.cli.read import AsOf, Columns, Format, OutputFile, Tag, write_rows
from ingestd.cli.read_source import Request, looked_up_rows
from ingestd.cli.rows_output import Output
from ingestd.cli.table_arguments import SnapshotId, TableName, Warehouse, open_table
from ingestd.errors import ConfigError
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.literals import parse_literal
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_Keys: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="KEY...", help="Primary keys: VALUE, or COLUMN=VALUE,... of several columns."
    ),
]


def get(
    warehouse: Warehouse,
    table: TableName,
    keys: _Keys,
    columns: Columns = None,
    snapshot: SnapshotId = None,
    tag: Tag = None,
    as_of: AsOf = None,
    style: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.JSONL,
    output: OutputFile = None,
    as_json: AsJson = False,
) -> None:
    """Print the rows with given primary keys, as they are now or as they were at a snapshot.

    Only files that may contain a key are opened. A key without a row prints nothing.

    **Examples**

    ingestd get /lake shop.orders 17 18

    ingestd get /lake shop.lines order_id=17,line=3 --columns sku,amount

    ingestd get /lake shop.orders 17 --as-of 2026-01-31T12:00:00Z
    """
    opened = open_table(warehouse, table)
    request = Request(columns=columns, snapshot=snapshot, tag=tag, as_of=as_of)
    rows = looked_up_rows(opened, parse_keys(opened, keys), request)
    form = Format.JSONL if as_json else style
    write_rows(rows, form, Output(output, None, lambda: None))


def parse_keys(table: FileStoreTable, texts: Sequence[str]) -> pa.Table:
    """Parse primary keys as typed by users; return a row for each, with the columns of the key.

    A key is `column=value,...` with all columns of the primary key; for a single column the value
    is enough. Raises ConfigError for a table without a primary key, a malformed key, or an invalid
    value.
    """
    names = table.schema.primary_keys
    if not names:
        raise ConfigError(
            f"table {table.name} has no primary key: `ingestd read --where` selects its rows"
        )
    keys = [_parsed(table, text) for text in texts]
    fields = table.schema.select(names)
    return pa.table({f.name: column_of([key[f.name] for key in keys], f.type) for f in fields})


def _parsed(table: FileStoreTable, text: str) -> Mapping[str, object]:
    names = table.schema.primary_keys
    # A value may contain a comma: the next column begins with its name.
    starts = re.compile(rf"(?:^|,)({'|'.join(map(re.escape, names))})=")
    pieces = starts.split(text)
    if len(pieces) == 1 and len(names) == 1:
        pieces = ["", names[0], text]
    values = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    if pieces[0] or len(pieces) != 1 + 2 * len(names) or len(values) != len(names):
        example = ",".join(f"{name}=VALUE" for name in names)
        raise ConfigError(f"key '{text}' of table {table.name}: write {example}")
    return {name: parse_literal(values[name], table.schema.field(name)) for name in names}
