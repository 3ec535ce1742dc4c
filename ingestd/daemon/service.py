"""Run the daemon of a configuration file, reload the file on SIGHUP, and create a class archive."""

import importlib.metadata
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

from ingestd.config.effective import Setting, effective_settings, plain_secret_settings
from ingestd.config.load import LoadedConfig, load_config
from ingestd.config.model import Config
from ingestd.config.notices_section import signing_key
from ingestd.config.runtime import pipeline_settings
from ingestd.daemon.http_access import HttpAccess
from ingestd.daemon.maintenance import MaintenanceSettings
from ingestd.daemon.notices import Notices
from ingestd.daemon.restarts import RestartPolicy
from ingestd.daemon.supervisor import DaemonSettings, supervise
from ingestd.daemon.webhook import Webhook, WebhookSettings
from ingestd.errors import ConfigError
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.heartbeat import refuse_second_daemon
from ingestd.ingest.tables.pipeline_warehouse import open_file_io
from ingestd.log import ANSWER, configure_logging
from ingestd.metrics_page import MetricsPage
from ingestd.spark.startup.class_archive import create_in_background
from ingestd.spark.startup.jvm import archive_wanted, end_unused
from ingestd.telemetry.span_exporter import open_sink
from ingestd.telemetry.spans import SpanSink

_LOG = logging.getLogger(__name__)
_CLOSE_SECONDS = 5.0
_TRAINING = "ingestd.spark.startup.training"
_FIXED: Mapping[str, str] = {
    "name": "pipeline.name",
    "warehouse": "warehouse.path",
    "metastore": "warehouse.catalog.metastore",
    "catalog_options": "warehouse.options, warehouse.catalog",
    "database": "warehouse.database",
    "formerly": "pipeline.formerly",
    "dead_letter_table": "errors.dead-letter-table",
    "worker_memory": "processing.worker-memory",
    "spark": "spark",
}
"""Settings of the pipeline that need a restart, with their keys; its others can be reloaded."""
_FIXED_SECTIONS = ("http", "restart", "compaction", "expiry", "telemetry", "notices")


def reread(path: Path) -> LoadedConfig | None:
    """Load the configuration file again; log the reason and return None if it is invalid."""
    try:
        loaded = load_config(path)
        pipeline_settings(loaded)
    except ConfigError as error:
        _LOG.error("reload_refused", extra={**ANSWER, "ctx": {"message": error.message}})
        return None
    return loaded


def waiting_keys(loaded: LoadedConfig, running: LoadedConfig) -> list[str]:
    """Return the changed keys and sections that take effect only after a restart of the daemon.

    `loaded` is the file as loaded again, and `running` the configuration in effect.
    """
    settings, before = pipeline_settings(loaded), pipeline_settings(running)
    keys = [key for name, key in _FIXED.items() if getattr(settings, name) != getattr(before, name)]
    return keys + [
        name
        for name in _FIXED_SECTIONS
        if getattr(loaded.config, name) != getattr(running.config, name)
    ]


def merged_settings(reloaded: list[Setting], running: list[Setting]) -> list[Setting]:
    """Return the configuration in effect after a reload, ordered by section.

    Settings that need a restart are taken from `running`, all others from `reloaded`.
    """
    prefixes = [*", ".join(_FIXED.values()).split(", "), *_FIXED_SECTIONS]
    fixed = re.compile(rf"({'|'.join(map(re.escape, prefixes))})(\.|$)")
    kept = [setting for setting in running if fixed.match(setting.key)]
    new = [setting for setting in reloaded if not fixed.match(setting.key)]
    return sorted(kept + new, key=lambda setting: setting.key.partition(".")[0])


def taken_over(settings: PipelineSettings, running: PipelineSettings) -> PipelineSettings:
    """Return reloaded settings, with the running values of settings that need a restart."""
    return replace(settings, **{name: getattr(running, name) for name in _FIXED})


def changed(after: PipelineSettings, before: PipelineSettings) -> list[str]:
    """Return the names of the settings of a pipeline that differ between two versions."""
    return [
        field.name
        for field in fields(after)
        if getattr(after, field.name) != getattr(before, field.name)
    ]


class _Reload:
    """A function that reloads the configuration file.

    A call configures logging, and returns the new settings of the pipeline, or None if these are
    unchanged. If the file is invalid, it only logs the reason and returns None.
    """

    def __init__(self, path: Path, loaded: LoadedConfig, settings: PipelineSettings) -> None:
        self._path = path
        self._loaded = loaded
        self._settings = settings
        self._lines = loaded.config.logging
        self._in_effect = effective_settings(loaded)

    def in_effect(self) -> list[Setting]:
        """Return the configuration in effect, without secret values, for the console."""
        return self._in_effect

    def __call__(self) -> PipelineSettings | None:
        loaded = reread(self._path)
        if loaded is None:
            return None
        lines = loaded.config.logging
        configure_logging(
            lines.level, lines.format, stream=sys.stdout, pipeline=self._settings.name
        )
        settings = taken_over(pipeline_settings(loaded), self._settings)
        differing = changed(settings, self._settings)
        took_effect = bool(differing) or lines != self._lines
        if waiting := waiting_keys(loaded, self._loaded):
            _log_waiting(waiting, alone=not took_effect)
        if took_effect or not waiting:
            _LOG.info("reloaded", extra={"ctx": {"changed": differing, "log_level": lines.level}})
        self._settings, self._lines = settings, lines
        self._in_effect = merged_settings(effective_settings(loaded), self._in_effect)
        return settings if differing else None


