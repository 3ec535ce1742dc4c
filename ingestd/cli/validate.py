"""`ingestd validate`: check a configuration and show its effective values."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ingestd.cli.output import AsJson, print_json, print_table, say
from ingestd.cli.sampled_dry_run import broker_warnings, dry_run_registry
from ingestd.config.effective import DEFAULT, effective_settings, plain_secret_settings
from ingestd.config.load import LoadedConfig, load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.errors import ConfigError, IngestdError
from ingestd.ingest.recovery.start_warnings import table_warnings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.pipeline_warehouse import open_catalog
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.log import redact
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.io.file_io import file_io_for, storage_options
from ingestd.paimon.io.probes import prove_exclusive
from ingestd.paimon.spec.options import ignored_options, refuse_unsupported
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.wording import counted

_PROBE_SECONDS = 10.0


class Check(NamedTuple):
    """The result of one online check of `ingestd validate`.

    `what` is the checked object, `result` the outcome as text, and `code` the exit code (0 for
    success).
    """

    what: str
    result: str
    code: int


def validate(
    config: Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")],
    online: Annotated[
        bool, typer.Option("--online", help="Also connect to the brokers and test the warehouse.")
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Also show the settings that have their defaults.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a configuration and show the effective settings, each with its origin.

    All errors are reported at once, each with its line. Secrets are masked. With `--online`, also
    reports keys and options that existing tables do not follow, a topic pattern that matches no
    topic, and a warehouse that lacks the progress of the pipeline.

    **Examples**

    ingestd validate -c shop.yaml

    ingestd validate -c shop.yaml --online --json
    """
    try:
        loaded = load_config(config)
    except ConfigError as error:
        if as_json:
            print_json({"file": str(config), "valid": False, "error": redact(error.message)})
        raise
    warnings = _warnings(loaded)
    checks = list(_online_checks(pipeline_settings(loaded), warnings)) if online else []
    if as_json:
        print_json(_document(config, loaded, checks, warnings))
    else:
        _print_settings(loaded, show_all=show_all)
        _print_findings(config, checks, warnings)
    code = next((check.code for check in checks if check.code), 0)
    raise typer.Exit(code)


def _document(
    config: Path, loaded: LoadedConfig, checks: list[Check], warnings: list[str]
) -> Mapping[str, object]:
    return {
        "file": str(config),
        "valid": True,
        "settings": [
            {
                "key": effective_setting.key,
                "value": effective_setting.value,
                "origin": effective_setting.origin,
            }
            for effective_setting in effective_settings(loaded)
        ],
        "warnings": warnings,
        "online": [
            {"check": check.what, "ok": not check.code, "found": check.result} for check in checks
        ],
    }


def _print_settings(loaded: LoadedConfig, *, show_all: bool) -> None:
    settings = effective_settings(loaded)
    shown = [setting for setting in settings if show_all or setting.origin != DEFAULT]
    rows = [
        {"setting": setting.key, "value": setting.value, "from": setting.origin}
        for setting in shown
    ]
    print_table(rows, ("setting", "value", "from"), none="")
    if len(settings) > len(shown):
        say("All other settings have their defaults; --all shows them.")


def _print_findings(config: Path, checks: list[Check], warnings: list[str]) -> None:
    """Print checks and warnings, and at the end whether the configuration passed all checks."""
    for check in checks:
        say(f"{'failed' if check.code else 'ok':<6} {check.what}: {check.result}")
    for warning in warnings:
        say(f"warning: {warning}", colour="yellow", err=True)
    failed = [check for check in checks if check.code]
    if not failed:
        with_warnings = f", with {counted(len(warnings), 'warning')}" if warnings else ""
        say(f"{config} is fine{with_warnings}.")
        return
    say(f"{config} FAILED {counted(len(failed), 'check')}:", colour="red")
    for check in failed:
        say(f"  {check.what}: {check.result}")


