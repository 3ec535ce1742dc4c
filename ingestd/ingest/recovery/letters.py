"""Dead letters that the driver writes itself: what it has accepted at the start of a pipeline."""

import json
from collections.abc import Sequence

from ingestd.cdc.base import Rejected
from ingestd.ingest.letters.dead_letter import COLUMNS, DeadLetter, dead_letter_rows
from ingestd.ingest.letters.letter_topic import letter_messages
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.rejection import GAP_STAGE
from ingestd.ingest.tables.lake import Lake
from ingestd.ingest.tables.lake_table import LakeTable
from ingestd.kafka.producing import produce
from ingestd.paimon.library.placing import Placer
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState
from ingestd.paimon.table.write.commit_message import CommitMessage


def table_dropped_letter(name: str, lake: Lake) -> DeadLetter:
    """Return the letter about a table that had rows and is gone: it begins where all others are."""
    progress = lake.progress
    # Of topics of one name the one that exists comes last, and counts.
    topics = sorted(progress.topics.items(), key=lambda item: item[0] in lake.keys.values())
    starts = {
        f"{topic.topic}/{partition}": position.offset
        for key, topic in sorted(topics, key=lambda item: item[1].topic)
        for partition, position in sorted(progress.end.get(key, {}).items())
    }
    text = (
        "the table was dropped, or lost its snapshots; it takes what comes from these offsets on: "
        f"{json.dumps(starts)}"
    )
    return _without_record(name, "table-dropped", text)


def overwritten_letter(name: str, table: LakeTable) -> DeadLetter:
    """Return the letter about a table whose rows another writer replaced."""
    text = (
        f"overwritten by a program without a progress record in snapshot {table.overwritten_by}: "
        "what was left out then is not read again, unless `ingestd begin` says so"
    )
    return _without_record(name, "table-overwritten", text)


def _without_record(table: str, reason: str, text: str) -> DeadLetter:
    return DeadLetter(Rejected("", -1, -1, -1, GAP_STAGE, reason, text, None, None), table)


def write_letters(
    settings: PipelineSettings,
    table: FileStoreTable,
    state: TableState,
    letters: Sequence[tuple[str, DeadLetter]],
) -> list[CommitMessage]:
    """Write (source, letter) pairs as files of the dead letter table, or send them to the topic.

    Raises StorageError, and SourceError where they go to a topic.
    """
    messages: list[CommitMessage] = []
    for source in sorted({source for source, _ in letters}):
        mine = [letter for one, letter in letters if one == source]
        rows = dead_letter_rows(settings.name, source, mine).select([name for name, _ in COLUMNS])
        if settings.dead_letter_topic is not None:
            name = source or min(settings.sources)
            kafka = settings.sources[name].kafka
            produce(kafka, settings.dead_letter_topic, letter_messages(rows))
            continue
        placer = Placer(table, state, settings.commit_user, fresh=False)
        messages += placer.write(rows)
    return messages
