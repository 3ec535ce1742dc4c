"""Every collected Avro message becomes what is written down for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.cdc.base import FormatSettings, load_data_format
from tests.support.cdc_samples import in_words
from tests.support.registered import Registered, chunk_of, envelope, event, framed, record

SAMPLES = Path(__file__).resolve().parents[3] / "golden" / "cdc" / "avro_samples"


def documents(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLES / name).read_text("utf-8").splitlines()]


EXPECTED = {
    document["name"]: tuple(document["ingestd"]) for document in documents("expected.jsonl")
}


@pytest.mark.parametrize("sample", documents("samples.jsonl"), ids=lambda sample: sample["name"])
def test_sample_becomes_what_is_written_down(sample: dict[str, Any]) -> None:
    schema, value = sample["schema"], sample["value"]
    if isinstance(value, str) and value.startswith("hex:"):
        value = bytes.fromhex(value.removeprefix("hex:"))
    registry = Registered()
    plain = schema if isinstance(schema, str) else schema["type"]
    fields = [{"name": "id", "type": "int"}, {"name": "x", "type": ["null", plain]}]
    (body,) = registry.avro(envelope(fields), event("c", {"id": 1, "x": value}))
    keys = registry.avro(record("Key", fields[:1]), {"id": 1})
    number = registry.add(
        json.dumps(envelope([fields[0], {**fields[1], "type": ["null", schema]}]))
    )
    data_format = load_data_format(sample["format"], FormatSettings(schemas=registry))
    decoded = data_format.decode(chunk_of([framed(number, body[5:])], keys), {}, {})
    assert in_words(decoded) == EXPECTED[sample["name"]]
