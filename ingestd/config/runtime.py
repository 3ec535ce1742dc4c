"""From the configuration to the frozen settings that everything below works with."""

from pathlib import Path as FilePath

from ingestd.config.checks import routing_of, settings_of
from ingestd.config.load import LoadedConfig
from ingestd.config.model import ProcessingSection, SourceSection
from ingestd.ingest.context import SourceSettings
from ingestd.ingest.pipeline_settings import BatchLimits, PipelineSettings
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.io.file_io import absolute_path


def pipeline_settings(loaded: LoadedConfig) -> PipelineSettings:
    """The settings of the pipeline; relative paths start from the folder of the file."""
    config = loaded.config
    pipeline = config.pipeline
    warehouse = _located(config.warehouse.path, loaded.folder)
    checkpoint = pipeline.checkpoint or f"{warehouse}/.ingestd/{pipeline.name}/checkpoint"
    return PipelineSettings(
        name=pipeline.name,
        warehouse=warehouse,
        metastore=config.warehouse.catalog.metastore,
        database=config.warehouse.database,
        checkpoint=_located(checkpoint, loaded.folder),
        sources={name: _source(name, one) for name, one in config.sources.items()},
        routing=routing_of(config),
        defaults=settings_of(config.defaults),
        tables={name: settings_of(one) for name, one in config.tables.items()},
        max_offsets_per_trigger={
            name: one.max_offsets_per_trigger for name, one in config.sources.items()
        },
        trigger_seconds=pipeline.trigger,
        dead_letter_table=config.errors.dead_letter_table,
        limits=_limits(config.processing),
        spark=dict(config.spark),
        commit_group_offsets=pipeline.commit_offsets_to_kafka,
    )


def _source(name: str, section: SourceSection) -> SourceSettings:
    kafka = KafkaSource(
        name=name,
        topics=section.topics,
        topic_pattern=section.topic_pattern,
        topic_exclude=section.topic_exclude,
        properties=dict(section.kafka),
        startup_mode=section.scan_startup_mode,
        on_offset_out_of_range=section.on_offset_out_of_range,
    )
    return SourceSettings(kafka, section.format)


def _limits(section: ProcessingSection) -> BatchLimits:
    return BatchLimits(
        small_batch_records=section.small_batch_records,
        max_chunk_records=section.max_chunk_records,
        max_chunk_bytes=section.max_chunk_bytes,
        max_record_bytes=section.max_record_bytes,
        slots=section.write_tasks,
    )


def _located(path: str, folder: FilePath) -> str:
    """An absolute path; a plain relative one starts from the folder."""
    return absolute_path(path if ":" in path else str(folder / path))
