"""`ingestd init`: a first configuration, made from what the brokers hold and what one is asked."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ingestd.cli.broker_look import (
    list_topics,
    look_at,
    proposed_sources,
    resolved_properties,
    with_tables,
)
from ingestd.cli.output import AsJson, print_json
from ingestd.cli.proposal import (
    Proposal,
    SourceProposal,
    kept_secrets,
    own_topics,
    proposal_yaml,
    proposed_pattern,
)
from ingestd.config.registry_section import SchemaRegistrySection, registered_formats
from ingestd.errors import ConfigError

_BOOTSTRAP = "bootstrap.servers"
_RECORDS = 200
_STDOUT = "-"
_File: TypeAlias = Annotated[Path, typer.Argument(help="The file to write; - is standard output.")]
_Bootstrap: TypeAlias = Annotated[str | None, typer.Option(help="The brokers, as HOST:PORT,...")]
_Topics: TypeAlias = Annotated[
    list[str] | None, typer.Option("--topic", help="A topic to read; repeatable.")
]
_Pattern: TypeAlias = Annotated[
    str | None, typer.Option(help="The topics to read, as a regular expression.")
]
_Format: TypeAlias = Annotated[
    str | None, typer.Option("--format", "-f", help="The data format, if it is not to be guessed.")
]
_Warehouse: TypeAlias = Annotated[str | None, typer.Option(help="Where the tables go.")]
_Database: TypeAlias = Annotated[str | None, typer.Option(help="Database that gets the tables.")]
_Name: TypeAlias = Annotated[str | None, typer.Option(help="Name of the pipeline.")]
_Kafka: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--kafka", metavar="NAME=VALUE", help="Property of the client; repeatable."),
]
_Registry: TypeAlias = Annotated[str | None, typer.Option(help="URL of a schema registry.")]
_Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]


@dataclass(frozen=True, slots=True)
class _Said:
    """What options said; None is asked for, guessed, or has a default."""

    bootstrap: str | None
    kafka: Sequence[str]
    topics: Sequence[str]
    pattern: str | None
    data_format: str | None
    registry: str | None
    name: str | None
    warehouse: str | None
    database: str | None


def init(
    file: _File = Path("ingestd.yaml"),
    bootstrap: _Bootstrap = None,
    topic: _Topics = None,
    topic_pattern: _Pattern = None,
    data_format: _Format = None,
    warehouse: _Warehouse = None,
    database: _Database = None,
    name: _Name = None,
    kafka: _Kafka = None,
    schema_registry: _Registry = None,
    force: _Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a first configuration: looks at the brokers, guesses formats, keys and types.

    Asks on a terminal for what no option says; elsewhere what is not said has a default. Nothing
    but the file is written. Secrets among the properties stay out of it: give them as
    `${env:NAME}` or `${file:PATH}`, or they become such.

    **Examples**

    ingestd init

    ingestd init --bootstrap broker-0:9092 --topic-pattern 'shop\\..*' --warehouse /lake

    ingestd init - --bootstrap broker-0:9092 --kafka 'sasl.password=${env:KAFKA_PASSWORD}'
    """
    _refuse_existing(file, force=force)
    kafka, topic = kafka or [], topic or []
    places = (name, warehouse, database)
    said = _Said(bootstrap, kafka, topic, topic_pattern, data_format, schema_registry, *places)
    _write(file, _proposal(said, file), as_json=as_json)


def _proposal(said: _Said, file: Path) -> Proposal:
    servers = said.bootstrap or _ask("Kafka brokers (HOST:PORT,...)", None, "--bootstrap")
    given = {_BOOTSTRAP: servers, **dict(_pair(one) for one in said.kafka)}
    real = resolved_properties(given)
    topics, pattern = _chosen_topics(list_topics(real), said.topics, said.pattern)
    registry = SchemaRegistrySection(url=(said.registry,)) if said.registry else None
    schemas = registered_formats(registry, Path()).schemas if registry else None
    seen = look_at(real, topics, schemas)
    pipeline = said.name or _ask("Name of the pipeline", _name_of(topics), "--name")
    sources = proposed_sources(pipeline, seen, said.data_format, pattern)
    _refuse_unreadable(sources, said.registry)
    kept, variables = kept_secrets(given)
    proposal = Proposal(
        pipeline,
        said.warehouse or _ask("Warehouse (path or s3://BUCKET/PATH)", "warehouse", "--warehouse"),
        said.database or _ask("Database", pipeline.replace("-", "_"), "--database"),
        kept,
        tuple(sources),
        said.registry,
        remarks=tuple(f"It needs the environment variable {one}." for one in variables),
    )
    return _looked_through(proposal, given, file)


