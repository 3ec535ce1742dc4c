"""Proof that tasks write to the disk that the driver reads.

A warehouse on a local path is the same path on every machine of a cluster and perhaps another
disk: files of executors would be committed and not exist. The driver leaves a token in the
warehouse, and a task that does not find it there writes nothing.
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
    """A file that the driver has written, and its content."""

    path: str
    content: bytes

    def prove(self) -> None:
        """Look for the token on this machine.

        Raises UnsupportedError if it is not there, StorageError if the disk does not answer.
        """
        try:
            found = LocalFileIO().read_bytes(self.path)
        except FileNotFoundError:
            found = b""
        if found != self.content:
            raise UnsupportedError(
                f"{self.path}, which the driver has written, is not on the disk of the executor on "
                f"{platform.node()}: nothing is written there; mount the warehouse on all "
                "machines, or use an object store or HDFS"
            )


def disk_tokens(spark: SparkContext, context: BatchContext) -> tuple[DiskToken, ...]:
    """The tokens of all local places that a batch's tables are in.

    None where one process runs driver and tasks, or tables are in a shared store.
    """
    if str(spark.master).split("[")[0] == "local":
        return ()
    tables = (one.table for one in context.tables.values())
    paths = (one.path for one in tables if isinstance(one.io, LocalFileIO))
    return _tokens(frozenset(_warehouses(paths)), context.pipeline)


def _warehouses(table_paths: Iterable[str]) -> Iterable[str]:
    return (path.rsplit("/", 2)[0] for path in table_paths)


@cache
def _tokens(warehouses: frozenset[str], pipeline: str) -> tuple[DiskToken, ...]:
    """Write the tokens of this process; a later process of the pipeline replaces them."""
    tokens = []
    for warehouse in sorted(warehouses):
        token = DiskToken(f"{warehouse}/.ingestd/{pipeline}/disk-token", uuid.uuid4().bytes)
        LocalFileIO().overwrite(token.path, token.content)
        tokens.append(token)
    return tuple(tokens)
