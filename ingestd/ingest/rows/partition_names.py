"""Find rows whose partition has no directory name, or a longer one than file systems allow."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.ingest.rows.rejected_records import Failure
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import Values, column_values
from ingestd.paimon.spec.paths import partition_path
from ingestd.paimon.spec.table_schema import TableSchema

MAX_NAME_BYTES = 255
"""The longest name of a directory in local file systems and HDFS."""


def unnamed_partitions(schema: TableSchema, columns: Mapping[str, Values]) -> Iterator[Failure]:
    """Yield a failure of the rows for each partition column with values that name no directory.

    `columns` has the partition columns of the table. Without the failure, a write would fail for
    all rows.
    """
    types = {column.name: column.type for column in schema.fields}
    default_name = honoured.PARTITION_DEFAULT_NAME.of(schema.options)
    legacy = honoured.PARTITION_LEGACY_NAME.of(schema.options)
    for key in schema.partition_keys:
        distinct = pc.unique(columns[key])
        problems = []
        for value in column_values(distinct):
            try:
                name = partition_path((key,), (types[key],), (value,), default_name, legacy)
            except UnsupportedError as error:
                problems.append(error.message)
                continue
            size = len(name.rstrip("/").encode())
            problems.append(f"a name of {size} bytes" if size > MAX_NAME_BYTES else "")
        if any(problems):
            wrong = pc.filter(distinct, pa.array([bool(problem) for problem in problems]))
            rows = np.asarray(pc.is_in(columns[key], value_set=wrong))
            message = (
                f"column {key} names the directory of the partition, of at most {MAX_NAME_BYTES} "
                f"bytes: {next(filter(None, problems))}"
            )
            yield Failure(rows, "cast", "invalid-partition-name", message)
