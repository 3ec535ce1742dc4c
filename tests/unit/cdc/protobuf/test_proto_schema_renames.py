from ingestd.cdc.base import FormatSettings, load_data_format
from ingestd.cdc.protobuf.proto_schema import ProtoField, former_names
from tests.support.registered import Registered, chunk_of, framed

OLD = 'syntax = "proto3"; message Item { int64 id = 1; string label = 2; int32 n = 3; }'
NEW = 'syntax = "proto3"; message Item { int64 id = 1; string title = 2; int32 n = 3; }'
NEWER = 'syntax = "proto3"; message Item { int64 id = 1; string name = 2; int32 n = 3; }'
BODY = b"\0\x08\x05\x12\x01x"


def field(
    name: str, number: int, type_name: str = "string", *, repeated: bool = False
) -> ProtoField:
    return ProtoField(name, number, type_name, repeated)


def test_a_field_that_kept_its_number_and_type_was_renamed() -> None:
    older = [field("a", 1), field("b", 2), field("gone", 3)]
    assert former_names(older, [field("a", 1), field("c", 2), field("new", 4)]) == (("b", "c"),)


def test_a_number_that_got_another_type_proves_nothing() -> None:
    assert former_names([field("a", 1)], [field("b", 1, "int32")]) == ()
    assert former_names([field("a", 1)], [field("b", 1, repeated=True)]) == ()


def test_names_that_were_swapped_prove_nothing() -> None:
    assert former_names([field("a", 1), field("b", 2)], [field("b", 1), field("a", 2)]) == ()


def renames(*schemas: str, asked: bool = True) -> list[tuple[tuple[str, str | None], ...]]:
    registry = Registered()
    numbers = [registry.add(schema, "PROTOBUF") for schema in schemas]
    settings = FormatSettings(schemas=registry, renames=asked)
    chunk = chunk_of([framed(numbers[-1], BODY)])
    decoded = load_data_format("protobuf", settings).decode(chunk, {}, {})
    assert not decoded.rejected
    assert all(schema_change.is_repeated for schema_change in decoded.schema_changes)
    return [schema_change.columns for schema_change in decoded.schema_changes]


def test_messages_show_the_names_that_their_fields_had_in_earlier_versions() -> None:
    assert renames(OLD, NEW) == [(("label", "title"),)]
    assert renames(OLD, NEW, NEWER) == [(("title", "name"), ("label", "name"))]


def test_the_first_version_shows_nothing_nor_does_one_that_cannot_be_read() -> None:
    assert renames(NEW) == []
    assert renames("message {", OLD, NEW) == [(("label", "title"),)]


def test_nobody_is_asked_where_no_table_follows() -> None:
    assert renames(OLD, NEW, asked=False) == []
