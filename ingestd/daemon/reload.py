"""What a running daemon takes over from its file when it is asked to, and what needs a restart."""

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
"""Settings that say what the process is; the others say what it does next."""
_FIXED_SECTIONS = ("http", "restart", "compaction", "expiry", "telemetry")


def reread(path: Path, running: LoadedConfig) -> LoadedConfig | None:
    """The file as it is now; None, with the reason in the log, when it cannot be used.

    What differs and needs a restart is named in the log.
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
    """The new settings with those that cannot change as they were."""
    return replace(settings, **{name: getattr(running, name) for name in _FIXED})


def changed(after: PipelineSettings, before: PipelineSettings) -> list[str]:
    """Names of the settings that differ."""
    return [
        one.name for one in fields(after) if getattr(after, one.name) != getattr(before, one.name)
    ]
