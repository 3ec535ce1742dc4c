"""The effective configuration: every value with its origin, secrets masked."""

import json
from dataclasses import dataclass

from ingestd.config.document import Path, Tree, dotted
from ingestd.config.load import LoadedConfig
from ingestd.config.secret_resolution import plain_secrets
from ingestd.log import MASK, is_secret_name, redact
from ingestd.secret_references import holds_reference

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Setting:
    """One effective setting: its dotted key, its value as text, and where it was set.

    The origin is `FILE:LINE`, `environment VARIABLE` or `default`.
    """

    key: str
    value: str
    origin: str


def effective_settings(loaded: LoadedConfig) -> list[Setting]:
    """Return all settings in the order of the model; for tables, only the keys that they set.

    A reference is shown as written, and other secrets are masked.
    """
    dumped = loaded.config.model_dump(mode="json", by_alias=True, exclude={"tables"})
    dumped["tables"] = loaded.config.model_dump(
        mode="json", by_alias=True, include={"tables"}, exclude_unset=True
    ).get("tables", {})
    return [_setting(loaded, path, value) for path, value in _leaves(dumped, ())]


def plain_secret_settings(loaded: LoadedConfig) -> list[Setting]:
    """Return the secrets that the configuration contains as plain text, with masked values.

    A value is a secret if its key has the name of one (`is_secret_name`).
    """
    return [
        Setting(dotted(path), MASK, loaded.document.location_of(path))
        for path in plain_secrets(loaded.document)
    ]


def _leaves(value: object, path: Path) -> list[tuple[Path, object]]:
    """Return the paths and values of all single values and lists; an empty section has none."""
    if isinstance(value, dict):
        return [leaf for name, child in value.items() for leaf in _leaves(child, (*path, name))]
    return [(path, value)]


def _setting(loaded: LoadedConfig, path: Path, value: object) -> Setting:
    given = _given(loaded.document.tree, path)
    if given is None:
        return Setting(dotted(path), _text(value), DEFAULT)
    origin = loaded.document.location_of(path)
    if isinstance(given, str) and holds_reference(given):
        return Setting(dotted(path), given, origin)
    secret = is_secret_name(str(path[-1]))
    return Setting(dotted(path), MASK if secret else redact(_text(value)), origin)


def _given(tree: Tree, path: Path) -> Tree:
    """Return the node of a tree at a path, or None if the tree has no such node."""
    for step in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(str(step))
    return tree


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
