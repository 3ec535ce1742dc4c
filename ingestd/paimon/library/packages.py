"""Packages that rows can be handed to, and that need not be installed."""

from importlib import import_module
from typing import Any

from ingestd.errors import ConfigError


def optional_package(name: str) -> Any:  # noqa: ANN401  (a package that need not be installed)
    """The package of a name; ConfigError says what to install if it is not there."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ConfigError(f"{name} is not installed: `pip install {name}`") from error
