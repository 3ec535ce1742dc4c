"""A proposed configuration is one that loads, whatever the names in it."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ingestd.cdc.format_guess import Guess
from ingestd.cli.proposal import (
    Proposal,
    SourceProposal,
    kept_secrets,
    own_topics,
    proposal_yaml,
    proposed_pattern,
)
from ingestd.config.load import load_config
from ingestd.ingest.dry_run.table_preview import ColumnPreview, TablePreview
from ingestd.paimon.spec.data_types import DataType

GUESS = Guess("debezium-json", 9, 10)
SOURCE = SourceProposal("shop", ("shop.a", "shop.b"), r"shop\..*", GUESS, "debezium-json")
KAFKA = {"bootstrap.servers": "broker-0:9092"}
PROPOSAL = Proposal("shop", "/lake", "ods", KAFKA, (SOURCE,))


def test_the_file_loads_and_says_what_was_proposed(tmp_path: Path) -> None:
    file = tmp_path / "ingestd.yaml"
    file.write_text(proposal_yaml(PROPOSAL))
    config = load_config(file, {}).config
    assert (config.pipeline.name, config.warehouse.database) == ("shop", "ods")
    assert config.sources["shop"].topic_pattern == r"shop\..*"
    assert "9 of 10 sampled messages" in file.read_text()


@pytest.mark.parametrize(
    "irregular", ["a: b", "#x", "'", '"', "on", "1", "a\nb: c", "é", "{x}", "&a"]
)
def test_odd_names_are_quoted_and_break_out_of_nothing(irregular: str, tmp_path: Path) -> None:
    columns = (ColumnPreview(irregular, DataType("INT"), None),)
    table = TablePreview(
        f"ods.{irregular}", "create", (), (irregular,), columns=columns, primary_keys=(irregular,)
    )
    sources = (replace(SOURCE, topics=(irregular, "b"), pattern=None),)
    kafka = {**KAFKA, "client.id": irregular}
    proposal = replace(
        PROPOSAL, sources=sources, kafka=kafka, tables=(table,), remarks=(irregular,)
    )
    document = yaml.safe_load(proposal_yaml(proposal))
    assert document.keys() == {"pipeline", "warehouse", "sources", "defaults"}
    assert document["sources"]["shop"]["topics"] == [irregular, "b"]
    assert document["sources"]["shop"]["kafka"]["client.id"] == irregular


def test_tables_are_shown_as_settings_that_only_need_their_hashes_taken_off(
    tmp_path: Path,
) -> None:
    columns = (ColumnPreview("id", DataType("BIGINT", nullable=False), None),)
    keyed = TablePreview("ods.orders", "create", (), (), columns=columns, primary_keys=("id",))
    bare = replace(keyed, table="ods.clicks", primary_keys=())
    bad = TablePreview("ods.bad", "impossible", (), (), problem="two\nlines")
    text = proposal_yaml(replace(PROPOSAL, tables=(keyed, bare, bad)))
    assert "# problem: two" in text
    at = text.index("# tables:")
    file = tmp_path / "ingestd.yaml"
    file.write_text(text[:at] + text[at:].replace("# ", "", 1).replace("\n# ", "\n"))
    tables = load_config(file, {}).config.tables
    assert tables["orders"].primary_keys == ("id",)
    assert tables["clicks"].primary_keys == ()


def test_secrets_become_references() -> None:
    given = {**KAFKA, "sasl.password": "hunter2", "ssl.key.password": "${file:/k}"}
    kept, variables = kept_secrets(given)
    assert kept == given | {"sasl.password": "${env:KAFKA_SASL_PASSWORD}"}
    assert variables == ["KAFKA_SASL_PASSWORD"]


def test_topics_of_kafka_and_its_companions_are_left_out() -> None:
    topics = ["_schemas", "__consumer_offsets", "connect-offsets", "b", "a.connect-offsets"]
    assert own_topics(topics) == ["a.connect-offsets", "b"]


@pytest.mark.parametrize(
    ("topics", "wanted"),
    [
        (["shop.public.a", "shop.public.b"], r"shop\.public\..*"),
        (["shop.a", "shop.b.c"], r"shop\..*"),
        (["shop.ab", "shopping.ab"], None),
        (["shop.orders", "shop.orders.retry"], r"shop\..*"),
        (["shop", "shop.orders"], None),
        (["shop.a"], None),
        ([], None),
    ],
)
def test_topics_that_begin_alike_have_a_pattern(topics: list[str], wanted: str | None) -> None:
    assert proposed_pattern(topics) == wanted