def _warnings(loaded: LoadedConfig) -> list[str]:
    secrets = [
        f"{secret.origin}: {secret.key} is a secret in plain text; "
        "write ${env:NAME} or ${file:PATH}"
        for secret in plain_secret_settings(loaded)
    ]
    return [*secrets, *_ignored_options(loaded)]


def _ignored_options(loaded: LoadedConfig) -> Iterator[str]:
    """Yield a warning for each table option of the configuration that ingestd ignores."""
    for effective_setting in effective_settings(loaded):
        section, dot, name = effective_setting.key.partition(".options.")
        if dot and section.partition(".")[0] in ("defaults", "tables"):
            for reason in ignored_options({name: str(effective_setting.value)}).values():
                yield f"{effective_setting.origin}: {effective_setting.key} has no effect: {reason}"


def _online_checks(settings: PipelineSettings, warnings: list[str]) -> Iterator[Check]:
    """Yield the results of checking brokers, warehouse and tables; add warnings to `warnings`."""
    sources = [
        _checked(f"source {source.kafka.name}", partial(_topics, source.kafka))
        for source in settings.sources.values()
    ]
    yield from sources
    store = storage_options(settings.catalog_options)
    yield _checked("warehouse", partial(_writable, settings.warehouse, store))
    if settings.metastore != "filesystem":
        yield _checked("catalog", partial(_catalog, settings))
    schemas: dict[str, TableSchema] = {}
    for table in sorted(settings.tables):
        yield _checked(f"table {table}", partial(_table, settings, table, schemas))
    reachable = not any(check.code for check in sources)
    opening = partial(_pipeline_tables, settings, schemas, warnings, reachable=reachable)
    yield _checked("tables of the pipeline", opening)
    warnings += map(redact, table_warnings(settings, schemas))


def _pipeline_tables(
    settings: PipelineSettings,
    schemas: dict[str, TableSchema],
    warnings: list[str],
    *,
    reachable: bool,
) -> str:
    """Open the tables as at a start, without writing; return their number as text.

    Adds their schemas to `schemas`, and if the brokers are `reachable`, warnings on the sources.
    """
    registry = dry_run_registry(settings)
    registry.tables.pop(registry.dead_letters)
    schemas |= {name: managed.table.schema for name, managed in registry.tables.items()}
    if reachable:
        warnings += map(redact, broker_warnings(settings, registry))
    return counted(len(registry.tables), "table")


def _checked(what: str, ask: Callable[[], str]) -> Check:
    try:
        return Check(what, ask(), 0)
    except IngestdError as error:
        return Check(what, redact(error.message), error.exit_code)


def _topics(source: KafkaSource) -> str:
    partitions = OffsetClient(source, request_seconds=_PROBE_SECONDS).list_topic_partitions()
    count = sum(map(len, partitions.values()))
    missing = sorted(set(source.topics) - partitions.keys())
    if missing:
        raise ConfigError(f"no topic {', '.join(missing)} at {source.bootstrap}")
    return (
        f"{counted(len(partitions), 'topic')}, {counted(count, 'partition')} at {source.bootstrap}"
    )


def _writable(path: str, options: Mapping[str, str]) -> str:
    prove_exclusive(file_io_for(path, options), path)
    return f"{path} can be written to"


def _catalog(settings: PipelineSettings) -> str:
    catalog = open_catalog(settings)
    return f"{counted(len(catalog.list_databases()), 'database')}"


def _table(settings: PipelineSettings, name: str, schemas: dict[str, TableSchema]) -> str:
    """Check a configured table, and return the outcome; add an existing schema to `schemas`."""
    catalog = open_catalog(settings)
    identifier = Identifier(settings.database, name)
    if not catalog.table_exists(identifier):
        return "does not exist yet"
    schema = schemas[str(identifier)] = catalog.get_table(identifier).schema
    refuse_unsupported(schema, for_write=True)
    return "exists and can be written to"
