"""Check that executors write to the warehouse that the driver reads.

The path of a warehouse exists on every machine of a cluster, but may be another disk, or by other
settings of the machine another store: the driver would commit files that it cannot see. The driver
writes a token into the warehouse, and a task that does not find it writes nothing.
"""

import platform
import uuid
from dataclasses import dataclass

from pyspark import SparkContext

from ingestd.errors import UnsupportedError
from ingestd.ingest.settings.context import BatchContext
from ingestd.paimon.io.file_io import FileIO
from ingestd.spark.startup.settings import has_executors

_written: dict[tuple[str, str], "WarehouseToken"] = {}
"""The tokens that this process wrote, by pipeline and warehouse."""
_proven: set[bytes] = set()
"""The contents of tokens that this process has found."""


@dataclass(frozen=True, slots=True)
class WarehouseToken:
    """The path and the content of a token, and the access to its file system."""

    io: FileIO
    path: str
    content: bytes

    def prove(self) -> None:
        """Check the token from this machine, once in each process.

        Raises UnsupportedError if it is missing or differs, StorageError if it cannot be read.
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
    """Return the tokens of all warehouses of a batch's tables; none for a local master."""
    if not has_executors(str(spark.master)):
        return ()
    files = {
        managed.table.path.rsplit("/", 2)[0]: managed.table.io
        for managed in context.tables.values()
    }
    return tuple(_token(context.pipeline, warehouse, io) for warehouse, io in sorted(files.items()))


def _token(pipeline: str, warehouse: str, io: FileIO) -> WarehouseToken:
    """Write a token, once per process; a later process of the pipeline replaces it."""
    if (pipeline, warehouse) not in _written:
        path = f"{warehouse}/.ingestd/{pipeline}/warehouse-token"
        token = WarehouseToken(io, path, uuid.uuid4().bytes)
        io.overwrite(token.path, token.content)
        _written[pipeline, warehouse] = token
    return _written[pipeline, warehouse]
