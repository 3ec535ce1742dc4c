from pathlib import Path

import pytest

from ingestd.config.document import dotted, parse_document, read_document, walk
from ingestd.errors import ConfigError


def test_scalars_stay_the_texts_that_they_are() -> None:
    tree = parse_document("a: {b: 08, c: 1_000, d: on, e: 1:30, f: '7', g: 1e3}", "f").tree
    assert tree == {"a": {"b": "08", "c": "1_000", "d": "on", "e": "1:30", "f": "7", "g": "1e3"}}


def test_null_is_nothing_and_an_empty_text_is_a_text() -> None:
    assert parse_document("a:\nb: ~\nc: ''", "f").tree == {"a": None, "b": None, "c": ""}


def test_an_empty_file_is_an_empty_document() -> None:
    assert parse_document("# nothing\n", "f").tree == {}


def test_every_node_knows_its_line() -> None:
    document = parse_document("a:\n  b: 1\n  c:\n    - x\n    - y\n", "f.yaml")
    assert document.location_of(("a", "b")) == "f.yaml:2"
    assert document.location_of(("a", "c", 1)) == "f.yaml:5"


def test_what_is_not_there_is_placed_at_what_should_hold_it() -> None:
    document = parse_document("a:\n  b: {}\n", "f.yaml")
    assert document.location_of(("a", "b", "missing")) == "f.yaml:2"


def test_a_key_given_twice_is_refused_with_both_lines() -> None:
    with pytest.raises(ConfigError, match=r"f\.yaml:3: 'a' is given twice, first in line 1"):
        parse_document("a: 1\nb: 2\na: 3\n", "f.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", r"f:1:6: invalid YAML"),
        ("- a\n- b", "must be a mapping"),
        ("? [1, 2]\n: 3", "must be a plain text"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "merge keys"),
        ("a: &x [*x]", "too large or too deep"),
        ("a: !!python/object:os.system {}\nb: '\x01'", "invalid YAML"),
    ],
)
def test_what_is_no_configuration_is_refused_with_its_location(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_document(text, "f")


def test_a_document_that_multiplies_itself_is_refused() -> None:
    levels = "\n".join(f"l{n + 1}: &l{n + 1} [{', '.join([f'*l{n}'] * 9)}]" for n in range(8))
    with pytest.raises(ConfigError, match="too large"):
        parse_document(f"l0: &l0 x\n{levels}", "f")


def test_tags_build_no_objects() -> None:
    tree = parse_document("a: !!python/name:os.system x", "f").tree
    assert tree == {"a": "x"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.yaml"):
        read_document(tmp_path / "missing.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary\.yaml"):
        read_document(binary)


def test_paths_are_written_as_people_do() -> None:
    assert dotted(("sources", "shop", "topics", 0)) == "sources.shop.topics[0]"


def test_walk_gives_every_scalar() -> None:
    tree = parse_document("a: {b: 1, c: [2, {d: 3}]}\ne:", "f").tree
    assert dict(walk(tree)) == {
        ("a", "b"): "1",
        ("a", "c", 0): "2",
        ("a", "c", 1, "d"): "3",
        ("e",): None,
    }
