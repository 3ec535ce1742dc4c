"""`ingestd run`: the daemon."""

import importlib.metadata
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from ingestd.config.effective import plain_secrets
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.daemon.restarts import RestartPolicy
from ingestd.daemon.supervisor import DaemonSettings, supervise
from ingestd.log import configure_logging

_LOG = logging.getLogger(__name__)


def run(
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")],
    until_latest: Annotated[
        bool,
        typer.Option("--until-latest", help="End when what is there now has been ingested."),
    ] = False,
) -> None:
    """Run a pipeline until it is stopped.

    SIGTERM and Ctrl-C end the batch in flight and then the daemon, with exit code 0; a second one
    ends it at once, which loses nothing either.

    **Examples**

    ingestd run -c shop.yaml

    ingestd run -c shop.yaml --until-latest

    INGESTD__HTTP__LISTEN=0.0.0.0:8080 ingestd run -c shop.yaml
    """
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
    )
    raise typer.Exit(supervise(settings, daemon))
