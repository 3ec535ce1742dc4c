"""Both stages together: records in, rows of tables out."""

import pytest

from ingestd.errors import PolicyStopError
from ingestd.ingest.rows.blobs import receive
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.paimon.spec.data_types import DataType
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import DELETE, UPDATE_AFTER, Change, JsonChanges, record

FIXED = TableSettings(options={"bucket": "3"})


pytestmark = pytest.mark.usefixtures("json_changes")


def test_new_table_is_created_with_key_of_the_messages_and_holds_the_last_row_of_each_key() -> None:
    rig = Rig()
    rig.produce(
        record(Change({"id": 1, "note": "a"})),
        record(Change({"id": 2, "note": "b"})),
        record(Change({"id": 1, "note": "c"}, UPDATE_AFTER)),
        record(Change({"id": 2}, DELETE)),
    )
    result = rig.run()
    schema = rig.tables["lake.orders"].schema
    assert schema.primary_keys == ("id",)
    assert schema.options["bucket"] == "-1"
    assert rig.rows("orders") == [{"id": 1, "note": "c"}]
    assert result.counts.rows["lake.orders", DELETE] == 1
    assert result.counts.rows_of("lake.orders") == 4


@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize("defaults", [TableSettings(), FIXED], ids=["dynamic", "fixed"])
def test_any_number_of_slots_gives_the_same_rows_over_several_batches(
    slots: int, defaults: TableSettings
) -> None:
    rig = Rig(slots=slots, defaults=defaults)
    for batch in range(3):
        for partition in range(3):
            rig.produce(
                *(
                    record(Change({"id": i * 3 + partition, "n": batch}, UPDATE_AFTER))
                    for i in range(20)
                ),
                partition=partition,
            )
        rig.run()
    rig.produce(record(Change({"id": 60, "n": 2})))
    rig.run()
    assert rig.rows("orders") == sorted(({"id": i, "n": 2} for i in range(61)), key=repr)
    if defaults is not FIXED:
        index = rig.states["lake.orders"].index_entries.values()
        assert sum(entry.row_count for entry in index) == 61


def test_row_of_a_later_batch_wins_over_earlier_ones() -> None:
    rig = Rig()
    for values in ((5, 4, 3), (2, 1), (6,)):
        rig.produce(*(record(Change({"id": 1, "n": value}, UPDATE_AFTER)) for value in values))
        rig.run()
        assert rig.rows("orders") == [{"id": 1, "n": values[-1]}]


def test_key_that_changes_its_partition_keeps_the_order_of_the_source() -> None:
    rig = Rig(slots=2)
    rig.produce(record(Change({"id": 1, "n": 3}, UPDATE_AFTER, position=300)), partition=0)
    rig.produce(
        record(Change({"id": 1, "n": 1}, UPDATE_AFTER, position=100)),
        record(Change({"id": 1, "n": 2}, UPDATE_AFTER, position=200)),
        partition=1,
    )
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "n": 3}]


def test_added_and_widened_columns_are_found_in_one_round_and_nothing_is_written_before(
    json_changes: JsonChanges,
) -> None:
    json_changes.types = {"n": DataType("INT")}
    rig = Rig()
    rig.produce(record(Change({"id": 1, "n": 1})))
    rig.run()
    files = set(rig.io.files)
    json_changes.types = {}
    rig.produce(record(Change({"id": 2, "n": 1 << 40, "extra": "x"})))
    context = rig.context()
    result = rig.round(context, rig.ranges())
    assert result.runs_again
    assert not result.messages
    assert set(rig.io.files) == files
    rig.run()
    assert rig.tables["lake.orders"].schema.id == 1
    assert rig.rows("orders") == [
        {"id": 1, "n": 1, "extra": None},
        {"id": 2, "n": 1 << 40, "extra": "x"},
    ]


def test_finding_of_one_task_keeps_all_tasks_from_writing() -> None:
    rig = Rig(slots=4)
    rig.produce(*(record(Change({"id": i})) for i in range(9)))
    rig.run()
    files = set(rig.io.files)
    rig.produce(*(record(Change({"id": i})) for i in range(9)), partition=0)
    rig.produce(record(Change({"id": 1, "extra": 1})), partition=1)
    assert rig.round(rig.context(), rig.ranges()).runs_again
    assert set(rig.io.files) == files


def test_rows_after_a_finding_are_not_sent() -> None:
    rig = Rig()
    rig.produce(record(Change({"id": 1})))
    rig.run()
    rig.produce(*(record(Change({"id": 1, "extra": 1})), *(record(Change({"id": 2})),) * 6))
    pairs = list(decode_ranges(rig.context(), rig.ranges(), fetch=rig.fetch))
    received = receive(blob for _, blob in pairs)
    assert received.is_aborted
    assert not received.rows


