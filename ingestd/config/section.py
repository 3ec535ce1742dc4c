"""The base class of all sections of the configuration."""

from pydantic import BaseModel, ConfigDict


def _key_of(field_name: str) -> str:
    return field_name.replace("_", "-")


class Section(BaseModel):
    """A frozen section that refuses unknown keys; its keys are its field names in kebab-case."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        alias_generator=_key_of,
        validate_default=True,
    )
