"""Check that executors write to the disk that the driver reads.

A local warehouse path exists on every machine of a cluster, but may be another disk: the driver
would commit files that it cannot see. The driver writes a token into the warehouse, and a task that
does not find it writes nothing.
"""

import platform
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from pyspark import SparkContext

from ingestd.errors import UnsupportedError
from ingestd.ingest.settings.context import BatchContext
from ingestd.paimon.io.local import LocalFileIO


@dataclass(frozen=True, slots=True)
class DiskToken:
    """The path and the content of a token."""

    path: str
    content: bytes

    def prove(self) -> None:
        """Check the token on this machine.

        Raises UnsupportedError if it is missing or differs, StorageError if it cannot be read.
        """
        try:
            content = LocalFileIO().read_bytes(self.path)
        except FileNotFoundError:
            content = b""
        if content != self.content:
            raise UnsupportedError(
                f"{self.path}, which the driver has written, is not on the disk of the executor on "
                f"{platform.node()}: nothing is written there; mount the warehouse on all "
                "machines, or use an object store or HDFS"
            )


def disk_tokens(spark: SparkContext, context: BatchContext) -> tuple[DiskToken, ...]:
    """Return the tokens of all local warehouses of a batch's tables.

    Empty for a local master, which has no executors, and for tables in object stores or HDFS.
    """
    if str(spark.master).split("[")[0] == "local":
        return ()
    tables = (table.table for table in context.tables.values())
    paths = (table.path for table in tables if isinstance(table.io, LocalFileIO))
    return _tokens(frozenset(_warehouses(paths)), context.pipeline)


def _warehouses(table_paths: Iterable[str]) -> Iterable[str]:
    return (path.rsplit("/", 2)[0] for path in table_paths)


@cache
def _tokens(warehouses: frozenset[str], pipeline: str) -> tuple[DiskToken, ...]:
    """Write the tokens, once per process; a later process of the pipeline replaces them."""
    tokens = []
    for warehouse in sorted(warehouses):
        token = DiskToken(f"{warehouse}/.ingestd/{pipeline}/disk-token", uuid.uuid4().bytes)
        LocalFileIO().overwrite(token.path, token.content)
        tokens.append(token)
    return tuple(tokens)
