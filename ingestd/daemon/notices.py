"""Notices of a pipeline: events for people and programs that do not watch its metrics.

A notice is an event in the structured JSON mode of CloudEvents 1.0, signed as Standard Webhooks
define.
"""

import base64
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from ingestd.daemon.recent_history import schema_differences
from ingestd.errors import IngestdError
from ingestd.ingest.settings.wrong_format import SetAside
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.log import redact
from ingestd.paimon.spec.data_types import encode_type
from ingestd.paimon.spec.table_schema import TableSchema

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """An event; `at` is in seconds since 1970, `data` is its JSON document.

    `source` is the pipeline as a URI reference, `subject` is the table, topic, topic partition or
    pipeline that the event is about.
    """

    id: str
    type: str
    source: str
    subject: str
    at: float
    data: Mapping[str, Any]

    def body(self) -> bytes:
        """Return the HTTP request body: the event as JSON, in CloudEvents' structured mode."""
        document = {
            "specversion": "1.0",
            "id": self.id,
            "type": self.type,
            "source": self.source,
            "subject": self.subject,
            "time": datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds"),
            "datacontenttype": "application/json",
            "data": self.data,
        }
        return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


def signature_headers(key: bytes, event_id: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers of Standard Webhooks that sign a body sent at `seconds` since 1970.

    `key` is the signing key, `event_id` the id of the event in `body`.
    """
    signed = b".".join((event_id.encode(), str(seconds).encode(), body))
    digest = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{digest}",
    }


TABLE_CREATED = "ingestd.table.created"
SCHEMA_CHANGED = "ingestd.table.schema-changed"
TOPIC_SET_ASIDE = "ingestd.topic.set-aside"
PARTITION_SET_ASIDE = "ingestd.partition.set-aside"
PIPELINE_STOPPED = "ingestd.pipeline.stopped"


class Notices:
    """Creates notices of the events of a pipeline, and passes each to `offer`.

    `offer` must not wait for the receiver. `clock` returns seconds since 1970.
    """

    def __init__(
        self,
        pipeline: str,
        offer: Callable[[CloudEvent], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pipeline = pipeline
        self._offer = offer
        self._clock = clock

    def table_created(self, table: str, schema: TableSchema) -> None:
        """Send a notice of a new table, with its columns and keys."""
        columns = [
            {"name": column.name, "type": encode_type(column.type)} for column in schema.fields
        ]
        keys = {
            "primary_keys": list(schema.primary_keys),
            "partition_keys": list(schema.partition_keys),
        }
        self._report(TABLE_CREATED, table, {"table": table, "columns": columns, **keys})

    def schema_changed(self, table: str, before: TableSchema, after: TableSchema) -> None:
        """Send a notice of a table's new schema, with the changes."""
        data = {"table": table, "schema_id": after.id, "changes": schema_differences(before, after)}
        self._report(SCHEMA_CHANGED, table, data)

    def topic_set_aside(self, topic: SetAside, message: str) -> None:
        """Send a notice of a topic that is no longer read, with the reason."""
        data = {
            "source": topic.source,
            "topic": topic.topic,
            "records": topic.records,
            "rejected": topic.rejected,
            "message": redact(message),
        }
        self._report(TOPIC_SET_ASIDE, f"{topic.source}/{topic.topic}", data)

    def partition_set_aside(self, unread: OffsetRange, message: str) -> None:
        """Send a notice of a topic partition that is no longer read, with the reason.

        `unread` is the offset range that is not read, from its `start` on.
        """
        data = {
            "source": unread.source,
            "topic": unread.topic,
            "partition": unread.partition,
            "offset": unread.start,
            "message": redact(message),
        }
        subject = f"{unread.source}/{unread.topic}/{unread.partition}"
        self._report(PARTITION_SET_ASIDE, subject, data)

    def pipeline_stopped(self, error: BaseException | None, exit_code: int) -> None:
        """Send a notice of the end of the pipeline; `error` is None if it ended as requested."""
        message = error.message if isinstance(error, IngestdError) else str(error)
        data = {
            "exit_code": exit_code,
            "error_type": None if error is None else type(error).__name__,
            "message": None if error is None else redact(message),
        }
        self._report(PIPELINE_STOPPED, self._pipeline, data)

    def _report(self, kind: str, subject: str, data: Mapping[str, Any]) -> None:
        source = f"/ingestd/pipelines/{quote(self._pipeline, safe='')}"
        self._offer(CloudEvent(str(uuid.uuid4()), kind, source, subject, self._clock(), data))
