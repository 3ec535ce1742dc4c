"""Check that executors write to the warehouse that the driver reads.

On another machine of a cluster, the path of a warehouse may be a different disk, or, with other
settings, a different store. The driver would then commit files that it cannot see. So the driver
writes a token into the warehouse, and a task that does not find the token writes nothing.
"""

import platform
import uuid
from dataclasses import dataclass

from pyspark import SparkContext

from ingestd.config.spark_master import has_executors
from ingestd.errors import UnsupportedError
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.tables.pipeline_warehouse import pipeline_folder
from ingestd.paimon.io.file_io import FileIO

_written: dict[tuple[str, str], "WarehouseToken"] = {}
"""The tokens that this process wrote, by pipeline and warehouse."""
_proven: set[bytes] = set()
"""The contents of tokens that this process has found."""


@dataclass(frozen=True, slots=True)
class WarehouseToken:
    """A file with unique content that the driver has written into a warehouse, to identify it."""

    io: FileIO
    path: str
    content: bytes

    def prove(self) -> None:
        """Check that this process can read the token; a successful check is not repeated.

        Raises UnsupportedError if the token is missing or differs, and StorageError if it cannot be
        read.
        """
        if self.content in _proven:
            return
        try:
            content = self.io.read_bytes(self.path)
        except FileNotFoundError:
            content = b""
        if content != self.content:
            raise UnsupportedError(
                f"{self.path}, which the driver has written, is not in the warehouse of the "
                f"executor on {platform.node()}: nothing is written there; mount the same disk on "
                "all machines, or let all of them reach the same store"
            )
        _proven.add(self.content)


def warehouse_tokens(spark: SparkContext, context: BatchContext) -> tuple[WarehouseToken, ...]:
    """Return the tokens of all warehouses of a batch's tables; none for a local master.

    Tokens that this process has not written yet are written. Raises StorageError if that fails.
    """
    if not has_executors(str(spark.master)):
        return ()
    files = {managed.table.warehouse: managed.table.io for managed in context.tables.values()}
    return tuple(_token(context.pipeline, warehouse, io) for warehouse, io in sorted(files.items()))


def _token(pipeline: str, warehouse: str, io: FileIO) -> WarehouseToken:
    """Return the token of a warehouse, written once per process.

    A later process of the pipeline overwrites it.
    """
    if (pipeline, warehouse) not in _written:
        path = f"{pipeline_folder(warehouse, pipeline)}/warehouse-token"
        token = WarehouseToken(io, path, uuid.uuid4().bytes)
        io.overwrite(token.path, token.content)
        _written[pipeline, warehouse] = token
    return _written[pipeline, warehouse]
