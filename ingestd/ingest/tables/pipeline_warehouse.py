"""The warehouse of a pipeline: its catalog, its FileIO, and the folder of its own files."""

from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.paimon.catalog.base import Catalog, load_catalog
from ingestd.paimon.catalog.branch_catalog import BranchCatalog
from ingestd.paimon.io.file_io import FileIO, file_io_for, storage_options


def open_file_io(settings: PipelineSettings) -> FileIO:
    """Return the FileIO of a pipeline's warehouse.

    Raises UnsupportedError for an unknown kind of store, and ConfigError for an unknown option or a
    missing package.
    """
    return file_io_for(settings.warehouse, storage_options(settings.catalog_options))


def open_catalog(settings: PipelineSettings) -> Catalog:
    """Return the catalog of a pipeline's tables, and of branches of them.

    Raises ConfigError for an unknown metastore or option, UnsupportedError for a value that is not
    supported, and StorageError if a server does not respond.
    """
    catalog = load_catalog(settings.metastore, settings.warehouse, settings.catalog_options)
    return BranchCatalog(catalog)


def pipelines_folder(warehouse: str) -> str:
    """Return the folder of a warehouse that contains the folders of all pipelines."""
    return f"{warehouse}/.ingestd"


def pipeline_folder(warehouse: str, pipeline: str) -> str:
    """Return the folder of a pipeline's own files in a warehouse."""
    return f"{pipelines_folder(warehouse)}/{pipeline}"
