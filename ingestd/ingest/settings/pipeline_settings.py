"""The settings of one pipeline as frozen values, derived from the configuration without I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestd.ingest.settings.context import (
    RoutingConfig,
    SourceSettings,
    TableSettings,
    commit_user,
    section_of,
)
from ingestd.ingest.settings.error_policy import ErrorPolicy, UnreadablePolicy
from ingestd.ingest.settings.rejection import RejectionLimits
from ingestd.ingest.settings.watermark_rules import WatermarkRules
from ingestd.ingest.settings.wrong_format import WrongFormatThreshold

DEAD_LETTER_TABLE = "ingestd_dead_letters"
"""The default name of the dead-letter table."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of one micro-batch, in records, bytes, and numbers of tasks.

    A batch of at most `small_batch_records` records is decoded and written by one task. A chunk of
    records is limited to `max_chunk_records` and `max_chunk_bytes`; a record larger than
    `max_record_bytes` is rejected. `write_buffer_size` limits the rows of a table that a write task
    processes at a time, and `index_cache_bytes` the indexes that a worker caches, both in bytes.
    `write_tasks` is the number of tasks of the write stage; None uses the parallelism of the Spark
    session.
    """

    small_batch_records: int = 20_000
    max_chunk_records: int = 50_000
    max_chunk_bytes: int = 32 << 20
    max_record_bytes: int = 16 << 20
    write_buffer_size: int = 64 << 20
    index_cache_bytes: int = 64 << 20
    write_tasks: int | None = None


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """One pipeline: its sources, routing and tables, and the warehouse that it writes to.

    `formerly` are former names of the pipeline. `warehouse` is the root directory of the catalog;
    if the catalog is a server, only ingestd's own files are stored there. `catalog_options` are
    Paimon catalog options. `max_offsets_per_trigger` is the maximum number of offsets of each
    source in one micro-batch, and `trigger_seconds` the minimum time between the starts of two
    micro-batches. Dead letters are written to `dead_letter_topic` if it is set, else to
    `dead_letter_table`. `worker_memory` limits the memory of a Python worker, in bytes.
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
    wrong_format_threshold: WrongFormatThreshold = field(default_factory=WrongFormatThreshold)
    unreadable: UnreadablePolicy = field(default_factory=UnreadablePolicy)
    limits: BatchLimits = field(default_factory=BatchLimits)
    worker_memory: int = 4 << 30
    spark: Mapping[str, str] = field(default_factory=dict)
    commit_group_offsets: bool = True
    catalog_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    formerly: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The current name of the pipeline, followed by its former names."""
        return (self.name, *self.formerly)

    @property
    def commit_user(self) -> str:
        """The commit user of this pipeline, the same in all tables and after restarts."""
        return commit_user(self.name)

    @property
    def dead_letters(self) -> str:
        """The identifier "database.table" of the dead-letter table."""
        return f"{self.database}.{self.dead_letter_table}"

    def settings_of(self, identifier: str) -> TableSettings:
        """Return the settings of a target table, "database.table", as for a batch."""
        own = self.tables.get(section_of(identifier), TableSettings())
        return own.over(self.defaults).ordered()

    def watermark_rules(self, identifier: str) -> WatermarkRules | None:
        """Return how the watermarks of a target table are derived, or None if it has none."""
        if identifier == self.dead_letters:
            return None
        rules = self.settings_of(identifier).watermark
        return None if rules is None or rules.event_time == "none" else rules

    @property
    def is_bounded(self) -> bool:
        """Whether all sources have an end offset, so that the pipeline ends after reading them."""
        bounded = [source.kafka.is_bounded for source in self.sources.values()]
        return bool(bounded) and all(bounded)
