"""Convert a configuration to the frozen settings of the pipeline."""

from dataclasses import replace
from pathlib import Path as FilePath

from ingestd.cdc.columns.type_mapping import read_type_mapping
from ingestd.config.catalog_options import catalog_options
from ingestd.config.load import LoadedConfig
from ingestd.config.model import CatalogSection, Config, ProcessingSection
from ingestd.config.registry_section import registered_formats
from ingestd.config.routing_section import routing_of
from ingestd.config.source_section import SourceSection, positions_of
from ingestd.config.table_sections import settings_of
from ingestd.ingest.computed.metadata_columns import needs_headers
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.settings.pipeline_settings import BatchLimits, PipelineSettings
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.io.file_io import absolute_path


def pipeline_settings(loaded: LoadedConfig) -> PipelineSettings:
    """Return the settings of the pipeline; relative paths refer to the configuration's folder."""
    config = loaded.config
    pipeline = config.pipeline
    return PipelineSettings(
        name=pipeline.name,
        warehouse=_located(config.warehouse.path, loaded.folder),
        metastore=config.warehouse.catalog.metastore,
        catalog_options={
            **catalog_options(config.warehouse.catalog, loaded.folder),
            **config.warehouse.options,
        },
        database=config.warehouse.database,
        sources={
            name: replace(
                _source(name, section, loaded.folder), header_columns=_has_header_columns(config)
            )
            for name, section in config.sources.items()
        },
        routing=replace(
            routing_of(config.routing), case_sensitive=_case_sensitive(config.warehouse.catalog)
        ),
        defaults=settings_of(config.defaults),
        tables={name: settings_of(section) for name, section in config.tables.items()},
        max_offsets_per_trigger={
            name: section.max_offsets_per_trigger for name, section in config.sources.items()
        },
        trigger_seconds=pipeline.trigger,
        dead_letter_table=config.errors.dead_letter_table,
        dead_letter_topic=config.errors.dead_letter_topic,
        error_policy=config.errors.error_policy,
        rejection_limits=config.errors.rejection_limits,
        wrong_format_threshold=config.errors.wrong_format_threshold,
        unreadable=config.errors.unreadable_policy,
        limits=_limits(config.processing),
        worker_memory=config.processing.worker_memory,
        spark=dict(config.spark),
        commit_group_offsets=pipeline.commit_group_offsets,
        formerly=pipeline.formerly,
    )


def _case_sensitive(section: CatalogSection) -> bool:
    return section.metastore == "rest" or (
        section.metastore == "filesystem" and section.case_sensitive
    )


def _has_header_columns(config: Config) -> bool:
    sections = (config.defaults, *config.tables.values())
    return any(needs_headers(section.metadata_columns or ()) for section in sections)


def _source(name: str, section: SourceSection, folder: FilePath) -> SourceSettings:
    kafka = KafkaSource(
        name=name,
        topics=section.topics,
        topic_pattern=section.topic_pattern,
        topic_exclude=section.topic_exclude,
        properties=dict(section.kafka),
        startup_mode=section.startup_mode,
        on_offset_out_of_range=section.on_offset_out_of_range,
        startup_timestamp=section.startup_timestamp_millis,
        startup_offsets=positions_of(section, section.startup_specific_offsets),
        bounded_mode=section.bounded_mode,
        bounded_timestamp=section.bounded_timestamp_millis,
        bounded_offsets=positions_of(section, section.bounded_specific_offsets),
    )
    settings = replace(
        registered_formats(section.schema_registry, folder),
        type_mapping=read_type_mapping(section.type_mapping, section.format),
    )
    return SourceSettings(kafka, section.format, settings)


def _limits(section: ProcessingSection) -> BatchLimits:
    return BatchLimits(
        small_batch_records=section.small_batch_records,
        max_chunk_records=section.max_chunk_records,
        max_chunk_bytes=section.max_chunk_bytes,
        max_record_bytes=section.max_record_bytes,
        write_buffer_size=section.write_buffer_size,
        index_cache_bytes=section.index_cache_bytes,
        write_tasks=section.write_tasks,
    )


def _located(path: str, folder: FilePath) -> str:
    """Return the absolute form of a path or URI; a relative path is resolved against `folder`."""
    return absolute_path(path if ":" in path else str(folder / path))
