"""The daemon from a configuration file: load it, log as it says, run, keep the next start short."""

import importlib.metadata
import logging
import sys
from pathlib import Path

from ingestd.config.effective import plain_secrets
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.daemon.restarts import RestartPolicy
from ingestd.daemon.supervisor import DaemonSettings, supervise
from ingestd.log import configure_logging
from ingestd.spark.class_archive import make_in_background
from ingestd.spark.early_start import archive_wanted, end_unused

_LOG = logging.getLogger(__name__)
_TRAINING = "ingestd.spark.training"


def serve(config: Path, *, until_latest: bool) -> int:
    """Run the pipeline of a file to its end; the exit code.

    Raises ConfigError for what is wrong with the configuration.
    """
    try:
        loaded = load_config(config)
        settings = pipeline_settings(loaded)
        lines = loaded.config.logging
        configure_logging(lines.level, lines.format, stream=sys.stdout, pipeline=settings.name)
        for secret in plain_secrets(loaded):
            _LOG.warning("secret_in_plain_text", extra={"ctx": {"key": secret.key}})
        restart = loaded.config.restart
        daemon = DaemonSettings(
            listen=loaded.config.http.listen,
            version=importlib.metadata.version("ingestd"),
            restarts=RestartPolicy(
                restart.max_attempts, restart.window, restart.initial_backoff, restart.max_backoff
            ),
            until_latest=until_latest,
            batch_timeout=restart.batch_timeout,
        )
        code = supervise(settings, daemon)
    finally:
        end_unused()
    if make_in_background(archive_wanted(), _TRAINING):
        _LOG.info("class_archive_begun")
    return code
