"""Options of Iceberg metadata, and tables that are refused because of it."""

from typing import Any

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.iceberg_rules import exposes_vectors, iceberg_settings
from ingestd.paimon.spec.options import refuse_new_options, refuse_unsupported
from ingestd.paimon.spec.schema import TableSchema, new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import AddColumn, RemoveOption, SetOption

ON = {"metadata.iceberg.storage": "table-location"}


def schema(
    *columns: tuple[str, Any],
    options: dict[str, str] | None = None,
    partitions: tuple[str, ...] = (),
) -> TableSchema:
    typed = [(name, parse_type(t)) for name, t in (("id", "INT"), *columns)]
    return new_schema(
        typed, (), partitions, {"bucket": "-1", **(ON if options is None else options)}, 0
    )


def test_without_the_option_there_is_no_metadata() -> None:
    assert iceberg_settings({}) is None
    assert iceberg_settings({"metadata.iceberg.storage": "disabled"}) is None


@pytest.mark.parametrize(
    ("options", "in_catalog"),
    [
        (ON, False),
        ({"metadata.iceberg.storage": "hadoop-catalog"}, True),
        ({**ON, "metadata.iceberg.storage-location": "catalog-location"}, True),
        ({"metadata.iceberg.storage": "hadoop-catalog",
          "metadata.iceberg.storage-location": "table-location"}, False),
    ],
)  # fmt: skip
def test_the_place_follows_the_storage_unless_it_is_given(
    options: dict[str, str], in_catalog: bool
) -> None:
    settings = iceberg_settings(options)
    assert settings is not None
    assert settings.in_catalog is in_catalog


def test_the_options_have_the_defaults_of_java() -> None:
    settings = iceberg_settings(ON)
    assert settings is not None
    assert (settings.format_version, settings.codec, settings.legacy_names) == (2, "snappy", False)
    assert (settings.compact_min, settings.compact_max) == (10, 50)
    assert (settings.deletes_old, settings.previous_versions) == (True, 0)
    zstd = iceberg_settings({**ON, "metadata.iceberg.manifest-compression": "zstd"})
    assert zstd is not None
    assert zstd.codec == "zstandard"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metadata.iceberg.storage", "glue-catalog"),
        ("metadata.iceberg.storage-location", "elsewhere"),
        ("metadata.iceberg.format-version", "1"),
        ("metadata.iceberg.manifest-compression", "lzo"),
    ],
)
def test_other_values_are_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(UnsupportedError, match=f"option '{name}' = '{value}'"):
        refuse_unsupported(schema(options={**ON, name: value}), for_write=True)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("metadata.iceberg.storage", "rest-catalog", "needs 'metadata.iceberg.rest.uri'"),
        ("metadata.iceberg.storage", "hive-catalog", "needs 'metadata.iceberg.uri'"),
        ("deletion-vectors.enabled", "true", "set 'metadata.iceberg.format-version' = '3' and"),
        ("file.format", "orc", "use parquet"),
    ],
)
def test_a_change_that_makes_the_metadata_impossible_is_refused_with_the_reason(
    name: str, value: str, reason: str
) -> None:
    before = schema()
    with pytest.raises(UnsupportedError, match=reason):
        apply_changes(before, [SetOption(name, value)], 0, has_snapshots=False)
    later = [SetOption(name, value), RemoveOption("metadata.iceberg.storage")]
    if not name.startswith("metadata.iceberg"):
        apply_changes(before, later, 0, has_snapshots=False)
    impossible = schema(options={**ON, name: value})
    apply_changes(impossible, [AddColumn("v", parse_type("INT"))], 0)
    apply_changes(impossible, [RemoveOption("metadata.iceberg.storage")], 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("credential", "id:secret"), ("rest.auth.type", "sigv4"), ("rest.sigv4-enabled", "true")],
)
def test_other_authentication_than_a_token_is_refused_without_its_secret(
    name: str, value: str
) -> None:
    catalog = {"metadata.iceberg.storage": "rest-catalog", "metadata.iceberg.rest.uri": "http://a"}
    refuse_unsupported(schema(options={**ON, **catalog}), for_write=True)
    setting = {f"metadata.iceberg.rest.{name}": value}
    with pytest.raises(
        UnsupportedError, match=r"set 'metadata\.iceberg\.rest\.token-file'"
    ) as error:
        refuse_unsupported(schema(options={**ON, **catalog, **setting}), for_write=True)
    assert "secret" not in str(error.value)


