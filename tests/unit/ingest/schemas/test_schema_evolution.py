"""Findings become first schemas and schema changes, or a refusal that says what to do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ingestd.errors import ConfigError, SchemaConflictError, UnsupportedError
from ingestd.ingest.rows.conform import columns_beyond
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.schemas.schema_evolution import Evolution, plan
from ingestd.ingest.settings.context import QualifiedSourceTable, TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.stages.findings import DiscoveryLog
from ingestd.paimon.spec.data_types import DataType, parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import AddColumn, UpdateColumnType
from tests.support.ingest_rig import Rig

SOURCE_TABLE = QualifiedSourceTable("src", "db", "shop", "orders")
ORDERS = "lake.orders"


def found(
    columns: Mapping[str, str],
    keys: tuple[str, ...] = ("id",),
    *,
    offset: int = 0,
    fresh: bool = True,
    partition: int = 0,
) -> Discovery:
    types = {name: parse_type(text) for name, text in columns.items()}
    return Discovery(ORDERS, SOURCE_TABLE, types, keys, "orders", partition, offset, fresh)


def planned(*discoveries: Discovery, rig: Rig | None = None, **settings: Any) -> Evolution:
    """What is planned where all that may not be stops the pipeline."""
    rig = rig or Rig(slots=4)
    settings.setdefault("evolution", EvolutionPolicy(on_refused="fail"))
    rig.settings = {"orders": TableSettings(**settings)}
    return plan(rig.context(), discoveries, now_ms=9)


def existing(columns: Mapping[str, str], keys: tuple[str, ...] = ("id",), **options: str) -> Rig:
    rig = Rig()
    typed = [(name, parse_type(text)) for name, text in columns.items()]
    rig.create(ORDERS, new_schema(typed, keys, (), options, 0))
    return rig


def types_of(evolution: Evolution) -> dict[str, str]:
    return {field.name: str(field.type) for field in evolution.creates[ORDERS].fields}


def test_first_schema_has_all_columns_in_order_of_sight_and_the_message_key() -> None:
    later = found({"id": "BIGINT", "c": "DATE"}, offset=50)
    first = found({"id": "BIGINT", "b": "INT"}, offset=3)
    evolution = planned(later, first)
    assert list(types_of(evolution).items()) == [
        ("id", "BIGINT NOT NULL"),
        ("b", "INT"),
        ("c", "DATE"),
    ]
    schema = evolution.creates[ORDERS]
    assert schema.primary_keys == ("id",)
    assert schema.time_millis == 9
    assert schema.options == {"bucket": "-1", "dynamic-bucket.assigner-parallelism": "4"}


def test_types_found_by_different_tasks_are_merged_before_the_table_exists() -> None:
    evolution = planned(found({"id": "INT", "n": "INT"}), found({"id": "INT", "n": "BIGINT"}))
    assert types_of(evolution)["n"] == "BIGINT"


def test_unlike_types_of_a_new_column_become_text() -> None:
    evolution = planned(found({"id": "INT", "n": "DOUBLE"}), found({"id": "INT", "n": "STRING"}))
    assert types_of(evolution)["n"] == "STRING"


def test_small_integer_keys_get_room_and_other_columns_do_not() -> None:
    evolution = planned(found({"id": "SMALLINT", "n": "SMALLINT"}))
    assert types_of(evolution) == {"id": "INT NOT NULL", "n": "SMALLINT"}


def test_declared_types_win() -> None:
    declared = {"id": DataType("SMALLINT"), "n": parse_type("DECIMAL(10, 2)")}
    evolution = planned(found({"id": "SMALLINT", "n": "STRING"}), column_types=declared)
    assert types_of(evolution) == {"id": "SMALLINT NOT NULL", "n": "DECIMAL(10, 2)"}


def test_configured_keys_partitions_and_options_are_used() -> None:
    evolution = planned(
        found({"id": "INT", "day": "DATE"}),
        primary_keys=("day", "id"),
        partition_keys=("day",),
        options={"bucket": "2", "file.compression": "zstd"},
    )
    schema = evolution.creates[ORDERS]
    assert schema.primary_keys == ("day", "id")
    assert schema.partition_keys == ("day",)
    assert schema.options == {"bucket": "2", "file.compression": "zstd"}


def test_key_comes_from_the_first_message_that_has_one() -> None:
    evolution = planned(
        found({"id": "INT"}, keys=(), offset=1), found({"id": "INT"}, keys=("id",), offset=2)
    )
    assert evolution.creates[ORDERS].primary_keys == ("id",)


def test_a_table_that_cannot_be_is_refused_and_others_are_created() -> None:
    other = replace(found({"id": "INT"}), table="lake.items")
    rig = Rig()
    rig.settings = {"orders": TableSettings(primary_keys=("id", "day"))}
    evolution = plan(rig.context(), [found({"id": "INT"}), other], now_ms=9)
    assert set(evolution.creates) == {"lake.items"}
    assert evolution.refused[ORDERS][:2] == ("schema", "impossible-table")
    assert "'day' is not among" in evolution.refused[ORDERS].message


def test_key_column_that_does_not_occur_is_named() -> None:
    with pytest.raises(SchemaConflictError, match=r"'day' is not among.*offset 0"):
        planned(found({"id": "INT"}), primary_keys=("id", "day"))


def test_option_that_is_not_supported_is_refused_before_the_table_is_created() -> None:
    with pytest.raises((UnsupportedError, ConfigError), match="merge-engine"):
        planned(found({"id": "INT"}), options={"merge-engine": "newest-wins"})


def test_columns_that_options_need_are_created_from_what_is_declared() -> None:
    options = {"merge-engine": "aggregation", "fields.total.aggregate-function": "sum"}
    evolution = planned(
        found({"id": "INT"}), options=options, column_types={"total": parse_type("BIGINT")}
    )
    assert evolution.creates[ORDERS].field_names == ("id", "total")
    with pytest.raises(ConfigError, match=r"table lake\.orders .*names column 'total'"):
        planned(found({"id": "INT"}), options=options)


def test_new_and_wider_columns_are_one_set_of_changes() -> None:
    rig = existing({"id": "INT", "n": "INT", "s": "VARCHAR(5)"})
    evolution = planned(
        found({"n": "BIGINT", "x": "DATE"}, fresh=False),
        found({"s": "STRING", "x": "DATE"}, fresh=False),
        rig=rig,
    )
    assert evolution.creates == {}
    assert evolution.changes == {
        ORDERS: (
            UpdateColumnType("n", DataType("BIGINT")),
            AddColumn("x", DataType("DATE")),
            UpdateColumnType("s", DataType("STRING")),
        )
    }


def test_narrower_finding_changes_nothing() -> None:
    rig = existing({"id": "INT", "n": "BIGINT"})
    assert planned(found({"n": "INT"}, fresh=False), rig=rig) == Evolution({}, {})


def test_not_null_column_stays_so_when_it_is_widened() -> None:
    rig = existing({"id": "INT", "n": "INT NOT NULL"})
    evolution = planned(found({"n": "BIGINT"}, fresh=False), rig=rig)
    assert evolution.changes[ORDERS] == (UpdateColumnType("n", parse_type("BIGINT NOT NULL")),)


def test_key_that_would_change_its_type_is_refused_with_the_way_out() -> None:
    rig = existing({"id": "INT"})
    with pytest.raises(
        SchemaConflictError, match=r"'id' is INT NOT NULL.*'id: BIGINT'.*column-types"
    ):
        planned(found({"id": "BIGINT"}, fresh=False), rig=rig)


def test_column_whose_types_never_meet_is_refused_with_both() -> None:
    rig = existing({"id": "INT", "at": "TIMESTAMP(6)"})
    with pytest.raises(
        SchemaConflictError, match=r"'at' is TIMESTAMP\(6\).*partition 3, offset 8.*STRING"
    ):
        planned(found({"at": "STRING"}, fresh=False, offset=8, partition=3), rig=rig)


def test_type_that_files_cannot_be_cast_to_is_refused() -> None:
    rig = existing({"id": "INT", "at": "TIME(3)"})
    with pytest.raises(SchemaConflictError, match="cannot be changed"):
        planned(found({"at": "TIME(6)"}, fresh=False), rig=rig)


def test_a_type_that_iceberg_lacks_is_refused_by_the_policy_where_its_metadata_is_written() -> None:
    rig = existing({"id": "INT"}, **{"metadata.iceberg.storage": "table-location"})
    with pytest.raises(
        SchemaConflictError, match=r"column 'at' as TIME\(3\), but TIME\(3\) has no"
    ):
        planned(found({"at": "TIME(3)"}), rig=rig)
    kept = EvolutionPolicy(on_refused="dead-letter")
    assert planned(found({"at": "TIME(3)"}), rig=rig, evolution=kept).changes == {}
    taken = planned(found({"at": "TIMESTAMP(3)"}), rig=rig).changes[ORDERS]
    assert taken == (AddColumn("at", DataType("TIMESTAMP", precision=3)),)


def test_columns_beyond_a_schema() -> None:
    schema = new_schema([("id", DataType("INT")), ("n", DataType("BIGINT"))], ("id",), (), {}, 0)
    types = {"id": DataType("SMALLINT"), "n": DataType("DOUBLE"), "x": DataType("DATE")}
    assert columns_beyond(schema, types) == {"n": DataType("DOUBLE"), "x": DataType("DATE")}


def test_log_merges_what_one_source_table_brings() -> None:
    log = DiscoveryLog()
    assert not log.findings()
    log.add(found({"id": "INT", "n": "INT"}, keys=(), offset=4))
    log.add(found({"id": "INT", "n": "BIGINT", "x": "DATE"}, offset=9))
    (merged,) = log.findings()
    assert {name: str(t) for name, t in merged.columns.items()} == {
        "id": "INT",
        "n": "BIGINT",
        "x": "DATE",
    }
    assert (merged.primary_keys, merged.offset) == (("id",), 4)


def test_log_keeps_apart_what_does_not_merge_so_that_it_is_refused() -> None:
    log = DiscoveryLog()
    log.add(found({"at": "TIMESTAMP(6)"}, fresh=False))
    log.add(found({"at": "STRING"}, fresh=False, offset=5))
    assert len(log.findings()) == 2
    rig = existing({"id": "INT"})
    with pytest.raises(SchemaConflictError, match="no type holds both"):
        planned(*log.findings(), rig=rig)


def test_a_type_that_iceberg_lacks_is_replaced_as_the_refusal_says() -> None:
    iceberg = {"metadata.iceberg.storage": "table-location"}
    rig = existing({"id": "BIGINT"}, **iceberg)
    brought = found({"id": "BIGINT", "v": "TIME(0)"})
    with pytest.raises(SchemaConflictError, match=r"Iceberg.*give it another type \(schema.column"):
        planned(brought, rig=rig)
    evolution = planned(brought, rig=rig, column_types={"v": DataType("STRING")})
    assert evolution.changes == {ORDERS: (AddColumn("v", DataType("STRING")),)}
    none = EvolutionPolicy("none", "fail")
    with pytest.raises(SchemaConflictError, match=r"allow the change \(schema\.evolution\)"):
        planned(found({"id": "BIGINT", "n": "INT"}), rig=rig, evolution=none)
