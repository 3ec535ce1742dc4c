"""Read the section `spark` before the configuration is loaded, so that the JVM can start early.

A section that has references, overrides from the environment or errors is left to `load_config`,
which in any case loads and checks the configuration afterwards.
"""

from collections.abc import Mapping
from pathlib import Path

import yaml

_SECTION = "spark"
_OVERRIDE = "INGESTD__SPARK"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def preload_spark(path: Path, environ: Mapping[str, str]) -> dict[str, str] | None:
    """Return the section `spark` of a file, {} if there is none, without loading the configuration.

    `environ` are the environment variables. Returns None if only loading can determine the section:
    if a variable overrides a key of it, the file cannot be read, or a value is not a string or has
    a reference (`${...}`).
    """
    if any(name.upper().startswith(_OVERRIDE) for name in environ):
        return None
    try:
        document = yaml.load(path.read_bytes(), Loader=_LOADER)  # noqa: S506  (a safe one)
    except (OSError, ValueError, yaml.YAMLError):  # a ValueError: no such day, as 2026-02-30
        return None
    section = document.get(_SECTION, {}) if isinstance(document, dict) else None
    if not isinstance(section, dict):
        return None
    if not all(isinstance(value, str) and "${" not in value for value in section.values()):
        return None
    return {str(name): value for name, value in section.items()}
