"""The declarations of table options against the options of Java's CoreOptions, version 1.4.2.

`core_options.tsv` has what its fields say: name, type, default, annotation Immutable, older names.
"""

import ast
import csv
import re
from collections import Counter
from pathlib import Path

import pytest

import ingestd
from ingestd.paimon.spec.honoured_options import HONOURED
from ingestd.paimon.spec.option_types import Access, ChangeRule, Support
from ingestd.paimon.spec.table_options import DECLARED, find_option, nearest_option
from tests.support.syntax_trees import syntax_tree

CORE_OPTIONS = Path(__file__).parents[3] / "golden" / "core_options.tsv"
JAVA = list(csv.DictReader(CORE_OPTIONS.open(encoding="utf-8"), delimiter="\t"))
NAMES = Counter(name for option in DECLARED for name in (option.name, *option.aliases))

ELSEWHERE = {
    "avro.codec", "clustering.columns", "scan.primary-branch",
}  # fmt: skip
"""Names of refused options that other rules mention: of rewrites and branches; and a
key in the header of Avro files."""


def test_every_option_is_declared_once() -> None:
    assert [name for name, count in NAMES.items() if count > 1] == []


@pytest.mark.parametrize("java", JAVA, ids=lambda java: str(java["name"]))
def test_every_option_of_java_is_declared_as_there(java: dict[str, str]) -> None:
    assert NAMES[java["name"]] == 1
    option = find_option(java["name"])
    assert option is not None
    assert (option.change is ChangeRule.NEVER) is bool(java["immutable"])
    # Java lets table options set the compression of its format tables.
    assert {*option.aliases} == {*java["fallbacks"].split()} - {"file.compression"}


@pytest.mark.parametrize(
    "java", [java for java in JAVA if java["default"] not in ("null", "{}", "")],
    ids=lambda java: str(java["name"]),
)  # fmt: skip
def test_honoured_options_have_the_defaults_of_java(java: dict[str, str]) -> None:
    option = find_option(java["name"])
    assert option is not None
    if option.support is Support.HONOURED:
        given = java["default"].replace("PT0.01S", "10 ms").replace("PT10S", "10 s")
        given = given.replace("PT1H", "1 h").replace("PT0S", "0")
        assert option.parse(java["name"], given) == option.default


def test_all_declarations_say_why() -> None:
    for option in DECLARED:
        assert option.note
        assert "|" not in option.note
        assert not option.note.endswith(".") or option.support is Support.HONOURED
        assert option.refused_from in Access


def test_names_are_found_by_templates() -> None:
    for name, template in (
        ("fields.a.b.aggregate-function", "fields.<column>.aggregate-function"),
        ("fields.a,b.sequence-group", "fields.<columns>.sequence-group"),
        ("fields.v.unheard-of", "fields.<columns>.<name>"),
        ("parquet.bloom.filter.fpp#a.b", "parquet.bloom.filter.fpp#<column>"),
        ("parquet.encryption.footer.key", "parquet.encryption.<setting>"),
        ("file-index.trie.columns", "file-index.<type>.<setting>"),
        ("file-index.bitmap.columns", "file-index.bitmap.columns"),
        ("write.compaction-skip", "write-only"),
    ):
        option = find_option(name)
        assert option is not None
        assert option.name == template
    assert find_option("snapshot.time-retaind") is None
    assert nearest_option("snapshot.time-retaind").endswith("'snapshot.time-retained'?")
    assert len(HONOURED) < len(DECLARED)


def test_names_of_options_are_written_in_the_declarations_only() -> None:
    package = Path(ingestd.__file__).parent
    declarations = {
        package / "paimon" / "spec" / f"{kind}_options.py"
        for kind in ("table", "honoured", "iceberg", "text")
    }
    dotted = {name for name in NAMES if "." in name}
    found = {
        node.value
        for path in {*package.rglob("*.py")} - declarations
        if dotted & {*re.split("[\"']", path.read_text())}
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in dotted
    }
    assert found == ELSEWHERE
