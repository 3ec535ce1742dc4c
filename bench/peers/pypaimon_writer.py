"""The program of the peer pypaimon: confluent-kafka, orjson, pyarrow and pypaimon's batch writer.

    python pypaimon_writer.py BOOTSTRAP TOPIC WAREHOUSE COMMIT_EVERY OPTION=VALUE ...

It runs in an environment of its own and prints one line of JSON, as the programs in Java do. Row
kinds go through a column of the table, which is how pypaimon takes them.
"""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from pypaimon import CatalogFactory, Schema

DATABASE, TABLE = "bench", "bench.orders"
ROW_KIND = "row_kind"
KINDS = {"r": "+I", "c": "+I", "u": "+U", "d": "-D"}
DECIMAL = pa.decimal128(12, 2)
FIELDS: dict[str, pa.DataType] = {
    "order_id": pa.int64(),
    "customer_id": pa.int64(),
    "status": pa.string(),
    "amount": DECIMAL,
    "note": pa.string(),
    "qty": pa.int32(),
    "price": pa.float64(),
    "created_at": pa.int64(),
    "updated_at": pa.int64(),
    "region": pa.string(),
}
ON_WIRE = pa.schema([(n, pa.string() if t == DECIMAL else t) for n, t in FIELDS.items()])
BATCH = 50_000
PATIENCE_SECONDS = 600


def messages(bootstrap: str, topic: str) -> Iterator[list[bytes]]:
    """Values in lists, up to the ends that the topic has at the start."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench-pypaimon",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 2,  # the default, a second, idles most of the time
            "queued.max.messages.kbytes": 262_144,
        }
    )
    known = consumer.list_topics(topic, 20).topics[topic].partitions
    places = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in known]
    left = 0
    for place in places:
        low, high = consumer.get_watermark_offsets(place, 20)
        left += high - low
    consumer.assign(places)
    deadline = time.time() + PATIENCE_SECONDS
    while left and time.time() < deadline:
        taken = consumer.consume(min(BATCH, left), 1.0)
        values = [one.value() or b"" for one in taken if one.error() is None]
        left -= len(values)
        if values:
            yield values
    consumer.close()
    if left:
        raise SystemExit(f"{left} events never came")


def parsed(values: list[bytes]) -> pa.RecordBatch:
    """The row of each event (after, or before of a delete) with its row kind."""
    rows, kinds = [], []
    for value in values:
        event = orjson.loads(value)
        rows.append(event["after"] or event["before"])
        kinds.append(KINDS[event["op"]])
    columns = pa.RecordBatch.from_pylist(rows, ON_WIRE).columns
    typed = [pc.cast(c, t) for c, t in zip(columns, FIELDS.values(), strict=True)]
    return pa.RecordBatch.from_arrays([*typed, pa.array(kinds)], [*FIELDS, ROW_KIND])


def main(bootstrap: str, topic: str, warehouse: str, commit_every: str, *options: str) -> None:
    """Write the topic, a commit for this many events."""
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database(DATABASE, True)
    fields = [pa.field(name, kind, name != "order_id") for name, kind in FIELDS.items()]
    schema = Schema.from_pyarrow_schema(
        pa.schema([*fields, pa.field(ROW_KIND, pa.string())]),
        primary_keys=["order_id"],
        options={"rowkind.field": ROW_KIND, **dict(option.split("=", 1) for option in options)},
    )
    catalog.create_table(TABLE, schema, True)
    builder = catalog.get_table(TABLE).new_batch_write_builder()
    first = events = pending = 0
    write = None
    for values in messages(bootstrap, topic):
        first = first or int(time.time() * 1000)
        write = write or builder.new_write()
        write.write_arrow_batch(parsed(values))
        events += len(values)
        pending += len(values)
        if pending >= int(commit_every):
            commit(builder, write)
            write, pending = None, 0
    if write is not None:
        commit(builder, write)
    print(json.dumps({"first_ms": first, "end_ms": int(time.time() * 1000), "events": events}))


def commit(builder: Any, write: Any) -> None:  # noqa: ANN401  (of pypaimon, without types)
    """Commit what was written, and close both."""
    one = builder.new_commit()
    one.commit(write.prepare_commit())
    write.close()
    one.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
