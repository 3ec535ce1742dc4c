"""The JSON Schema of the configuration, for editors that complete keys and mark mistakes.

A schema cannot express every rule: `ingestd validate` determines whether a file is valid.
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from ingestd.config.model import Config

_REFERENCE = {"type": "string", "pattern": r"\$\{"}
_SCALARS = ["string", "number", "boolean"]
"""Types that YAML may give a text without quotes; the loader keeps the text as written."""


class _WithReferences(GenerateJsonSchema):
    """A generator that accepts a reference, such as `${env:NAME}`, for each single value."""

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
