"""Reload the configuration file; determine which changes take effect and which need a restart."""

import logging
from dataclasses import fields, replace
from pathlib import Path

from ingestd.config.load import LoadedConfig, load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError
from ingestd.ingest.settings.pipeline_settings import PipelineSettings

_LOG = logging.getLogger(__name__)
_FIXED = (
    "name",
    "warehouse",
    "metastore",
    "catalog_options",
    "database",
    "formerly",
    "dead_letter_table",
    "spark",
)
"""Settings that need a restart; all others take effect on a reload."""
_FIXED_SECTIONS = ("http", "restart", "compaction", "expiry", "telemetry")


def reread(path: Path, running: LoadedConfig) -> LoadedConfig | None:
    """Read the file again; None if it is invalid, with the reason in the log.

    Changed settings that need a restart are logged.
    """
    try:
        loaded = load_config(path)
        settings = pipeline_settings(loaded)
    except ConfigError as error:
        _LOG.error("reload_refused", extra={"ctx": {"message": error.message}})
        return None
    before = pipeline_settings(running)
    waiting = [name for name in _FIXED if getattr(settings, name) != getattr(before, name)]
    waiting += [
        name
        for name in _FIXED_SECTIONS
        if getattr(loaded.config, name) != getattr(running.config, name)
    ]
    if waiting:
        _LOG.warning("reload_needs_restart", extra={"ctx": {"settings": waiting}})
    return loaded


def taken_over(settings: PipelineSettings, running: PipelineSettings) -> PipelineSettings:
    """Return the new settings, with the running values of those that need a restart."""
    return replace(settings, **{name: getattr(running, name) for name in _FIXED})


def changed(after: PipelineSettings, before: PipelineSettings) -> list[str]:
    """Return the names of the settings that differ."""
    return [
        field.name
        for field in fields(after)
        if getattr(after, field.name) != getattr(before, field.name)
    ]
