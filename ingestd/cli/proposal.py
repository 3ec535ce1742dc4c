"""A proposed configuration as commented YAML."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from ingestd.cdc.format_guess import Guess
from ingestd.ingest.dry_run.table_preview import TablePreview
from ingestd.log import is_secret_name, printable
from ingestd.secret_references import holds_reference
from ingestd.wording import counted

_SHOWN_TOPICS = 12
_OURS = re.compile(r"_.*|connect-(configs|offsets|status)")
"""Internal topics of Kafka, Kafka Connect and similar services."""


@dataclass(frozen=True, slots=True)
class SourceProposal:
    """A proposed source: topics of one data format, and the guess that the format is based on.

    `pattern` is a regular expression that selects the topics; if it is None, they are listed.
    """

    name: str
    topics: tuple[str, ...]
    pattern: str | None
    guess: Guess
    data_format: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """The contents of a proposed configuration.

    `kafka` has client properties, with references instead of secrets. `registry` is the URL of the
    schema registry, or None. `remarks` are comments at the top of the file.
    """

    pipeline: str
    warehouse: str
    database: str
    kafka: Mapping[str, str]
    sources: tuple[SourceProposal, ...]
    registry: str | None = None
    tables: tuple[TablePreview, ...] = ()
    remarks: tuple[str, ...] = field(default=())


def own_topics(names: Sequence[str]) -> list[str]:
    """Return the sorted names of topics, without internal ones of Kafka and its services."""
    return sorted(name for name in names if not _OURS.fullmatch(name))


def proposed_pattern(topics: Sequence[str]) -> str | None:
    """Return a regular expression for topics with a common prefix that ends with a dot.

    Returns None if there is no such prefix, or only one topic.
    """
    if len(topics) < 2:
        return None
    first, last = min(topics).split(".")[:-1], max(topics).split(".")[:-1]
    common = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    prefix = "".join(f"{part}." for part, _ in common)
    return f"{re.escape(prefix)}.*" if prefix else None


def kept_secrets(properties: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return properties with references instead of secrets, and the environment variables to set.

    Values that already contain a reference are not changed.
    """
    kept, variables = dict(properties), []
    for name, value in properties.items():
        if is_secret_name(name) and not holds_reference(value):
            variable = "KAFKA_" + re.sub(r"\W", "_", name).upper()
            kept[name] = f"${{env:{variable}}}"
            variables.append(variable)
    return kept, variables


def proposal_yaml(proposal: Proposal) -> str:
    """Return the proposal as commented YAML, which `ingestd validate` accepts."""
    lines = [
        "# yaml-language-server: $schema=ingestd.schema.json",
        "# (for editors; `ingestd config schema > ingestd.schema.json` writes that file)",
        "# Proposed by `ingestd init` from what the brokers hold; yours to change.",
        "#   ingestd validate -c FILE    what is wrong, and what takes effect",
        "#   ingestd plan -c FILE        what it would do to which tables; writes nothing",
        "#   ingestd run -c FILE         do it",
        *(f"# {printable(remark)}" for remark in proposal.remarks),
        "",
        "pipeline:",
        "  # Its identity in the tables: another name is another pipeline, which starts again.",
        f"  name: {_scalar(proposal.pipeline)}",
        "",
        "warehouse:",
        "  # A path, from this file's folder if it is relative, or s3://BUCKET/PATH.",
        f"  path: {_scalar(proposal.warehouse)}",
        f"  database: {_scalar(proposal.database)}",
        "",
        "sources:",
        *(line for source in proposal.sources for line in _source(source, proposal)),
        "",
        "defaults:",
        "  # The key of a table: the columns of the message key. Or a list of columns, or none.",
        "  primary-keys: from-key",
        "  options:",
        "    # Dynamic buckets: as many as a table needs, by its rows.",
        "    bucket: '-1'",
        *_tables(proposal.tables),
    ]
    return "\n".join(lines) + "\n"


def _source(source: SourceProposal, proposal: Proposal) -> Iterator[str]:
    guess = source.guess
    yield f"  {_scalar(source.name)}:"
    yield "    kafka:                       # properties of the Kafka client, by their own names"
    for name, value in proposal.kafka.items():
        yield f"      {name}: {_scalar(value)}"
    shown = ", ".join(map(printable, source.topics[:_SHOWN_TOPICS]))
    more = (
        f" and {len(source.topics) - _SHOWN_TOPICS} more" if source.topics[_SHOWN_TOPICS:] else ""
    )
    yield f"    # {counted(len(source.topics), 'topic')} today: {shown}{more}"
    if source.pattern is None:
        yield "    topics:"
        yield from (f"    - {_scalar(topic)}" for topic in source.topics)
    else:
        yield f"    topic-pattern: {_scalar(source.pattern)}"
    yield (
        f"    # {guess.agreeing} of {guess.telling} sampled messages look like it."
        if guess.telling
        else "    # The default, because these topics have no messages to recognize it by."
    )
    yield f"    format: {source.data_format}"
    if proposal.registry:
        yield "    schema-registry:"
        yield f"      url: {_scalar(proposal.registry)}"


def _tables(tables: Sequence[TablePreview]) -> Iterator[str]:
    if not tables:
        return
    yield ""
    yield "# Tables that the sampled messages would create, as `ingestd plan` shows. Settings for a"
    yield "# table go under its name: keys, partitions, options, types of columns."
    yield "#"
    yield "# tables:"
    for table in tables:
        yield from _table(table)


def _table(preview: TablePreview) -> Iterator[str]:
    yield f"#   {printable(preview.table.partition('.')[2])}:"
    if preview.problem:
        yield f"#     # problem: {' '.join(printable(preview.problem).split())}"
        return
    keys = [printable(key) for key in preview.primary_keys]
    yield (
        f"#     primary-keys: [{', '.join(keys)}]"
        if keys
        else ("#     primary-keys: none          # no message key was seen: rows are only added")
    )
    yield "#     schema:"
    yield "#       column-types:"
    for column in preview.columns:
        yield f"#         {_scalar(column.name)}: {_scalar(str(column.type.as_nullable()))}"


def _scalar(value: str) -> str:
    """Return a text as a YAML scalar on one line."""
    plain = yaml.safe_dump(value, width=1 << 20, allow_unicode=True).removesuffix("...\n").strip()
    if "\n" in plain or yaml.safe_load(plain) != value:
        return yaml.safe_dump(value, width=1 << 20, default_style='"').strip()
    return plain
