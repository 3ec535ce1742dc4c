"""The settings of one pipeline as frozen values: the validated configuration, before any I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestd.ingest.settings.context import (
    RoutingConfig,
    SourceSettings,
    TableSettings,
    commit_user,
)
from ingestd.ingest.settings.error_policy import ErrorPolicy, UnreadablePolicy
from ingestd.ingest.settings.rejection import RejectionLimits
from ingestd.ingest.settings.topic_trial import TrialLimits

DEAD_LETTER_TABLE = "ingestd_dead_letters"
"""The default name of the dead-letter table."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of one micro-batch, in records, bytes, and numbers of tasks.

    `small_batch_records`: a batch of at most this many records runs both stages in one task.
    `write_tasks`: tasks of the write stage; None uses the parallelism of the Spark session.
    `write_buffer_size`, `index_cache_bytes` are as in `BatchContext`; `worker_memory` bounds each
    Python worker, in bytes.
    """

    small_batch_records: int = 20_000
    max_chunk_records: int = 50_000
    max_chunk_bytes: int = 32 << 20
    max_record_bytes: int = 16 << 20
    write_buffer_size: int = 64 << 20
    index_cache_bytes: int = 64 << 20
    worker_memory: int = 4 << 30
    write_tasks: int | None = None


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """One pipeline: sources, routing and tables, and the warehouse it writes.

    `formerly` are its former names; `warehouse` is the root of the catalog, or of ingestd's own
    files if the catalog is a server; `catalog_options` have Paimon's names.
    `max_offsets_per_trigger` bounds the records of one source in one micro-batch;
    `trigger_seconds` is the minimum time between the starts of two micro-batches. Rejected records
    go to `dead_letter_topic` if it is set, else to `dead_letter_table`.
    """

    name: str
    warehouse: str
    metastore: str
    database: str
    sources: Mapping[str, SourceSettings]
    routing: RoutingConfig
    defaults: TableSettings
    tables: Mapping[str, TableSettings]
    max_offsets_per_trigger: Mapping[str, int]
    trigger_seconds: float = 1.0
    dead_letter_table: str = DEAD_LETTER_TABLE
    dead_letter_topic: str | None = None
    error_policy: ErrorPolicy = field(default_factory=ErrorPolicy)
    rejection_limits: RejectionLimits = field(default_factory=RejectionLimits)
    trial_limits: TrialLimits = field(default_factory=TrialLimits)
    unreadable: UnreadablePolicy = field(default_factory=UnreadablePolicy)
    limits: BatchLimits = field(default_factory=BatchLimits)
    spark: Mapping[str, str] = field(default_factory=dict)
    commit_group_offsets: bool = True
    catalog_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    formerly: tuple[str, ...] = ()

    @property
    def commit_user(self) -> str:
        """The commit user of this pipeline in every table it writes; stable over restarts."""
        return commit_user(self.name)

    @property
    def dead_letters(self) -> str:
        """Identifier of the dead-letter table."""
        return f"{self.database}.{self.dead_letter_table}"

    @property
    def is_bounded(self) -> bool:
        """Whether all sources have an end, so that the pipeline stops by itself."""
        bounded = [source.kafka.is_bounded for source in self.sources.values()]
        return bool(bounded) and all(bounded)
