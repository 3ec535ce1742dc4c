"""Routing, columns and schema policies from YAML to settings, and what is refused there."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from ingestd.config.load import LoadedConfig, load_config
from ingestd.config.runtime import pipeline_settings
from ingestd.config.table_sections import DefaultsSection, TableSection, settings_of
from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.error_policy import ErrorPolicy
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.routing_rules import RouteRule
from ingestd.ingest.settings.truncate_policy import TruncatePolicy
from ingestd.ingest.settings.watermark_rules import WatermarkRules

BASE = """
warehouse: {path: /lake}
sources:
  shop:
    kafka: {bootstrap.servers: "localhost:9092"}
    topics: [orders]
    format: debezium-json
"""
RULES = r"""
routing:
  rules:
    - match: {topic: 'inv_(?P<n>\d)\..*', schema: public}
      to: all_${n}
      add-columns: {shard: "$1"}
      key-columns: [shard]
      merge-shards: true
    - {match: {table: "(.*)"}, to: t_$1}
"""


def load(folder: Path, text: str, **environ: str) -> LoadedConfig:
    path = folder / "f.yaml"
    path.write_text(BASE + text, encoding="utf-8")
    return load_config(path, environ)


def table(folder: Path, text: str) -> TableSettings:
    settings = pipeline_settings(load(folder, text))
    return settings.tables["t"].over(settings.defaults)


def issue(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError, match="one error") as caught:
        load(folder, text)
    return caught.value.message.splitlines()[1].strip()


def test_rules_keep_their_references(tmp_path: Path) -> None:
    rules = pipeline_settings(load(tmp_path, RULES)).routing.rules
    assert rules == (
        RouteRule(
            {"topic": r"inv_(?P<n>\d)\..*", "schema": "public"},
            "all_${n}",
            {"shard": "$1"},
            ("shard",),
            True,
        ),
        RouteRule({"table": "(.*)"}, "t_$1"),
    )


def test_rules_come_from_the_environment_as_json(tmp_path: Path) -> None:
    text = '[{"match": {"table": "a"}, "to": "b"}]'
    loaded = load(tmp_path, RULES, INGESTD__ROUTING__RULES=text)
    assert pipeline_settings(loaded).routing.rules == (RouteRule({"table": "a"}, "b"),)
    with pytest.raises(ConfigError, match="or the JSON text of a list"):
        load(tmp_path, "", INGESTD__ROUTING__RULES="a")


def test_a_table_completes_itself_with_the_defaults(tmp_path: Path) -> None:
    settings = table(
        tmp_path,
        """
defaults:
  computed-columns: {day: "date_format(at, yyyy-MM-dd)"}
  metadata-columns: [topic, offset]
  metadata-column-prefix: k_
  on-delete: keep
  schema: {evolution: add-columns, on-incompatible-schema: dead-letter, on-rename: rename}
tables:
  t:
    computed-columns: {month: "truncate(day, 7)"}
    metadata-columns: [key]
    select: {include: [id, at], exclude: [x]}
    where: state <> 'draft' and day is not null
    deleted-at: gone
    schema: {evolution: evolve, aliases: {new: old}, drop: [gone], on-drop: drop, max-columns: 9}
""",
    )
    assert [str(one) for one in settings.shape.computed] == [
        "computed column 'day' = date_format(at, yyyy-MM-dd)",
        "computed column 'month' = truncate(day, 7)",
    ]
    assert list(settings.shape.metadata_columns()) == [("k_key", "key")]
    assert (settings.shape.include, settings.shape.exclude) == (("id", "at"), ("x",))
    assert str(settings.shape.where) == "where state <> 'draft' and day is not null"
    assert settings.shape.deletion_column == "gone"
    names = {"new": "old"}
    policy = EvolutionPolicy(
        "evolve", "dead-letter", names, ("gone",), "rename", "drop", 9, "apply"
    )
    assert settings.evolution == policy


def test_computed_and_metadata_columns_may_be_keys(tmp_path: Path) -> None:
    settings = table(
        tmp_path,
        """
tables:
  t:
    primary-keys: [database_name, day, id]
    partition-keys: [day]
    computed-columns: {day: "date_format(at, yyyyMMdd)"}
    metadata-columns: [database_name]
""",
    )
    assert settings.primary_keys == ("database_name", "day", "id")


def test_sql_may_stand_as_an_expression(tmp_path: Path) -> None:
    settings = table(
        tmp_path,
        """
tables:
  t:
    computed-columns:
      gross: net * 1.19
      part: {expression: "substring(name, 1, 3)"}
