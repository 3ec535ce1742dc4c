import pytest

from ingestd.cdc.ddl.alter_text import (
    added_columns,
    proven_alone,
    proven_by_columns,
    renames_and_drops,
)


@pytest.mark.parametrize(
    ("statement", "proven"),
    [
        ("ALTER TABLE t CHANGE a b INT", (("a", "b"),)),
        ("ALTER TABLE t DROP a, RENAME COLUMN c TO d", (("a", None), ("c", "d"))),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", ()),
        ("ALTER TABLE t DROP a, ADD a TEXT", ()),
        ("ALTER TABLE t DROP a, ADD COLUMN IF NOT EXISTS `A` TEXT", ()),
        ("ALTER TABLE t DROP a, ADD (x INT, a DECIMAL(3, 1))", ()),
        ("ALTER TABLE t DROP a, ADD INDEX a (b), ADD UNIQUE a (c)", (("a", None),)),
        ("DROP TABLE t", ()),
    ],
)
def test_a_statement_alone_proves_what_it_does_not_take_back(
    statement: str, proven: tuple[tuple[str, str | None], ...]
) -> None:
    assert proven_alone(statement) == proven


def test_columns_after_the_statement_have_to_agree() -> None:
    statement = "ALTER TABLE t CHANGE a b INT, DROP c"
    assert proven_by_columns(renames_and_drops(statement), ["id", "B"]) == (("a", "B"), ("c", None))
    assert proven_by_columns(renames_and_drops(statement), ["id", "a", "c"]) == ()
    assert proven_by_columns(renames_and_drops(statement), []) == ()


def test_added_columns_are_named() -> None:
    statement = "ALTER TABLE d.t ADD COLUMN a INT FIRST, ADD `b``c` INT, ADD PRIMARY KEY (a)"
    assert added_columns(statement) == ["a", "b`c"]
    assert added_columns("CREATE TABLE t (a INT)") == []
