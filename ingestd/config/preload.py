"""One look into a configuration that nobody has checked yet, for what should begin before that.

The look is cheap and gives up on whatever it would have to understand: references, overrides from
the environment, mistakes. The configuration itself is loaded and checked afterwards all the same.
"""

from collections.abc import Mapping
from pathlib import Path

import yaml

_SECTION = "spark"
_OVERRIDE = "INGESTD__SPARK"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def preload_spark(path: Path, environ: Mapping[str, str]) -> dict[str, str] | None:
    """The section `spark` as it will most likely be; None when only loading can tell."""
    if any(name.upper().startswith(_OVERRIDE) for name in environ):
        return None
    try:
        document = yaml.load(path.read_bytes(), Loader=_LOADER)  # noqa: S506  (a safe one)
    except (OSError, yaml.YAMLError):
        return None
    section = document.get(_SECTION, {}) if isinstance(document, dict) else None
    if not isinstance(section, dict):
        return None
    if not all(isinstance(value, str) and "${" not in value for value in section.values()):
        return None
    return {str(name): value for name, value in section.items()}
