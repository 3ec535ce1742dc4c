import re
from pathlib import Path

import pytest

from ingestd.config.load import load_config
from ingestd.errors import ConfigError

BASE = """
warehouse: {path: /lake}
sources:
  shop:
    kafka: {bootstrap.servers: "localhost:9092"}
    topics: [orders]
    format: debezium-json
"""


def issue(folder: Path, text: str) -> str:
    path = folder / "f.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="one error") as caught:
        load_config(path, {})
    found = caught.value.message.splitlines()[1].strip().removeprefix(f"{folder}/")
    assert not re.search(r" ([\w.-]+): \1[.: ]", found), "a path is repeated"
    return found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("debezium-json", "debezium-jsn", "unknown data format; did you mean 'debezium-json'?"),
        (
            "bootstrap.servers",
            "client.id",
            "shop.kafka: bootstrap.servers is missing",
        ),
        (
            '"localhost:9092"',
            "a:1, group.instance.id: 1, enable.auto.commit: true",
            "sources.shop.kafka: enable.auto.commit cannot be set",
        ),
        (
            "debezium-json",
            "canal-json\ntables: {t: {ordering: source-position}}",
            "needs a data format whose messages contain a position",
        ),
        (
            "debezium-json",
            "debezium-json\nrouting: {merge-shards: true}\n"
            "tables: {t: {ordering: source-position}}",
            "cannot compare the logs of several databases",
        ),
        ("topics: [orders]", "topic-pattern: '['", "is not a valid regular expression"),
        ("topics: [orders]", "topics: [a]\n    topic-pattern: b", "either 'topics' or"),
        ("    topics: [orders]\n", "", "either 'topics' or 'topic-pattern'"),
        ("topics: [orders]", "topics: [a]\n    topic-exclude: [b]", "needs 'topic-pattern'"),
        (
            "topics: [orders]",
            "topic-pattern: 'shop\\..*'\n    topic-exclude: ['shop\\.audit.*']",
            r"leaves nothing out by 'shop\.audit.*', which 'topic-pattern' does not match",
        ),
        (
            "format:",
            "startup-mode: timestamp\n    format:",
            "'startup-mode: timestamp' needs 'startup-timestamp-millis'",
        ),
        (
            "format:",
            "bounded-timestamp-millis: 7\n    format:",
            "'bounded-timestamp-millis' needs 'bounded-mode: timestamp'",
        ),
        (
            "format:",
            "startup-mode: specific-offsets\n    startup-specific-offsets: orders:0\n    format:",
            "startup-specific-offsets: 'orders:0' is not a position in a topic",
        ),
        (
            "format:",
            "bounded-mode: specific-offsets\n"
            "    bounded-specific-offsets: {items: {0: 1}}\n    format:",
            "bounded-specific-offsets: topic items is not read by the source",
        ),
        (
            "format:",
            "bounded-mode: specific-offsets\n"
            "    bounded-specific-offsets: {orders: 1}\n    format:",
            "a map of maps is needed",
        ),
        ("/lake", "viewfs://name/lake", "scheme 'viewfs' is not supported"),
        ("{path: /lake}", "{path: /lake, database: ../x}", "database name"),
        (
            "{path: /lake}",
            "{path: /lake, catalog: {metastore: glue}}",
            "unknown metastore; known: filesystem",
        ),
        ("{path: /lake}", "{path: /lake, catalog: {metastore: rest}}", "uri: is needed"),
        (
            "{path: /lake}",
            "{path: /lake, catalog: {uri: 'http://h'}}",
            "for the metastore 'hive', 'jdbc' or 'rest'",
        ),
        (
            "{path: /lake}",
            "{path: /lake, catalog: {metastore: jdbc, uri: 'jdbc:oracle:thin:@h'}}",
            "'jdbc:oracle:thin:@h' is not supported; write jdbc:sqlite:/PATH, jdbc:postgresql",
        ),
        (
            "{path: /lake}",
            "{path: /lake, catalog: {metastore: jdbc, uri: 'jdbc:sqlite:/c', "
            "case-sensitive: true}}",
            "names of 'jdbc' have no capitals",
        ),
        ("{path: /lake}", "{path: /lake, catalog: {password: hunter22}}", "metastore 'jdbc'"),
        (
            "{path: /lake}",
            "{path: /lake, catalog: {auth-file: f}}",
            "auth-file: is for the metastore",
        ),
        (
            "{path: /lake}",
            "{path: /lake, catalog: {metastore: rest, uri: h, token: a-token, auth-file: f}}",
            "cannot be combined with 'token'",
        ),
        (
            "{path: /lake}",
            "{path: /lake, catalog: {metastore: rest, uri: h, case-sensitive: false}}",
            "for the metastore 'filesystem'",
        ),
        ('"localhost:9092"', '"a:1", isolation.level: read_uncommitted', "isolation.level"),
    ],
)
def test_sources_and_warehouse(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert message in issue(tmp_path, BASE.replace(old, new))


@pytest.mark.parametrize("topics", ["topics: [orders, dead]", "topic-pattern: .*"])
def test_dead_letters_are_not_sent_to_a_topic_that_is_read(tmp_path: Path, topics: str) -> None:
    dead = "errors: {dead-letter-topic: dead}\n"
    found = issue(tmp_path, BASE.replace("topics: [orders]", topics) + dead)
    assert "errors.dead-letter-topic: is a topic that source shop reads" in found
    (tmp_path / "g.yaml").write_text(BASE + dead)
    load_config(tmp_path / "g.yaml", {})
    excluded = BASE.replace("topics: [orders]", "topic-pattern: .*\n    topic-exclude: [dead]")
    (tmp_path / "g.yaml").write_text(excluded + dead)
    load_config(tmp_path / "g.yaml", {})


@pytest.mark.parametrize("master", ["spark://h:7077", "k8s://https://h", "yarn"])
def test_a_disk_is_no_warehouse_of_a_cluster_unless_it_is_shared(
    tmp_path: Path, master: str
) -> None:
    spark = f"spark: {{spark.master: '{master}'}}\n"
    found = issue(tmp_path, BASE + spark)
    assert f": warehouse.path: is a local path, and spark.master '{master}' runs tasks on" in found
    for place in ("{path: /lake, shared: true}", "{path: 's3://lake/x'}"):
        path = tmp_path / "f.yaml"
        path.write_text(BASE.replace("{path: /lake}", place) + spark, encoding="utf-8")
        load_config(path, {})


@pytest.mark.parametrize("master", ["local[2]", "local", "local-cluster[2,1,1024]"])
def test_tasks_on_this_machine_see_its_disk(tmp_path: Path, master: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(f"{BASE}spark: {{spark.master: '{master}'}}\n", encoding="utf-8")
    load_config(path, {})


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("routing: {excluding-tables: '('}", "routing.excluding-tables", "not a regular"),
        ("routing: {table-mapping: {a: 'x/y'}}", "routing.table-mapping.a", "slash"),
        (
            "routing: {table-mapping: {a: ingestd_dead_letters}}",
            "routing.table-mapping.a",
            "takes no rows",
        ),
        (
            "defaults: {options: {merge-engine: newest-wins}}",
            "defaults.options",
            "option 'merge-engine' = 'newest-wins' is not supported",
        ),
        ("defaults: {options: {no.such.option: 1}}", "defaults.options", "no.such.option"),
        (
            "tables: {t: {options: {snapshot.time-retaind: 1 d}}}",
            "tables.t",
            "did you mean 'snapshot.time-retained'",
        ),
        (
            "defaults: {options: {partition.mark-done-action: mark-event}}",
            "defaults.options",
            "not by requests",
        ),
        ("defaults: {options: {bucket: many}}", "defaults.options", "bucket"),
        (
            "tables: {t: {options: {data-evolution.enabled: true}}}",
            "tables.t",
            "option 'data-evolution.enabled'",
        ),
        (
            "tables: {t: {schema: {column-types: {v: VARIANT}}}}",
            "tables.t",
            "data type VARIANT",
        ),
        (
            "defaults: {primary-keys: none}\ntables: {t: {primary-keys: from-key}}",
            "tables.t.primary-keys",
            "from-key",
        ),
    ],
)
def test_tables_that_could_not_be_written_are_refused_before_the_start(
    tmp_path: Path, text: str, place: str, message: str
) -> None:
    found = issue(tmp_path, BASE + text)
    assert f": {place}: " in found
    assert message in found