""",
    )
    assert [(one.name, one.sources) for one in settings.shape.computed] == [
        ("gross", ("net",)),
        ("part", ("name",)),
    ]
    assert str(settings.shape.computed[1].call) == "substring(name, 1, 3)"


def test_stages_have_policies_of_their_own(tmp_path: Path) -> None:
    loaded = load(tmp_path, "errors: {decode: drop, schema: fail, cast: dead-letter}")
    policy = pipeline_settings(loaded).error_policy
    assert policy == ErrorPolicy({"decode": "drop", "schema": "fail"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("routing: {rules: [{match: {table: '('}, to: a}]}", "routing.rules[0].match.table: '('"),
        ("routing: {rules: [{match: {table: a}, to: $1}]}", "'$1' is not one of the groups"),
        ("routing: {rules: [{match: {tabel: a}, to: b}]}", "rules[0].match.tabel: unknown key"),
        ("routing: {rules: [{to: b}]}", "routing.rules[0].match: is missing"),
        ("routing: {rules: {a: b}}", "routing.rules: must be a list"),
        ("routing: {including-dbs: '('}", "routing.including-dbs: '(' is not a regular"),
        (
            "defaults: {computed-columns: {y: yaer(a)}}",
            "'y' = yaer(a): at character 1: unknown function 'yaer'; did you mean 'year'?",
        ),
        (
            "tables: {t: {computed-columns: {x: a + b}, schema: {column-types: {a: INT, b: DATE}}}"
            "}",
            "tables.t: computed column 'x' = a + b: at character 1: + does not take INT, DATE",
        ),
        (
            "tables: {t: {where: a >}}",
            "tables.t.where: where a >: at character 3: it cannot be parsed",
        ),
        ("tables: {t: {where: 1 + 1}}", "where 1 + 1: it is INT, not BOOLEAN"),
        ("tables: {t: {where: at > now()}}", "its result changes with the time"),
        ("tables: {t: {where: a, schema: {column-types: {a: INT}}}}", "it is INT, not BOOLEAN"),
        (
            "tables: {t: {computed-columns: {y: year(now())}, where: y < 2030}}",
            "computed column 'y' = year(now()) changes with the time",
        ),
        (
            "tables: {t: {primary-keys: none, keyless-table-mode: audit, where: row_kind <> '-U'}}",
            "adds the column 'row_kind' after all others",
        ),
        (
            "tables: {t: {primary-keys: none, keyless-table-mode: audit, "
            "metadata-columns: [headers.row_kind]}}",
            "no other column can have its name",
        ),
        (
            "tables: {t: {on-delete: keep, options: {merge-engine: first-row}}}",
            "tables.t: on-delete 'keep' is not possible with 'merge-engine' = 'first-row'",
        ),
        (
            "tables: {t: {on-delete: keep, options: {sequence.field: updated}}}",
            "if column 'updated' orders rows",
        ),
        ("tables: {t: {on-delete: keep, primary-keys: none}}", "tables with a primary key"),
        (
            "tables: {t: {on-delete: keep, metadata-columns: [headers.deleted_at]}}",
            "a computed or metadata column is named 'deleted_at', too",
        ),
        (
            "tables: {t: {on-delete: keep, schema: {column-types: {deleted_at: STRING}}}}",
            "to column 'deleted_at', which is STRING",
        ),
        (
            "tables: {t: {where: a = 1, options: {merge-engine: first-row}}}",
            "set 'ignore-delete' = 'true'",
        ),
        ("tables: {t: {schema: {on-rename: maybe}}}", "must be 'add' or 'rename'"),
        ("errors: {decode: skip}", "errors.decode: must be 'dead-letter', 'fail' or 'drop'"),
        ("defaults: {metadata-columns: [tpoic]}", "unknown metadata column 'tpoic'"),
        ("tables: {t: {computed-columns: {a: upper(b), b: upper(a)}}}", "depends on itself"),
        ("tables: {t: {select: {exclude: [a], include: [a]}}}", "'a' is both"),
        ("tables: {t: {schema: {evolution: all}}}", "must be 'evolve', 'add-columns' or 'none'"),
        ("tables: {t: {schema: {evolution: none, on-incompatible-schema: string}}}", "requires"),
        ("tables: {t: {schema: {aliases: {a: a}}}}", "'a' cannot be both a new name"),
    ],
)
def test_nonsense_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert message in issue(tmp_path, text)


def test_nothing_said_is_the_careful_way_and_a_table_may_say_otherwise() -> None:
    defaults = settings_of(DefaultsSection())
    assert defaults.truncates == TruncatePolicy("apply", "dead-letter")
    assert defaults.keyless_table_mode == "reject"
    said = {"on-ambiguous-truncate": "fail", "keyless-table-mode": "audit"}
    own = settings_of(TableSection.model_validate(said)).over(defaults)
    assert own.truncates == TruncatePolicy("apply", "fail")
    assert own.keyless_table_mode == "audit"
    assert settings_of(TableSection()).over(own) == own


@pytest.mark.parametrize("section", [DefaultsSection, TableSection])
@pytest.mark.parametrize("key", ["on-truncate", "on-ambiguous-truncate", "keyless-table-mode"])
def test_other_words_are_refused(section: type[DefaultsSection], key: str) -> None:
    with pytest.raises(ValidationError, match=key):
        section.model_validate({key: "maybe"})


def test_watermarks_of_a_table_replace_those_of_all(tmp_path: Path) -> None:
    general = "defaults: {watermark: {event-time: source, delay: 10s}}\n"
    assert table(tmp_path, general + "tables: {t: {}}\n").watermark == WatermarkRules(
        "source", None, 10_000
    )
    own = "tables: {t: {watermark: {event-time: column, column: at, idle-timeout: 5s}}}\n"
    assert table(tmp_path, general + own).watermark == WatermarkRules("column", "at", 0, 5.0)
    none = "tables: {t: {watermark: {event-time: none}}}\n"
    assert table(tmp_path, general + none).watermark == WatermarkRules()
    assert "given together" in issue(tmp_path, "tables: {t: {watermark: {column: at}}}")
