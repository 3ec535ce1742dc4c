"""When changes were made, for the metadata column `op_ts`."""

from collections.abc import Sequence

from ingestd.cdc.base import describe_format, format_descriptors
from ingestd.cdc.schema_lookup import Framing
from ingestd.errors import UnsupportedError
from ingestd.ingest.values.row_groups import Values

_CONFLUENT = Framing()


def event_times(
    data_format: str, messages: Sequence[bytes | None], framing: Framing = _CONFLUENT
) -> Values:
    """Return milliseconds since 1970 of each message; null where it does not state a time.

    `framing` is how schema ids precede messages. Raises UnsupportedError for a data format whose
    messages do not state the time of a change.
    """
    event_time = describe_format(data_format).event_time
    if event_time is None:
        known = sorted(one.name for one in format_descriptors() if one.event_time)
        raise UnsupportedError(
            f"metadata column 'op_ts': the data format '{data_format}' is not known to tell the "
            f"time of a change, only {', '.join(known)}; leave it out, or take "
            "'timestamp', the time of the record"
        )
    return event_time.of_messages([message and framing.json_body(message) for message in messages])
