"""`ingestd plan`: show what a pipeline would do to its tables."""

from pathlib import Path
from typing import Annotated

import typer

from ingestd.cli.dry_run import dry_run_pipeline
from ingestd.cli.output import AsJson, print_json
from ingestd.cli.plan_report import plan_document, print_plan
from ingestd.config.load import load_config
from ingestd.config.runtime import pipeline_settings

_STOPPED = 5


def plan(
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")],
    records: Annotated[
        int, typer.Option("--records", min=1, help="Most records of each topic to look at.")
    ] = 200,
    as_json: AsJson = False,
) -> None:
    """Show what a pipeline would do to its tables, without doing it.

    Reads the oldest and the newest records of every topic and decodes and routes them as the
    daemon does. Shows which table each source table goes to; its columns, and whether they are
    new, widened or as they are; keys, partition keys, buckets and options; source tables that
    meet in one target; and records that would become dead letters, with their coordinates.

    Nothing is written: no table, no schema, no offset. Ends with 5 if a table could not be made,
    if a topic would stop the pipeline, or if it would be set aside because its messages are of
    another data format.

    **Examples**

    ingestd plan -c shop.yaml

    ingestd plan -c shop.yaml --records 5000 --json
    """
    planned = dry_run_pipeline(pipeline_settings(load_config(config)), records)
    if as_json:
        print_json(plan_document(config, planned))
    else:
        print_plan(planned)
    raise typer.Exit(0 if planned.found.passed else _STOPPED)
