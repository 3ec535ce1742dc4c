"""What every part of the configuration is: immutable, and without keys that nobody knows."""

from pydantic import BaseModel, ConfigDict


def _key_of(field_name: str) -> str:
    return field_name.replace("_", "-")


class Section(BaseModel):
    """A part of the configuration; keys are field names with `-` for `_`."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        alias_generator=_key_of,
        validate_default=True,
    )