def _log_waiting(keys: list[str], *, alone: bool) -> None:
    """Log that changed keys need a restart; `alone` is whether no other key changed."""
    context: dict[str, object] = {"settings": keys}
    if _FIXED["name"] in keys:
        context["note"] = (
            "to keep its tables after a restart, list the old name in pipeline.formerly"
        )
    event = "reload_without_effect" if alone else "reload_needs_restart"
    _LOG.warning(event, extra={**ANSWER, "ctx": context})


def page_access(loaded: LoadedConfig) -> HttpAccess:
    """Return the access settings of the pages; relative paths refer to the file's folder."""
    http = loaded.config.http
    names = (http.tls_certificate, http.tls_key, http.auth_file)
    return HttpAccess(*(name and str(loaded.folder / name) for name in names))


def maintenance_settings(config: Config) -> MaintenanceSettings:
    """Return the maintenance settings from the sections on compaction and expiry."""
    compaction, expiry = config.compaction, config.expiry
    return MaintenanceSettings(
        mode=compaction.mode,
        processes=compaction.processes,
        inline_budget=compaction.inline_budget,
        max_throttle=compaction.max_throttle,
        expires=expiry.enabled,
        expiry_interval=expiry.interval,
    )


@contextmanager
def _spans(loaded: LoadedConfig, version: str) -> Iterator[SpanSink | None]:
    """Yield an open sink for traces of batches, which the end closes, or None without traces."""
    section = loaded.config.telemetry
    if section.traces == "none":
        yield None
        return
    sink = open_sink(loaded.config.pipeline.name, version, section.endpoint)
    try:
        yield sink
    finally:
        sink.close()


@contextmanager
def _notices(loaded: LoadedConfig) -> Iterator[Notices | None]:
    """Yield the sender of notices, or None without a webhook.

    At the end, queued notices are sent for at most 5 seconds. Raises ConfigError for an invalid
    file of certificates.
    """
    section = loaded.config.notices
    if section.url is None:
        yield None
        return
    secret, ca_location = section.signing_secret, section.ssl_ca_location
    webhook = Webhook(
        WebhookSettings(
            section.url,
            None if secret is None else signing_key(secret),
            None if ca_location is None else str(loaded.folder / ca_location),
        )
    )
    webhook.start()
    try:
        yield Notices(loaded.config.pipeline.name, webhook.offer)
    finally:
        webhook.close(_CLOSE_SECONDS)


def serve(config: Path, *, until_latest: bool, take_over: bool) -> int:
    """Run the daemon with a configuration file until the pipeline ends; return the exit code.

    If `until_latest`, the pipeline ends at the offsets that are the latest when it starts. After
    the run, a missing class archive is created in the background. Raises ConfigError for an invalid
    configuration. Without `take_over`, raises FencedError if another daemon of the pipeline is
    running, and StorageError or FormatError if its heartbeat cannot be read to determine this.
    """
    try:
        loaded = load_config(config)
        settings = pipeline_settings(loaded)
        lines = loaded.config.logging
        configure_logging(lines.level, lines.format, stream=sys.stdout, pipeline=settings.name)
        for secret in plain_secret_settings(loaded):
            _LOG.warning("secret_in_plain_text", extra={"ctx": {"key": secret.key}})
        version = importlib.metadata.version("ingestd")
        if not take_over:
            _refuse_second_daemon(settings)
        with _spans(loaded, version) as spans, _notices(loaded) as notices:
            daemon = daemon_settings(loaded, version, spans, until_latest=until_latest)
            daemon = replace(daemon, notices=notices)
            reload = _Reload(config, loaded, settings)
            daemon = replace(
                daemon, configuration=reload.in_effect, config_file=str(config.absolute())
            )
            code = supervise(settings, daemon, reload=reload)
    finally:
        end_unused()
    if create_in_background(archive_wanted(), _TRAINING):
        _LOG.info("class_archive_begun")
    return code


def _refuse_second_daemon(settings: PipelineSettings) -> None:
    io = open_file_io(settings)
    refuse_second_daemon(io, settings.warehouse, settings.names)


def daemon_settings(
    loaded: LoadedConfig, version: str, spans: SpanSink | None, *, until_latest: bool
) -> DaemonSettings:
    """Return the settings of the daemon from a loaded file, without notices.

    `version` is the version of ingestd, and `spans` receives traces (None: no traces). If
    `until_latest`, the pipeline ends at the offsets that are the latest when it starts.
    """
    restart, lines, http = loaded.config.restart, loaded.config.logging, loaded.config.http
    return DaemonSettings(
        listen=http.listen,
        linger=http.linger,
        access=page_access(loaded),
        metrics=MetricsPage(http.metrics_per_table, http.metrics_per_partition),
        version=version,
        restarts=RestartPolicy(
            restart.max_attempts, restart.window, restart.initial_backoff, restart.max_backoff
        ),
        until_latest=until_latest,
        batch_timeout=restart.batch_timeout,
        maintenance=maintenance_settings(loaded.config),
        spans=spans,
        log_level=lines.level,
        log_format=lines.format,
    )
