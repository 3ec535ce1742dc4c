"""The JSON Schema of the configuration, for editors that complete keys and mark mistakes.

A schema cannot hold every rule: `ingestd validate` decides what is valid.
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from ingestd.config.model import Config

_REFERENCE = {"type": "string", "pattern": r"\$\{"}
_SCALARS = ["string", "number", "boolean"]
"""What YAML may make of a text without quotes; the loader keeps it as it is written."""


class _WithReferences(GenerateJsonSchema):
    """Accepts a reference, such as `${env:NAME}`, for each single value."""

    def int_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401  (core schemas of pydantic)
        return _or_reference(super().int_schema(schema))

    def float_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401
        return _or_reference(super().float_schema(schema))

    def bool_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401
        return _or_reference(super().bool_schema(schema))

    def literal_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401
        return _or_reference(super().literal_schema(schema))

    def str_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401
        text = super().str_schema(schema)
        return _or_reference(text) if "pattern" in text else {**text, "type": _SCALARS}


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a configuration file."""
    schema = Config.model_json_schema(schema_generator=_WithReferences)
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        **schema,
        "title": "Configuration of ingestd",
    }


def _or_reference(schema: JsonSchemaValue) -> JsonSchemaValue:
    return {"anyOf": [schema, _REFERENCE]}
