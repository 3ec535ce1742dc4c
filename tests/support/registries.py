"""The tables of a pipeline as its driver opens them, in a warehouse on the local disk."""

from pathlib import Path
from typing import Any

from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.paimon.catalog.base import load_catalog
from ingestd.paimon.io.local import LocalFileIO

NOW_MS = 1_700_000_000_000


def pipeline_of(warehouse: Path, **settings: Any) -> PipelineSettings:
    """Settings of a pipeline named `job` with database `db`; `settings` override the defaults."""
    defaults: dict[str, Any] = {
        "name": "job",
        "metastore": "filesystem",
        "database": "db",
        "sources": {},
        "routing": RoutingConfig(),
        "defaults": TableSettings(),
        "tables": {},
        "max_offsets_per_trigger": {},
    }
    return PipelineSettings(**{**defaults, "warehouse": str(warehouse), **settings})


def open_registry(settings: PipelineSettings, now_ms: int = NOW_MS) -> TableRegistry:
    """Open the tables of a pipeline; the clock always returns `now_ms`."""
    catalog = load_catalog("filesystem", settings.warehouse)
    registry = TableRegistry(settings, catalog, LocalFileIO(sync=False), lambda: now_ms)
    registry.open()
    return registry
