"""Whether a table holds what its load ends in: every value, as Paimon's reader in Java sees it."""

import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from bench.java import command
from bench.load import KEY
from bench.process import BenchError

READ_SECONDS = 600
NULL = "\\N"


def rows_read_by_java(warehouse: Path, scratch: Path, schema: pa.Schema) -> pa.Table:
    """The merged rows of all tables, ordered by key, with the columns of a load."""
    text = scratch / "rows.tsv"
    done = subprocess.run(
        command("java", "DumpTable", [warehouse, text, *schema.names]),
        capture_output=True,
        text=True,
        timeout=READ_SECONDS,
        check=False,
    )
    if done.returncode:
        raise BenchError(f"Java Paimon cannot read the table:\n{done.stderr[-2000:]}")
    try:
        rows = pyarrow.csv.read_csv(
            text,
            pyarrow.csv.ReadOptions(column_names=schema.names),
            pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
            pyarrow.csv.ConvertOptions(
                column_types=schema, null_values=[NULL], strings_can_be_null=True
            ),
        )
    finally:
        text.unlink()
    return rows.sort_by(KEY)


def same_rows(got: pa.Table, wanted: pa.Table) -> bool:
    """Whether two tables in order of the key hold equal values."""
    return bool(got.combine_chunks().equals(wanted.combine_chunks()))
