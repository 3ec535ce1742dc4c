"""Editors accept every configuration that loads, and mark mistakes."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from ingestd.config.json_schema import config_schema

FOLDER = Path(__file__).resolve().parents[3] / "config"
EXAMPLES = sorted([FOLDER / "ingestd.yaml", *(FOLDER / "examples").glob("*.yaml")])
WAREHOUSE = {"path": "/lake"}
SOURCES = {"shop": {"kafka": {"bootstrap.servers": "b:9092"}, "format": "debezium-json"}}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = config_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def mistakes(validator: Draft202012Validator, **sections: Any) -> list[str]:
    document = {"warehouse": WAREHOUSE, "sources": SOURCES, **sections}
    return ["/".join(map(str, error.absolute_path)) for error in validator.iter_errors(document)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_accepted(validator: Draft202012Validator, path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    assert [error.message for error in validator.iter_errors(document)] == []


@pytest.mark.parametrize(
    "sections",
    [
        {"pipeline": {"trigger": "500 ms"}},
        {"pipeline": {"trigger": 2, "name": "${env:NAME}"}},
        {"pipeline": {"commit-group-offsets": "${env:GROUPS}"}},
        {"defaults": {"options": {"bucket": 4, "deletion-vectors.enabled": True}}},
        {"defaults": {"primary-keys": "from-key", "schema": {"evolution": "${file:mode}"}}},
        {"tables": {"orders": {"primary-keys": ["id"], "computed-columns": {"y": "year(at)"}}}},
        {"tables": {"orders": {"computed-columns": {"y": {"expression": "a + b"}}}}},
    ],
)
def test_what_loads_is_accepted(validator: Draft202012Validator, sections: dict[str, Any]) -> None:
    assert mistakes(validator, **sections) == []


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ({"pipelin": {}}, ""),
        ({"pipeline": {"triger": 1}}, "pipeline"),
        ({"pipeline": {"commit-group-offsets": "perhaps"}}, "pipeline/commit-group-offsets"),
        ({"defaults": {"schema": {"evolution": "evolv"}}}, "defaults/schema/evolution"),
        ({"processing": {"max-chunk-records": "many"}}, "processing/max-chunk-records"),
    ],
)
def test_mistakes_are_marked(
    validator: Draft202012Validator, sections: dict[str, Any], place: str
) -> None:
    assert mistakes(validator, **sections) == [place]
