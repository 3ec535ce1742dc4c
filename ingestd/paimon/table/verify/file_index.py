"""Checking the indexes of data files: none may deny a value that its file holds.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.file_index import BITMAP, BLOOM_FILTER
from ingestd.paimon.spec.file_index_bitmap import decode_bitmap_index
from ingestd.paimon.spec.file_index_bloom import may_contain
from ingestd.paimon.spec.hash64 import hash_values, is_hashable
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.table.files.file_index_read import read_file_indexes
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.verify.findings import VerifyFindings

_CODE = "file-index"


def check_file_index(
    table: FileStoreTable, entry: ManifestEntry, rows: pa.Table, findings: VerifyFindings
) -> None:
    """Check the indexes of a data file against its rows; `table` as of the file's schema."""
    name = entry.file.file_name
    with findings.reading(name, _CODE):
        indexes = read_file_indexes(table, entry.partition, entry.bucket, entry.file) or {}
        fields = {field.name: field for field in table.schema.fields}
        for column, kinds in indexes.items():
            if column not in fields:
                # Indexes of single keys of a map are named map[key].
                if column.partition("[")[0] not in fields:
                    findings.error(_CODE, name, f"has an index of column {column}, which is none")
                continue
            bloom, bitmap = kinds.get(BLOOM_FILTER), kinds.get(BITMAP)
            if bloom is not None and _denies(bloom, rows, fields[column], name):
                findings.error(_CODE, name, f"the bloom filter of {column} denies values")
            if bitmap is not None and _differs(bitmap, rows, fields[column], name):
                findings.error(_CODE, name, f"the bitmap index of {column} is not of its rows")


def _denies(bloom: bytes, rows: pa.Table, field: DataField, source: str) -> bool:
    if not is_hashable(field.type):
        return False
    hashes = hash_values(rows.column(field.name), field.type)
    return not bool(may_contain(bloom, hashes, source).all())


def _differs(data: bytes, rows: pa.Table, field: DataField, source: str) -> bool:
    index = decode_bitmap_index(data, field.type, source)
    if index is None or (field.type.precision or 0) > 6:
        return False
    column: Any = rows.column(field.name)
    seen = np.zeros(rows.num_rows, np.int64)
    for value in (None, *index.values()):
        places = index.positions(value)
        if len(places) and int(places[-1]) >= rows.num_rows:
            return True
        seen[places] += 1
        cells = column.take(pa.array(places))
        if value is None:
            fits = cells.null_count == len(cells)
        elif value != value:
            fits = pc.all(pc.is_nan(cells)).as_py() is not False
        else:
            equal: Any = pc.equal(cells, column_of([value], field.type)[0])
            fits = cells.null_count == 0 and pc.all(equal).as_py() is not False
        if not fits:
            return True
    return bool(np.any(seen != 1))
