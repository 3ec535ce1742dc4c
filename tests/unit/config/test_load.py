from collections.abc import Mapping
from pathlib import Path

import pytest

from ingestd import log
from ingestd.config.load import LoadedConfig, load_config
from ingestd.errors import ConfigError

SMALLEST = """
warehouse:
  path: /lake
sources:
  shop:
    kafka: {bootstrap.servers: "localhost:9092"}
    topics: [orders]
    format: debezium-json
"""


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_secrets", {})


def load(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> LoadedConfig:
    path = folder / "f.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, environ or {})


def issues(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, environ)
    head, *lines = caught.value.message.splitlines()
    assert str(folder / "f.yaml") in head
    return [line.strip().removeprefix(f"{folder}/") for line in lines]


def test_the_smallest_file_is_enough(tmp_path: Path) -> None:
    config = load(tmp_path, SMALLEST).config
    assert config.pipeline.name == "ingestd"
    assert config.sources["shop"].max_offsets_per_trigger == 500_000
    assert config.defaults.primary_keys is None


def test_environment_goes_before_file_and_file_before_default(tmp_path: Path) -> None:
    text = SMALLEST + "pipeline: {trigger: 5s, name: from-file}\n"
    config = load(tmp_path, text, {"INGESTD__PIPELINE__TRIGGER": "7s"}).config
    assert config.pipeline.trigger == 7.0
    assert config.pipeline.name == "from-file"
    assert config.pipeline.commit_group_offsets is True


def test_what_is_overridden_need_not_resolve(tmp_path: Path) -> None:
    text = SMALLEST.replace("/lake", "${env:NOT_SET}")
    environ = {"INGESTD__WAREHOUSE__PATH": "/other"}
    assert load(tmp_path, text, environ).config.warehouse.path == "/other"


def test_a_key_without_a_value_is_a_key_that_is_not_there(tmp_path: Path) -> None:
    assert load(tmp_path, SMALLEST + "http:\nlogging: {level: }\n").config.logging.level == "INFO"


def test_lists_may_be_texts_since_an_environment_has_only_those(tmp_path: Path) -> None:
    for text in ("a, b", '["a", "b"]'):
        environ = {
            "INGESTD__SOURCES__SHOP__TOPICS": text,
            "INGESTD__PIPELINE__FORMERLY": text,
        }
        config = load(tmp_path, SMALLEST, environ).config
        assert config.sources["shop"].topics == config.pipeline.formerly == ("a", "b")


def test_a_table_of_any_name_that_routing_gives_may_have_settings(tmp_path: Path) -> None:
    for name in ("Größe", "my orders", "a.b"):
        text = f"{SMALLEST}tables: {{{name}: {{partition-keys: [day]}}}}\n"
        assert load(tmp_path, text).config.tables[name].partition_keys == ("day",)


@pytest.mark.parametrize(
    ("text", "issue"),
    [
        ("pipelin: {name: x}", "f.yaml:9: pipelin: unknown key; did you mean 'pipeline'?"),
        ("pipeline: {nam: x}", "f.yaml:9: pipeline.nam: unknown key; did you mean 'name'?"),
        ("zzz: 1", "f.yaml:9: zzz: unknown key; known: compaction, "),
        ("defaults: {primary_keys: id}", "unknown key; did you mean 'primary-keys'?"),
        ("routing: {table_prefix_db: {}}", "unknown key; did you mean 'table-prefix-db'?"),
        ("pipeline:\n  trigger: 10", "f.yaml:10: pipeline.trigger: '10' has no unit"),
        ("pipeline: {name: Shop}", "f.yaml:9: pipeline.name: a name consists of lower-case"),
        ("pipeline: x", "f.yaml:9: pipeline: must be a section"),
        ("tables: {a/b: {}}", "f.yaml:9: tables.a/b: table name 'a/b' contains a slash"),
        (
            "tables: {a$branch_b: {}}",
            "tables.a$branch_b: table name 'a$branch_b' contains $",
        ),
        ("errors: {dead-letter-table: a.b}", "dead-letter-table: a name consists of letters"),
        ("http: {listen: '8080'}", "f.yaml:9: http.listen: '8080' is not HOST:PORT"),
        ("http: {listen: 'http://a:8080'}", "http.listen: 'http://a:8080' is not HOST:PORT"),
        ("logging: {level: TRACE}", "f.yaml:9: logging.level: must be 'DEBUG', 'INFO'"),
        ("processing: {write-tasks: many}", "processing.write-tasks: must be a whole number"),
        ("processing: {write-tasks: 0}", "f.yaml:9: processing.write-tasks: input should be"),
        ("routing: {merge-shards: perhaps}", "routing.merge-shards: must be true or false"),
        ("spark: {executor.memory: 1g}", "spark: settings of Spark begin with 'spark.'"),
        (
            "tables: {t: {schema: {column-types: {a: DECMAL}}}}",
            "f.yaml:9: tables.t.schema.column-types.a: is not a column type",
        ),
    ],
)
def test_a_fault_has_its_line_its_key_and_a_way_out(tmp_path: Path, text: str, issue: str) -> None:
    found = issues(tmp_path, SMALLEST + text)
    assert len(found) == 1
    assert issue in found[0]


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    text = "warehouse: {pth: /lake}\nsources: {shop: {format: debezium-json, topics: t}}\n"
    found = issues(tmp_path, text, {"INGESTD__HTPP__LISTEN": "x"})
    assert found == [
        "environment INGESTD__HTPP__LISTEN: unknown key 'HTPP'; did you mean 'http'?",
        "f.yaml:1: warehouse.path: is missing",
        "f.yaml:1: warehouse.pth: unknown key; did you mean 'path'?",
        "f.yaml:2: sources.shop.kafka: is missing",
    ]


def test_an_empty_file_says_what_is_needed(tmp_path: Path) -> None:
    assert [line.split(": ", 1)[1] for line in issues(tmp_path, "")] == [
        "warehouse: is missing",
        "sources: is missing",
    ]


def test_a_fault_does_not_show_a_secret(tmp_path: Path) -> None:
    text = SMALLEST + "pipeline: {trigger: '${env:PW}'}\nhttp: {sasl.password: hunter23}"
    found = issues(tmp_path, text, {"PW": "hunter22"})
    assert "hunter" not in " ".join(found)
    assert len(found) == 2


def test_nested_types_are_written_as_in_schema_files(tmp_path: Path) -> None:
    text = (
        "tables: {t: {schema: {column-types: {a: {type: ARRAY, element: INT}, "
        "r: {type: ROW, fields: [{id: 0, name: x, type: 'DECIMAL(5, 1)'}]}}}}}"
    )
    types = load(tmp_path, SMALLEST + text).config.tables["t"].schema_.column_types
    assert types["a"].element is not None
    assert types["a"].element.root == "INT"
    assert types["r"].fields[0].name == "x"


def test_the_configuration_shows_no_secret_when_it_is_printed(tmp_path: Path) -> None:
    text = SMALLEST.replace('"localhost:9092"', '"a:1", sasl.password: hunter22')
    config = load(tmp_path, text).config
    assert config.sources["shop"].kafka["sasl.password"] == "hunter22"
    assert "hunter22" not in repr(config)