@pytest.mark.parametrize(
    "text",
    [
        "defaults: {primary-keys: none, options: {bucket: '-1'}}",
        "defaults: {partition-keys: [dt], options: {bucket: '4'}}",
        "defaults: {options: {bucket: '4', bucket-key: 'a, b'}}",
        "defaults: {options: {fields.note.stats-mode: none, snapshot.time-retained: 1 h}}",
        "tables: {t: {primary-keys: [id, dt], partition-keys: [dt], options: {bucket: '2'}}}",
        "tables: {t: {primary-keys: none, schema: {column-types: {at: TIMESTAMP(6)}}}}",
    ],
)
def test_tables_that_can_be_written_pass(tmp_path: Path, text: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(BASE + text, encoding="utf-8")
    load_config(path, {})


@pytest.mark.parametrize(
    ("routing", "place"),
    [
        ("table-prefix: a/b", "table-prefix: table name 'a/bt' contains a slash"),
        ("table-prefix: .a", "table-prefix: table name '.at' begins with a dot"),
        ("table-suffix: ' '", "table-suffix: table name 't ' is empty, or begins or ends with"),
        ("table-prefix-db: {shop: a$}", "table-prefix-db.shop: table name 'a$t' contains $"),
        ("table-suffix-db: {shop: 'a:'}", "table-suffix-db.shop: table name 'ta:' contains"),
    ],
)
def test_a_prefix_that_no_table_can_have_is_refused(
    tmp_path: Path, routing: str, place: str
) -> None:
    assert f": routing.{place}" in issue(tmp_path, f"{BASE}routing: {{{routing}}}\n")


@pytest.mark.parametrize("name", ["spark.speculation", "spark.dynamicAllocation.enabled"])
def test_settings_of_spark_that_cost_more_than_they_bring_are_refused(
    tmp_path: Path, name: str
) -> None:
    found = issue(tmp_path, f"{BASE}spark: {{{name}: 'true'}}\n")
    assert f": spark.{name}: is not supported: " in found
    path = tmp_path / "f.yaml"
    path.write_text(f"{BASE}spark: {{{name}: 'false'}}\n", encoding="utf-8")
    load_config(path, {})


def test_a_cluster_is_sent_no_secret_of_the_configuration_itself(tmp_path: Path) -> None:
    secret = BASE.replace('"localhost:9092"', '"localhost:9092", sasl.password: hush-hush')
    cluster = "spark: {spark.master: 'spark://h:7077'}\n"
    shared = secret.replace("{path: /lake}", "{path: /lake, shared: true}")
    found = issue(tmp_path, shared + cluster)
    assert "kafka.sasl.password: is a secret in the configuration itself" in found
    assert "hush-hush" not in found
    path = tmp_path / "f.yaml"
    options = "{token.provider: dlf, dlf.access-key-secret: 'x-y'}"
    catalog = f"metastore: rest, uri: h, options: {options}"
    signed = BASE.replace("{path: /lake}", f"{{path: /lake, shared: true, catalog: {{{catalog}}}}}")
    found = issue(tmp_path, signed + cluster)
    assert "catalog.options.dlf.access-key-secret: is a secret in the configuration itself" in found
    assert "token.provider" not in found
    for text, environ in ((secret, {}), (shared.replace("hush-hush", "'${env:P}'"), {"P": "hush"})):
        path.write_text(text + (cluster if environ else ""), encoding="utf-8")
        load_config(path, environ)
