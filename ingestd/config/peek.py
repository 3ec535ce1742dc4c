"""One look into a configuration that nobody has checked yet, for what should begin before that.

The look is cheap and gives up on whatever it would have to understand: references, overrides from
the environment, mistakes. The configuration itself is loaded and checked afterwards all the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

_OVERRIDES = ("INGESTD__SPARK", "INGESTD__PIPELINE__NAME")
_NAME = "ingestd"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Peek:
    """What a configuration will most likely say: the pipeline's name and the section `spark`."""

    pipeline: str
    spark: Mapping[str, str]


def peek(path: Path, environ: Mapping[str, str]) -> Peek | None:
    """What is plain to see; None when only loading can tell."""
    if any(name.upper().startswith(_OVERRIDES) for name in environ):
        return None
    try:
        document = yaml.load(path.read_bytes(), Loader=_LOADER)  # noqa: S506  (a safe one)
    except (OSError, yaml.YAMLError):
        return None
    if not isinstance(document, dict):
        return None
    pipeline, spark = document.get("pipeline", {}), document.get("spark", {})
    if not isinstance(pipeline, dict) or not isinstance(spark, dict):
        return None
    name = pipeline.get("name", _NAME)
    if not all(isinstance(text, str) and "${" not in text for text in (name, *spark.values())):
        return None
    return Peek(name, {str(key): text for key, text in spark.items()})
