"""Renames and drops that statements of MySQL and MariaDB state."""

import pytest

from ingestd.cdc.ddl.alter_text import ColumnChange, renames_and_drops


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("ALTER TABLE goods CHANGE c c_renamed char(10)", [("c", "c_renamed")]),
        ("alter table db.t rename column `x y` to z", [("x y", "z")]),
        ("ALTER TABLE `db`.`t` DROP COLUMN tx", [("tx", None)]),
        ("ALTER TABLE t DROP a, DROP IF EXISTS b", [("a", None), ("b", None)]),
        ("ALTER IGNORE TABLE t CHANGE COLUMN IF EXISTS a `b``c` int", [("a", "b`c")]),
        ("ALTER TABLE IF EXISTS t /* DROP x, */ DROP y -- , DROP z", [("y", None)]),
        ("ALTER TABLE t ADD (a int, b int), ADD c enum('x, DROP y'), DROP d", [("d", None)]),
        ("ALTER TABLE t MODIFY a decimal(10, 2), CHANGE a a bigint", []),
        ("ALTER TABLE t DROP INDEX i, DROP PRIMARY KEY, DROP FOREIGN KEY f, DROP CONSTRAINT c", []),
        ("ALTER TABLE t DROP COLUMN `index`", [("index", None)]),
        ("ALTER TABLE t RENAME TO u", []),
        ("ALTER TABLE t RENAME INDEX a TO b", []),
        ("CREATE TABLE t (a int)", []),
        ("DROP TABLE t", []),
        ("ALTER TABLE t", []),
        ("ALTER DATABASE d CHARACTER SET utf8", []),
        ("", []),
        ("ALTER TABLE t DROP 'open", []),
    ],
)
def test_changes(statement: str, wanted: list[tuple[str, str | None]]) -> None:
    found = renames_and_drops(statement)
    if statement.endswith("'open"):
        assert all(isinstance(one, ColumnChange) for one in found)
    else:
        assert [tuple(one) for one in found] == wanted
