"""A driver whose threads work in turn, and that decodes equal bytes once, for many short lives."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any, Self
from unittest import mock

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.files.data_files import DataFileReader

KEPT = 4000


class Serial:
    """A pool whose work is done at once, so that a life is the same each time."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, work: Callable[..., Any], *given: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*given))
        except BaseException as error:  # noqa: BLE001  (as a real pool does)
            done.set_exception(error)
        return done

    def map(self, work: Callable[..., Any], *given: Any) -> Iterator[Any]:
        return iter([work(*ones) for ones in zip(*given, strict=False)])


def _memo(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decode the same bytes once; what is decoded is never changed."""
    return lru_cache(KEPT)(function)


def _read_once(read: Callable[..., Any]) -> Callable[..., Any]:
    """Read a data file once: their names are random, and no life changes one."""
    known: dict[Any, Any] = {}

    def rows(
        self: DataFileReader, partition: bytes, bucket: int, file: DataFileMeta, fields: Any
    ) -> Any:
        key = (file.file_name, tuple(fields), self.table.schema.id)
        if len(known) > KEPT:
            known.clear()
        if key not in known:
            known[key] = read(self, partition, bucket, file, fields)
        return known[key]

    return rows


_DECODERS = (
    "snapshot_manager.parse_snapshot",
    "schema_manager.parse_schema",
    "file_store_scan.decode_manifest",
    "file_store_scan.decode_manifest_list",
)


@contextlib.contextmanager
def fast_driver() -> Iterator[None]:
    """Let the driver do in turn what it does at once, and decode the same bytes once."""
    modules = ("table_registry", "registry_opening", "managed_table")
    pools = (*(f"ingest.tables.{name}" for name in modules), "spark.micro_batch")
    with contextlib.ExitStack() as stack:
        for module in pools:
            stack.enter_context(mock.patch(f"ingestd.{module}.ThreadPoolExecutor", Serial))
        for name in _DECODERS:
            path = f"ingestd.paimon.table.metadata.{name}"
            stack.enter_context(mock.patch(path, _memo(resolve_name(path))))
        read = _read_once(DataFileReader.read)
        stack.enter_context(mock.patch.object(DataFileReader, "read", read))
        stack.enter_context(mock.patch("ingestd.paimon.format.parquet.has_threads", bool))
        yield
