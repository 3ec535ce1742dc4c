"""`ingestd init`: write a first configuration from the topics of a cluster."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ingestd.cdc.format_guess import Guess
from ingestd.cli.broker_survey import (
    BrokerSurvey,
    list_topics,
    proposed_sources,
    resolved_properties,
    sample_topics,
    with_tables,
)
from ingestd.cli.interrupts import interruptible
from ingestd.cli.output import AsJson, print_json, say
from ingestd.cli.progress_line import waiting
from ingestd.cli.prompts import ask, confirm, is_terminal, print_on_terminal
from ingestd.cli.proposal import (
    Proposal,
    kept_secrets,
    own_topics,
    proposal_yaml,
    proposed_pattern,
)
from ingestd.config.registry_section import SchemaRegistrySection, registered_formats
from ingestd.config.values import check_pipeline_name
from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import check_name
from ingestd.paimon.io.file_io import file_io_for
from ingestd.wording import counted

_BOOTSTRAP = "bootstrap.servers"
_RECORDS = 200
_STDOUT = "-"
_File: TypeAlias = Annotated[Path, typer.Argument(help="The file to write; - is standard output.")]
_Bootstrap: TypeAlias = Annotated[str | None, typer.Option(help="The brokers, as HOST:PORT,...")]
_Topics: TypeAlias = Annotated[
    list[str] | None, typer.Option("--topic", help="A topic to read; repeatable.")
]
_Pattern: TypeAlias = Annotated[
    str | None, typer.Option(help="Regular expression for the topics to read.")
]
_Format: TypeAlias = Annotated[
    str | None, typer.Option("--format", "-f", help="The data format; guessed by default.")
]
_Warehouse: TypeAlias = Annotated[str | None, typer.Option(help="Root of the warehouse.")]
_Database: TypeAlias = Annotated[str | None, typer.Option(help="Database of the tables.")]
_Name: TypeAlias = Annotated[str | None, typer.Option(help="Name of the pipeline.")]
_Kafka: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--kafka", metavar="NAME=VALUE", help="Kafka client property; repeatable."),
]
_Registry: TypeAlias = Annotated[str | None, typer.Option(help="URL of a schema registry.")]
_Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
SHOWN_TOPICS = 10
"""Maximum number of topics that a message names; the others are only counted."""


@dataclass(frozen=True, slots=True)
class _InitOptions:
    """The options of the command; for None, a value is asked for or guessed, or has a default."""

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
    """Write a first configuration, with formats, keys and types inferred from the messages.

    On a terminal, asks for values that no option sets; elsewhere they have defaults. Writes nothing
    but the file. Secrets among the properties are not written: pass them as `${env:NAME}` or
    `${file:PATH}`, or they are replaced by such references.

    **Examples**

    ingestd init

    ingestd init --bootstrap broker-0:9092 --topic-pattern 'shop\\\\..*' --warehouse /lake

    ingestd init - --bootstrap broker-0:9092 --kafka 'sasl.password=${env:KAFKA_PASSWORD}'
    """
    _refuse_existing(file, force=force)
    kafka, topic = kafka or [], topic or []
    targets = (name, warehouse, database)
    options = _InitOptions(
        bootstrap, kafka, topic, topic_pattern, data_format, schema_registry, *targets
    )
    with interruptible("init of", str(file), "Nothing was written."):
        proposal = _proposal(options, file)
    _write(file, proposal, as_json=as_json)


def _proposal(options: _InitOptions, file: Path) -> Proposal:
    cluster = _cluster(options)
    topics, pattern = chosen_topics(cluster.topics, options.topics, options.pattern)
    survey, registry = _survey(cluster.resolved, topics, options)
    pipeline = options.name or ask(
        "Name of the pipeline", pipeline_name(topics), "--name", check_pipeline_name
    )
    kept, variables = kept_secrets(cluster.properties)
    proposal = Proposal(
        pipeline,
        options.warehouse
        or ask("Warehouse (path or s3://BUCKET/PATH)", "warehouse", "--warehouse", _reachable),
        options.database
        or ask(
            "Database", pipeline.replace("-", "_"), "--database", partial(check_name, "database")
        ),
        kept,
        tuple(proposed_sources(pipeline, survey, options.data_format, pattern)),
        registry,
        remarks=tuple(f"It needs the environment variable {variable}." for variable in variables),
    )
    with waiting("reading messages as the pipeline would"):
        return _previewed(proposal, cluster.properties, file)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The topics of a cluster, and the properties of its client as given and resolved."""

    topics: Sequence[str]
    properties: dict[str, str]
    resolved: dict[str, str]