def _refuse_existing(file: Path, *, force: bool) -> None:
    if str(file) != _STDOUT and file.exists() and not force:
        raise ConfigError(f"{file} is there already: name another file, or add --force")


def _ask(what: str, default: str | None, option: str) -> str:
    """An answer from the terminal; without one the default, or ConfigError names the option."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return str(typer.prompt(what, default=default)).strip()
    if default is None:
        raise ConfigError(f"say {option}: there is no terminal to ask on")
    return default


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"--kafka {name!r}: write NAME=VALUE")
    return name, value


def _chosen_topics(
    there: Sequence[str], named: Sequence[str] | None, pattern: str | None
) -> tuple[list[str], str | None]:
    """The topics to read, and the regular expression that says which, if one does."""
    if named:
        return sorted(named), None
    mine = own_topics(there)
    if not mine:
        raise ConfigError("the brokers have no topic yet: name the ones to come with --topic")
    wanted = pattern or _ask("Topics (a regular expression)", proposed_pattern(mine) or ".*", "")
    try:
        chosen = [one for one in mine if re.fullmatch(wanted, one)]
    except re.error as error:
        raise ConfigError(f"'{wanted}' is no regular expression: {error}") from error
    if not chosen:
        shown = ", ".join(mine[:10])
        raise ConfigError(f"no topic is like '{wanted}'; there is: {shown}")
    explicit = pattern is not None or wanted not in (".*", proposed_pattern(mine))
    return chosen, wanted if explicit else proposed_pattern(chosen)


def _name_of(topics: Sequence[str]) -> str:
    """A name for the pipeline: how the names of its topics begin."""
    word = re.split(r"[^A-Za-z0-9]", topics[0])[0].lower() if topics else ""
    return word if re.fullmatch(r"[a-z][a-z0-9]*", word) else "ingestd"


def _refuse_unreadable(sources: Sequence[SourceProposal], registry: str | None) -> None:
    needing = [one for one in sources if one.guess.needs_registry]
    if needing and registry is None:
        raise ConfigError(
            f"messages of {', '.join(needing[0].topics)} are binary, with schemas in a registry: "
            "add --schema-registry URL"
        )


def _looked_through(proposal: Proposal, given: dict[str, str], file: Path) -> Proposal:
    """The proposal with its tables; tried with the properties as they were given."""
    folder = Path.cwd() if str(file) == _STDOUT else file.absolute().parent
    text = proposal_yaml(replace(proposal, kafka=given))
    return with_tables(proposal, text, folder, _RECORDS)


def _write(file: Path, proposal: Proposal, *, as_json: bool) -> None:
    text = proposal_yaml(proposal)
    if str(file) == _STDOUT:
        typer.echo(text, nl=False)
        return
    file.write_text(text, encoding="utf-8")
    if as_json:
        print_json(_document(file, proposal))
        return
    for one in proposal.sources:
        typer.echo(f"{one.name}: {len(one.topics)} topics of {one.data_format}")
    for table in proposal.tables:
        keys = ", ".join(table.primary_keys) or "none"
        typer.echo(f"  {table.table}: {len(table.columns)} columns, key {keys}")
    for remark in proposal.remarks:
        typer.echo(remark)
    typer.echo(f"{file} is written. Next: ingestd plan -c {file}")


def _document(file: Path, proposal: Proposal) -> dict[str, object]:
    return {
        "file": str(file),
        "sources": [
            {
                "name": one.name,
                "topics": list(one.topics),
                "topic_pattern": one.pattern,
                "format": one.data_format,
                "agreeing": one.guess.agreeing,
                "sampled": one.guess.telling,
            }
            for one in proposal.sources
        ],
        "tables": [
            {
                "table": one.table,
                "primary_keys": list(one.primary_keys),
                "columns": {column.name: str(column.type) for column in one.columns},
            }
            for one in proposal.tables
        ],
        "remarks": list(proposal.remarks),
    }
