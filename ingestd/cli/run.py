"""`ingestd run`: run the daemon of a pipeline."""

import gc
import importlib
import os
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.prompts import is_terminal
from ingestd.config.preload import preload_spark
from ingestd.spark.startup.jvm import fork_prestarted, prestart

_SERVICE = "ingestd.daemon.service"


_TakeOver: TypeAlias = Annotated[
    bool, typer.Option("--take-over", help="Replace a running daemon of the same pipeline.")
]


def run(
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")],
    until_latest: Annotated[
        bool,
        typer.Option(
            "--until-latest", help="Stop when the records present at the start are ingested."
        ),
    ] = False,
    take_over: _TakeOver = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Log as JSON, regardless of the configuration.")
    ] = False,
) -> None:
    """Run a pipeline until it is stopped.

    After SIGTERM or Ctrl-C the daemon finishes the batch in flight and ends with exit code 0; a
    second signal ends it at once, also without loss of data. A running daemon of the same pipeline
    is replaced if there is neither a terminal nor `--until-latest`, or with `--take-over`.

    **Examples**

    ingestd run -c shop.yaml

    ingestd run -c shop.yaml --until-latest

    INGESTD__HTTP__LISTEN=0.0.0.0:8080 ingestd run -c shop.yaml
    """
    if as_json:
        os.environ["INGESTD__LOGGING__FORMAT"] = "json"  # overrides the file
    spark = preload_spark(config, os.environ)
    if spark is not None:
        prestart(spark)
    gc.disable()  # modules are no garbage, and a collection visits all of their objects
    service = importlib.import_module(_SERVICE)  # slow, so the JVM starts at the same time
    gc.freeze()
    gc.enable()
    fork_prestarted()
    by_hand = until_latest or is_terminal()
    code = service.serve(config, until_latest=until_latest, take_over=take_over or not by_hand)
    raise typer.Exit(code)