def _cluster(options: _InitOptions) -> _Cluster:
    """Return the cluster of `--bootstrap`, or of the first answer whose brokers can be used."""
    if options.bootstrap is not None:
        return _topics_at(options, options.bootstrap)
    reached: list[_Cluster] = []

    def reach(servers: str) -> None:
        cluster = _topics_at(options, servers)
        if not options.topics and not own_topics(cluster.topics):
            raise ConfigError(f"{servers} has no topic yet: create one, or name other brokers")
        reached.append(cluster)

    ask("Kafka brokers (HOST:PORT,...)", None, "--bootstrap", reach)
    return reached[-1]


def _topics_at(options: _InitOptions, servers: str) -> _Cluster:
    properties = {_BOOTSTRAP: servers, **dict(_pair(pair) for pair in options.kafka)}
    resolved = resolved_properties(properties)
    with waiting(f"looking for topics at {servers}"):
        return _Cluster(list_topics(resolved), properties, resolved)


def _reachable(warehouse: str) -> None:
    """Raise ConfigError or StorageError if the store of a URI does not exist or respond."""
    if "://" in warehouse:
        file_io_for(warehouse).exists(warehouse)


def _survey(
    real: dict[str, str], topics: Sequence[str], options: _InitOptions
) -> tuple[BrokerSurvey, str | None]:
    """Return the survey of the topics, and the URL of the schema registry, or None.

    `real` are the client properties with resolved references. Asks for the URL if messages need a
    registry; raises ConfigError without a terminal.
    """
    url = options.registry
    survey = _sampled(real, topics, url)
    needing = [topic for topic, guess in survey.guesses.items() if guess.needs_registry]
    if options.data_format is None and needing and url is None:
        if not is_terminal():
            raise ConfigError(
                f"messages of {', '.join(needing)} are binary, with schemas in a registry: "
                "add --schema-registry URL"
            )
        print_on_terminal(f"Messages of {', '.join(needing)} have their schemas in a registry.")
        surveys: list[BrokerSurvey] = []
        url = ask(
            "URL of the schema registry",
            None,
            "--schema-registry",
            lambda answer: surveys.append(_sampled(real, topics, answer)),
        )
        survey = surveys[-1]
    for topic, guess in list(survey.guesses.items())[:SHOWN_TOPICS]:
        print_on_terminal(f"  {topic}: {_format_summary(guess, options.data_format)}")
    return survey, url


def _sampled(real: dict[str, str], topics: Sequence[str], url: str | None) -> BrokerSurvey:
    """Sample the topics, with schemas of the registry at `url`, or None.

    Raises the errors of `sample_topics`.
    """
    schemas = None
    if url is not None:
        schemas = registered_formats(SchemaRegistrySection(url=(url,)), Path()).schemas
    with waiting(f"looking at messages of {counted(len(topics), 'topic')}"):
        return sample_topics(real, topics, schemas)


def _format_summary(guess: Guess, data_format: str | None) -> str:
    if data_format is not None:
        return data_format
    if guess.data_format is None:
        return "data format not recognized" if guess.telling else "no messages yet"
    return f"{guess.data_format}, as {guess.agreeing} of {guess.telling} sampled messages look like"


def _refuse_existing(file: Path, *, force: bool) -> None:
    if str(file) == _STDOUT or not file.exists() or force:
        return
    if not is_terminal():
        raise ConfigError(f"{file} exists already: name another file, or add --force")
    confirm(f"{file} exists already. Overwrite it?", "--force", given=False)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"--kafka {name!r}: write NAME=VALUE")
    return name, value


