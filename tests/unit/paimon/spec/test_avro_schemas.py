import json

from ingestd.paimon.spec.avro_schemas import (
    INDEX_MANIFEST_SCHEMA,
    MANIFEST_LIST_SCHEMA,
    MANIFEST_SCHEMA,
)
from tests.support.format_vectors import vectors


def test_schemas_are_javas_to_the_letter() -> None:
    expected = vectors("avro_schemas")
    assert json.dumps(MANIFEST_LIST_SCHEMA) == json.dumps(expected["manifest_list"])
    assert json.dumps(MANIFEST_SCHEMA) == json.dumps(expected["manifest"])
    assert json.dumps(INDEX_MANIFEST_SCHEMA) == json.dumps(expected["index_manifest"])
