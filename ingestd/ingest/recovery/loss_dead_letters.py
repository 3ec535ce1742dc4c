"""Dead letters that the driver writes at the start of a pipeline, for accepted losses."""

import json
from collections.abc import Sequence

from ingestd.cdc.base import RejectedRecord
from ingestd.ingest.dead_letters.dead_letter import COLUMNS, DeadLetter, dead_letter_rows
from ingestd.ingest.dead_letters.dead_letter_topic import dead_letter_messages
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.rejection import GAP_STAGE
from ingestd.ingest.tables.managed_table import ManagedTable
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.producer import produce
from ingestd.paimon.library.row_writer import RowWriter
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState
from ingestd.paimon.table.write.commit_message import CommitMessage


def table_dropped_dead_letter(name: str, registry: TableRegistry) -> DeadLetter:
    """Return the dead letter for a dropped table, with the offsets at which the table continues."""
    progress = registry.progress
    # If several topics have the same name, the existing topic is last and takes precedence.
    topics = sorted(progress.topics.items(), key=lambda item: item[0] in registry.keys.values())
    starts = {
        f"{topic.topic}/{partition}": position.offset
        for key, topic in sorted(topics, key=lambda item: item[1].topic)
        for partition, position in sorted(progress.end.get(key, {}).items())
    }
    text = (
        "the table was dropped, or lost its snapshots; it receives records from these offsets on: "
        f"{json.dumps(starts)}"
    )
    return _without_record(name, "table-dropped", text)


def overwritten_dead_letter(name: str, table: ManagedTable) -> DeadLetter:
    """Return the dead letter for a table whose rows another writer replaced."""
    text = (
        f"overwritten by a program without a progress record in snapshot {table.overwritten_by}: "
        "rows that it left out are not read again, unless `ingestd begin` is used"
    )
    return _without_record(name, "table-overwritten", text)


def _without_record(table: str, reason: str, text: str) -> DeadLetter:
    return DeadLetter(RejectedRecord("", -1, -1, -1, GAP_STAGE, reason, text, None, None), table)


def write_dead_letters(
    settings: PipelineSettings,
    table: FileStoreTable,
    state: TableState,
    dead_letters: Sequence[tuple[str, DeadLetter]],
) -> list[CommitMessage]:
    """Write (source, dead letter) pairs to the dead-letter topic if one is set, else to the table.

    Returns the commit messages of the table. Raises StorageError if writing to the table fails, and
    SourceError if sending to the topic fails.
    """
    messages: list[CommitMessage] = []
    for source in sorted({source for source, _ in dead_letters}):
        mine = [dead_letter for origin, dead_letter in dead_letters if origin == source]
        rows = dead_letter_rows(settings.name, source, mine).select([name for name, _ in COLUMNS])
        if settings.dead_letter_topic is not None:
            name = source or min(settings.sources)
            kafka = settings.sources[name].kafka
            produce(kafka, settings.dead_letter_topic, dead_letter_messages(rows))
            continue
        row_writer = RowWriter(table, state, settings.commit_user, fresh=False)
        messages += row_writer.write(rows)
    return messages