def _previewed(proposal: Proposal, properties: dict[str, str], file: Path) -> Proposal:
    """Return the proposal with the tables that a dry run would create.

    The dry run uses `properties` as given: in the proposal, secrets are replaced by references.
    """
    folder = Path.cwd() if str(file) == _STDOUT else file.absolute().parent
    text = proposal_yaml(replace(proposal, kafka=properties))
    return with_tables(proposal, text, folder, _RECORDS)


def _write(file: Path, proposal: Proposal, *, as_json: bool) -> None:
    text = proposal_yaml(proposal)
    if str(file) == _STDOUT:
        say(text, nl=False)
        return
    file.write_text(text, encoding="utf-8")
    if as_json:
        print_json(_document(file, proposal))
        return
    for source in proposal.sources:
        say(f"{source.name}: {counted(len(source.topics), 'topic')} of {source.data_format}")
    for table in proposal.tables:
        keys = ", ".join(table.primary_keys) or "none"
        say(f"  {table.table}: {counted(len(table.columns), 'column')}, key {keys}")
    for remark in proposal.remarks:
        say(remark)
    say(f"{file} is written. Next: ingestd plan -c {file}")


def _document(file: Path, proposal: Proposal) -> dict[str, object]:
    return {
        "file": str(file),
        "sources": [
            {
                "name": source.name,
                "topics": list(source.topics),
                "topic_pattern": source.pattern,
                "format": source.data_format,
                "agreeing": source.guess.agreeing,
                "sampled": source.guess.telling,
            }
            for source in proposal.sources
        ],
        "tables": [
            {
                "table": table.table,
                "primary_keys": list(table.primary_keys),
                "columns": {column.name: str(column.type) for column in table.columns},
            }
            for table in proposal.tables
        ],
        "remarks": list(proposal.remarks),
    }


def chosen_topics(
    existing: Sequence[str], named: Sequence[str] | None, pattern: str | None
) -> tuple[list[str], str | None]:
    """Return the topics to read, and the regular expression that selects them, or None.

    Topics that are `named` are not compared with the `existing` ones. Without names and a pattern,
    asks for the expression, or without a terminal takes the default. Raises ConfigError if no topic
    exists or matches, and for an invalid expression.
    """
    if named:
        return sorted(named), None
    mine = own_topics(existing)
    if not mine:
        raise ConfigError("the brokers have no topic yet: create one, or name other brokers")
    common_pattern = proposed_pattern(mine)
    if pattern is None:
        print_on_terminal(f"Topics: {_some_of(mine)}")
    expression = pattern or ask(
        "Topics (a regular expression)",
        common_pattern or ".*",
        "--topic-pattern",
        partial(_matching, mine),
    )
    chosen = _matching(mine, expression)
    explicit = pattern is not None or expression not in (".*", common_pattern)
    return chosen, expression if explicit else proposed_pattern(chosen)


def _matching(topics: Sequence[str], pattern: str) -> list[str]:
    """Return the topics that match a regular expression.

    Raises ConfigError if the expression is invalid or no topic matches.
    """
    try:
        chosen = [topic for topic in topics if re.fullmatch(pattern, topic)]
    except re.error as error:
        raise ConfigError(f"'{pattern}' is not a valid regular expression: {error}") from error
    if not chosen:
        raise ConfigError(f"no topic matches '{pattern}'; topics: {_some_of(topics)}")
    return chosen


def _some_of(topics: Sequence[str]) -> str:
    left = len(topics) - SHOWN_TOPICS
    return ", ".join(topics[:SHOWN_TOPICS]) + (f" and {left} more" if left > 0 else "")


def pipeline_name(topics: Sequence[str]) -> str:
    """Return a name for the pipeline: the first word of the first topic, or else "ingestd"."""
    word = re.split(r"[^A-Za-z0-9]", topics[0])[0].lower() if topics else ""
    return word if re.fullmatch(r"[a-z][a-z0-9]*", word) else "ingestd"
