"""The keys that are allowed at each path of a configuration, derived from the model."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from ingestd.config.document import Path


@dataclass(frozen=True, slots=True)
class ConfigShape:
    """The keys that a configuration may have at a path.

    `keys` are the keys of a section, `element` is the shape of the values of a map; neither is set
    for a single value or a list.
    """

    keys: Mapping[str, "ConfigShape"] = field(default_factory=dict)
    element: "ConfigShape | None" = None

    @property
    def is_value(self) -> bool:
        """Whether a configuration has a single value or a list at the path."""
        return not self.keys and self.element is None

    def at(self, path: Path) -> "ConfigShape | None":
        """Return the shape at a path relative to this shape.

        Returns None if the path is not allowed, or leads into a list.
        """
        reached: ConfigShape | None = self
        for step in path:
            if reached is None or isinstance(step, int):
                return None
            reached = reached.element or reached.keys.get(step)
        return reached


def shape_of(annotation: Any) -> ConfigShape:  # noqa: ANN401  (any annotation)
    """Return the shape (the allowed keys) of a pydantic model, or of the type of a field."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.items()
        return ConfigShape({spec.alias or name: shape_of(spec.annotation) for name, spec in fields})
    if get_origin(annotation) is Mapping:
        return ConfigShape(element=shape_of(get_args(annotation)[1]))
    return ConfigShape()


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the most similar known name, or all names.

    If no names are known, the end is empty.
    """
    names = list(known)
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(sorted(names))}" if names else ""


def normalized_key(name: str) -> str:
    """Normalize a configuration key for comparison: lower case, with `_` for `-` and `.`."""
    return name.lower().replace("-", "_").replace(".", "_")
