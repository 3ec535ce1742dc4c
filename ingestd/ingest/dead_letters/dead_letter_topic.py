"""Send dead letters to a topic instead of a table: the original record, with the cause in headers.

Tasks of the write stage send dead letters before the batch is committed. A batch that runs again
sends its dead letters again, so readers of the topic must deduplicate them by source, topic,
partition and offset.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.ingest.dead_letters.dead_letter import COLUMNS
from ingestd.ingest.settings.context import BatchContext
from ingestd.kafka.producer import Outgoing, produce

PREFIX = "ingestd."
"""Prefix of header names; a column name of the dead-letter table follows."""
_RECORD = ("key", "value", "headers")
_MILLIS = 1000


def send_dead_letters(context: BatchContext, tables: Sequence[pa.Table]) -> int:
    """Send rows of the dead-letter table to the dead-letter topic; return their number.

    `tables` must not be empty. Each message is sent to the Kafka cluster of its original record.
    Raises ValueError if the context has no dead-letter topic, SourceError if the brokers do not
    accept all messages, PolicyStopError for a message larger than the topic allows, and ConfigError
    for invalid properties.
    """
    if context.dead_letter_topic is None:
        raise ValueError("the context has no dead-letter topic")
    rows = pa.concat_tables(tables)
    sent = 0
    for source in sorted(map(str, set(rows.column("source").to_pylist()))):
        mine = rows.filter(pc.equal(rows.column("source"), pa.scalar(source)))
        kafka = context.sources[source].kafka
        sent += produce(kafka, context.dead_letter_topic, dead_letter_messages(mine))
    return sent


def dead_letter_messages(rows: pa.Table) -> Iterator[Outgoing]:
    """Yield rows of the dead-letter table as messages with the original key, value and headers.

    Each other column that is not null becomes a further header, whose name starts with `PREFIX`.
    """
    names = [name for name, _ in COLUMNS]
    metadata = [name for name in names if name not in _RECORD]
    for batch in rows.select(names).to_batches():
        yield from (_message(row, metadata) for row in batch.to_pylist())


def _message(row: Mapping[str, Any], names: Iterable[str]) -> Outgoing:
    texts = [(f"{PREFIX}{name}", _text(row[name])) for name in names if row[name] is not None]
    about = ((name, text.encode()) for name, text in texts)
    return Outgoing(row["key"], row["value"], (*record_headers(row), *about))


def record_headers(row: Mapping[str, Any]) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of the original record of a row of the dead-letter table, or ()."""
    return tuple((header["name"], header["value"]) for header in row.get("headers") or ())


def _text(value: object) -> str:
    """Return a header value as text; a time is in milliseconds since the epoch, as in Kafka."""
    return str(round(value.timestamp() * _MILLIS)) if isinstance(value, datetime) else str(value)
