"""Random schema changes of a table of `evolved_life`, for ingestd and for Java.

`draw` changes what the life knows of its columns, and returns the changes in both forms.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    Move,
    MoveType,
    RenameColumn,
    SchemaChange,
    UpdateColumnComment,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import alter

if TYPE_CHECKING:
    from tests.property.evolved_life import EvolvedLife

_LTZ = " WITH LOCAL TIME ZONE"
CASTS: Mapping[str, Sequence[str]] = {
    "TINYINT": ["INT", "BIGINT", "STRING", "DECIMAL(5, 2)", "DOUBLE"],
    "INT": ["BIGINT", "STRING", "DOUBLE", "DECIMAL(30, 4)", "TINYINT", "BOOLEAN", "VARCHAR(4)"],
    "BIGINT": ["INT", "STRING", "DECIMAL(30, 4)", "DOUBLE"],
    "FLOAT": ["DOUBLE"],
    "DOUBLE": ["FLOAT"],
    "DECIMAL(5, 2)": ["DECIMAL(30, 4)", "DOUBLE", "STRING", "INT"],
    "DECIMAL(30, 4)": ["DECIMAL(5, 2)", "STRING", "DOUBLE"],
    "CHAR(3)": ["STRING", "VARCHAR(4)"],
    "VARCHAR(4)": ["STRING", "CHAR(3)"],
    "STRING": ["VARCHAR(4)", "CHAR(3)", "BYTES"],
    "DATE": ["TIMESTAMP(3)", "STRING", "TIMESTAMP(6)"],
    "TIME(3)": ["STRING"],
    "TIMESTAMP(3)": ["TIMESTAMP(9)", "DATE", "STRING", f"TIMESTAMP(3){_LTZ}"],
    "TIMESTAMP(6)": ["TIMESTAMP(3)", "TIMESTAMP(9)", "STRING"],
    "TIMESTAMP(9)": ["TIMESTAMP(6)", "STRING", "DATE"],
    f"TIMESTAMP(3){_LTZ}": [f"TIMESTAMP(6){_LTZ}", "TIMESTAMP(3)", "STRING"],
    f"TIMESTAMP(9){_LTZ}": [f"TIMESTAMP(3){_LTZ}"],
    "BINARY(3)": ["BYTES"],
    "BOOLEAN": ["INT", "STRING"],
}
_Changes = tuple[list[SchemaChange], list[dict[str, Any]]]


class ColumnChanges:
    """The columns of a life, `types` by name, and what changes them."""

    def __init__(self, life: "EvolvedLife", types: dict[str, Any]) -> None:
        self._life, self._random, self.types = life, life.random, types

    def draw(self) -> _Changes:
        """One or two changes, or none."""
        kinds: list[Callable[[], _Changes]] = [
            self._add, self._rename, self._drop, self._retype, self._retype, self._move,
            self._inside, self._inside, self._replace_fields,
        ]  # fmt: skip
        return self._random.choice(kinds)()

    def apply(self, table: FileStoreTable, changes: Sequence[SchemaChange]) -> FileStoreTable:
        """The table with its next schemas."""
        for change in changes:
            table = alter(table, change)
        return table

    def _free(self, wanted: Callable[[Any], bool] = lambda _: True) -> str | None:
        """A column that is no key and that no option names, of a wanted type."""
        free = [name for name in self._unnamed() if name not in self._life.keys]
        free = [name for name in free if wanted(self.types[name])]
        return self._random.choice(free) if free else None

    def _unnamed(self) -> list[str]:
        """Columns that no option names: Java renames them in some options only."""
        options = self._life.table.schema.options
        text = " ".join(f"{name} {value}" for name, value in options.items())
        named = {*self._life.partitions, *text.replace(",", " ").replace(".", " ").split()}
        return [name for name in self.types if name not in named]

    def _add(self) -> _Changes:
        name, after = f"e{len(self._life.done)}", self._random.choice(list(self.types))
        self.types[name], self._life.cells[name] = t, _ = self._life.draw_column()
        move = Move(MoveType.AFTER, after)
        return (
            [AddColumn(name, parse_type(t), None, move)],
            [{"op": "add", "name": name, "type": t, "after": after}],
        )

    def _rename(self) -> _Changes:
        """Rename a column, which may be a key."""
        life, names = self._life, self._unnamed()
        if not names:
            return [], []
        old = self._random.choice(names)
        new = f"{old}_"
        self.types = {new if name == old else name: t for name, t in self.types.items()}
        life.cells = {new if name == old else name: cells for name, cells in life.cells.items()}
        life.keys = [new if name == old else name for name in life.keys]
        return [RenameColumn(old, new)], [{"op": "rename", "name": old, "to": new}]

    def _drop(self) -> _Changes:
        """Drop a column, and sometimes add another one of its name."""
        name = self._free()
        if name is None:
            return [], []
        del self.types[name], self._life.cells[name]
        ours: list[SchemaChange] = [DropColumn(name)]
        theirs: list[dict[str, Any]] = [{"op": "drop", "name": name}]
        if self._random.random() < 0.6:
            self.types[name], self._life.cells[name] = t, _ = self._life.draw_column()
            ours.append(AddColumn(name, parse_type(t)))
            theirs.append({"op": "add", "name": name, "type": t})
        return ours, theirs

    def _retype(self) -> _Changes:
        known = self._life.types
        name = self._free(lambda t: isinstance(t, str) and t in CASTS)
        if name is None:
            return [], []
        new = self._random.choice([t for t in CASTS[self.types[name]] if t in known] or ["STRING"])
        if self.types[name] in ("DOUBLE", "FLOAT") and new == "STRING":
            return [], []
        self.types[name], self._life.cells[name] = new, self._life.cells_of(new)
        return (
            [UpdateColumnType(name, parse_type(new))],
            [{"op": "type", "name": name, "type": new}],
        )

    def _move(self) -> _Changes:
        """Move a column, and comment on it."""
        name, after = self._random.sample(list(self.types), 2)
        move = UpdateColumnPosition(name, Move(MoveType.AFTER, after))
        return (
            [move, UpdateColumnComment(name, "note")],
            [
                {"op": "move", "name": name, "after": after},
                {"op": "comment", "name": name, "value": "note"},
            ],
        )

    def _inside(self) -> _Changes:
        """Add, rename or drop a field of a ROW."""
        found = self._rows()
        if found is None:
            return [], []
        name, path, fields = found
        new, place = f"n{len(self._life.done)}", self._random.randrange(len(fields))
        field = [*path, fields[place]["name"]]
        what = self._random.choice(["add", "rename", "drop"])
        if what == "rename":
            fields[place]["name"] = new
            return [RenameColumn(tuple(field), new)], [{"op": "rename", "name": field, "to": new}]
        if what == "add" or len(fields) < 2:
            return self._added(name, path, fields, new)
        del fields[place]
        self._each(name, lambda row: (*row[:place], *row[place + 1 :]))
        return [DropColumn(tuple(field))], [{"op": "drop", "name": field}]

    def _replace_fields(self) -> _Changes:
        """Give a ROW another field, and drop all others."""
        found = self._rows()
        if found is None:
            return [], []
        name, path, fields = found
        ours, theirs = self._added(name, path, fields, f"n{len(self._life.done)}")
        for field in fields[:-1]:
            ours.append(DropColumn((*path, field["name"])))
            theirs.append({"op": "drop", "name": [*path, field["name"]]})
        del fields[:-1]
        self._each(name, lambda row: row[-1:])
        return ours, theirs

    def _added(self, name: str, path: list[str], fields: list[Any], new: str) -> _Changes:
        fields.append({"id": 0, "name": new, "type": "STRING"})
        self._each(name, lambda row: (*row, "s"))
        return (
            [AddColumn((*path, new), parse_type("STRING"))],
            [{"op": "add", "name": [*path, new], "type": "STRING"}],
        )

    def _rows(self) -> tuple[str, list[str], list[Any]] | None:
        """A column with a ROW, the path of its fields, and them."""
        name = self._free(lambda t: _row_of(t) is not None)
        found = None if name is None else _row_of(self.types[name])
        return None if name is None or found is None else (name, [name, *found[0]], found[1])

    def _each(self, name: str, change: Callable[[Any], Any]) -> None:
        """Change each ROW in the cells of a column."""

        def changed(row: Any) -> Any:
            return None if row is None else change(row)

        root, cells = self.types[name]["type"], self._life.cells[name]
        if root == "ROW":
            cells = [changed(cell) for cell in cells]
        elif root == "ARRAY":
            cells = [[changed(row) for row in cell] for cell in cells]
        else:
            cells = [[(key, changed(row)) for key, row in cell] for cell in cells]
        self._life.cells[name] = cells


def _row_of(t: Any) -> tuple[list[str], list[Any]] | None:
    """Steps to the ROW in a type, and its fields."""
    if not isinstance(t, dict):
        return None
    steps = {"ROW": [], "ARRAY": ["element"], "MAP": ["value"]}.get(t["type"])
    if steps is None:
        return None
    inner = t[steps[0]] if steps else t
    return (steps, inner["fields"]) if isinstance(inner, dict) and "fields" in inner else None
