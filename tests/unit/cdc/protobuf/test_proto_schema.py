"""Schemas of Protobuf that cannot be read."""

import pytest

from ingestd.cdc.protobuf.proto_schema import ProtobufSchemaError, parse_protobuf


@pytest.mark.parametrize(
    ("nested", "why"), [("oneof x {", "a oneof in a oneof"), ("message B {", "too deep")]
)
def test_schemas_that_nest_without_end_are_refused(nested: str, why: str) -> None:
    with pytest.raises(ProtobufSchemaError, match=why):
        parse_protobuf(f"message A {{{nested * 5000}{'}' * 5001}")