def test_partitioned_table_keeps_rows_in_their_partitions() -> None:
    settings = {
        "orders": TableSettings(primary_keys=("day", "id"), partition_keys=("day",)),
    }
    rig = Rig(settings=settings, slots=3)
    rig.produce(*(record(Change({"id": i, "day": f"d{i % 3}", "n": i})) for i in range(12)))
    rig.run()
    assert len(rig.rows("orders")) == 12
    directories = {path.split("/")[3] for path in rig.io.files if "bucket-" in path}
    assert directories == {"day=d0", "day=d1", "day=d2"}


def test_covered_offsets_are_left_out_of_every_table() -> None:
    rig = Rig()
    rig.produce(record(Change({"id": 1, "n": 1})))
    rig.run()
    rig.produce(b"{", record(Change({"id": 2, "n": 2})), b"{", record(Change({"id": 3, "n": 3})))
    covered = {"covered": {"src": {"orders": {0: 3}}}}
    result = rig.run(table_changes={"lake.orders": covered, DEAD_LETTERS: covered})
    assert [row["id"] for row in rig.rows("orders")] == [1, 3]
    assert result.counts.skipped["lake.orders", "covered"] == 1
    assert [row["offset"] for row in rig.rows("ingestd_dead_letters")] == [3]
    assert result.counts.rejected == {("decode", "not-json"): 1}


def test_rejected_records_keep_their_bytes_and_coordinates_and_cost_no_neighbour() -> None:
    rig = Rig()
    good = record(Change({"id": 1}))
    rig.produce(good, b"\xff{broken", good, record(Change({"id": None})))
    result = rig.run()
    assert rig.rows("orders") == [{"id": 1}]
    dead_letters = rig.rows("ingestd_dead_letters", "offset", "stage", "reason", "value", "table")
    assert [(dead_letter["offset"], dead_letter["stage"]) for dead_letter in dead_letters] == [
        (1, "decode"),
        (3, "key"),
    ]
    assert dead_letters[0]["value"] == b"\xff{broken"
    assert dead_letters[1]["table"] == "lake.orders"
    assert {
        (rejected_record.offset, rejected_record.reason) for rejected_record in result.rejected
    } == {
        (1, "not-json"),
        (3, "null-key"),
    }


def test_record_that_fails_in_one_row_fails_whole() -> None:
    rig = Rig()
    rig.produce(
        record(Change({"id": 1, "n": 1})),
        record(Change({"id": 1}, DELETE), Change({"id": None, "n": 2})),
    )
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "n": 1}]


def test_oversized_record_becomes_a_dead_letter() -> None:
    rig = Rig(overrides={"max_record_bytes": 1000})
    huge = record(Change({"id": 2, "note": "x" * 2000}))
    rig.produce(record(Change({"id": 1, "note": "a"})), huge)
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [1]
    assert rig.rows("ingestd_dead_letters", "reason", "value") == [
        {"reason": "too-large", "value": huge}
    ]


def test_counts_close_the_books() -> None:
    rig = Rig(routing=RoutingConfig(excluding_tables="junk"))
    rig.produce(
        record(Change({"id": 1})),
        None,
        b"{",
        record(Change({"id": 1}, table="junk")),
    )
    counts = rig.run().counts
    assert counts.records[SourcePartition("src", "orders", 0)] == 4
    assert counts.bytes[SourcePartition("src", "orders", 0)] == sum(
        len(value or b"") + 1 for value in rig.logs["orders", 0]
    )
    assert counts.control == 1
    assert counts.skipped["", "excluded"] == 1
    assert counts.rows_of("lake.orders") == 1
    assert counts.rows_of(DEAD_LETTERS) == 1
    assert counts.files["lake.orders"] == 1
    assert counts.file_bytes["lake.orders"] > 0


def test_shards_are_merged_when_told_so() -> None:
    rig = Rig(routing=RoutingConfig(merge_shards=True))
    rig.produce(record(Change({"id": 1}), Change({"id": 2}, schema="crm")))
    rig.run()
    assert rig.rows("orders") == [{"id": 1}, {"id": 2}]


def test_a_table_that_is_not_included_stops_the_pipeline_when_told_so() -> None:
    rig = Rig(routing=RoutingConfig(including_tables="items", unmatched="fail"))
    rig.produce(record(Change({"id": 1})))
    with pytest.raises(PolicyStopError, match=r"db\.shop\.orders"):
        rig.run()


@pytest.mark.parametrize("defaults", [TableSettings(), FIXED], ids=["dynamic", "fixed"])
def test_bounded_memory_gives_more_files_and_the_same_rows(defaults: TableSettings) -> None:
    rows = [record(Change({"id": i % 7, "n": i}, UPDATE_AFTER)) for i in range(60)]
    whole = Rig(defaults=defaults)
    whole.produce(*rows)
    pieces = Rig(defaults=defaults, overrides={"write_buffer_size": 1})
    pieces.produce(*rows)
    assert pieces.run().counts.files["lake.orders"] > whole.run().counts.files["lake.orders"]
    assert pieces.rows("orders") == whole.rows("orders")
    assert [row["n"] for row in pieces.rows("orders")] == [56, 57, 58, 59, 53, 54, 55]