VECTORS = {
    **ON,
    "metadata.iceberg.format-version": "3",
    "deletion-vectors.enabled": "true",
    "deletion-vectors.bitmap64": "true",
}


def test_version_3_has_deletion_vectors_of_64_bits() -> None:
    refuse_unsupported(schema(options=VECTORS), for_write=True)
    assert exposes_vectors(VECTORS)
    assert not exposes_vectors({**ON, "metadata.iceberg.format-version": "3"})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("deletion-vectors.bitmap64", "false", "and 'deletion-vectors.bitmap64' = 'true'"),
        ("metadata.iceberg.format-version", "2", "set 'metadata.iceberg.format-version' = '3'"),
        ("deletion-vectors.modifiable", "true", "not possible with 'deletion-vectors.modifiable'"),
        ("data-file.external-paths", "file:///x", "not possible with 'data-file.external-paths'"),
    ],
)
def test_vectors_that_readers_cannot_find_or_follow_are_refused(
    name: str, value: str, reason: str
) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        refuse_unsupported(schema(options={**VECTORS, name: value}), for_write=True)


@pytest.mark.parametrize("trigger", ["2", "9"])
def test_another_top_level_is_refused_and_the_way_out_keeps_it(trigger: str) -> None:
    columns = [("id", parse_type("INT")), ("v", parse_type("INT"))]
    change = SetOption("num-sorted-run.compaction-trigger", trigger)
    before = new_schema(columns, ("id",), (), {"bucket": "1", **ON}, 0)
    with pytest.raises(UnsupportedError, match="set 'num-levels' = '6' as well"):
        apply_changes(before, [change], 0)
    apply_changes(before, [change, SetOption("num-levels", "6")], 0)
    apply_changes(before, [change], 0, has_snapshots=False)
    for other in ({"bucket": "1"}, {"bucket": "1", **VECTORS}):
        apply_changes(new_schema(columns, ("id",), (), other, 0), [change], 0)
    apply_changes(schema(), [change], 0)


def test_a_column_that_the_metadata_cannot_have_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"column 'v': TIME\(3\).*use another type"):
        apply_changes(schema(), [AddColumn("v", parse_type("TIME(3)"))], 0)
    apply_changes(schema(options={}), [AddColumn("v", parse_type("TIME(3)"))], 0)


def test_a_setting_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'metadata\.iceberg\.storage'"):
        refuse_new_options({"metadata.iceberg.storag": "table-location"})


@pytest.mark.parametrize(
    ("column", "named"),
    [
        ("TIME(3)", "TIME"), ("TIMESTAMP(9)", r"TIMESTAMP\(9\)"),
        ("TIMESTAMP(0)", r"TIMESTAMP\(0\)"), ("VARIANT", "VARIANT"),
        ({"type": "ARRAY", "element": "TIME(0)"}, "TIME"),
        ({"type": "MULTISET", "element": "INT"}, "MULTISET"),
    ],
)  # fmt: skip
def test_columns_without_a_type_in_iceberg_are_refused_by_name(column: Any, named: str) -> None:
    with pytest.raises(UnsupportedError, match=f"column 'v': {named}"):
        refuse_unsupported(schema(("v", column)), for_write=True)
    refuse_unsupported(schema(("v", column)), for_write=False)
    refuse_unsupported(schema(("v", column), options={}), for_write=True)


def test_what_readers_would_see_wrongly_is_refused() -> None:
    vectors = schema(options={**ON, "deletion-vectors.enabled": "true"})
    with pytest.raises(UnsupportedError, match="deletion vectors"):
        refuse_unsupported(vectors, for_write=True)
    with pytest.raises(UnsupportedError, match="files of format avro"):
        refuse_unsupported(
            schema(options={**ON, "file.format.per.level": "0:avro"}), for_write=True
        )
    for kind in ("TIMESTAMP(3)", "DECIMAL(9, 2)"):
        partitioned = schema(("at", kind), partitions=("at",))
        with pytest.raises(UnsupportedError, match=r"partition column 'at'.*use a"):
            refuse_unsupported(partitioned, for_write=True)
