"""Check that a table can be written, and warn once of options without effect."""

import logging
from functools import lru_cache

from ingestd.paimon.spec.options import ignored_options, refuse_unsupported
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_LOG = logging.getLogger(__name__)


def check_writable(table: FileStoreTable) -> None:
    """Raise UnsupportedError, naming the option or column, if a table cannot be written.

    Raises ConfigError for an invalid option value. Options without effect are logged, once in a
    process for the same table and options.
    """
    refuse_unsupported(table.schema, for_write=True)
    ignored = ignored_options(table.schema.options)
    if ignored:
        _warn(table.name, tuple(sorted(ignored.items())))


@lru_cache(maxsize=4096)
def _warn(table: str, ignored: tuple[tuple[str, str], ...]) -> None:
    context = {"table": table, "options": dict(ignored)}
    _LOG.warning("table_options_ignored", extra={"ctx": context})
