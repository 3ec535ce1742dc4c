"""The native plans of one source table: of its messages, and of their keys.

They describe the same messages as the structs of `row_plan`, and the strictest of what those let
through: what else they take is decoded in Python.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ingestd.cdc.base import SourceTable
from ingestd.cdc.native.form import INT64_FORM, RAW, NativeForm
from ingestd.cdc.native.module import NativeModule, NativePlan, Spec
from ingestd.cdc.plan_column import PlanColumn

BEFORE, AFTER, SOURCE = "before", "after", "source"
_NULL: Spec = ("null",)
_RUNS: Spec = ("runs",)


@dataclass(frozen=True, slots=True)
class NativePlans:
    """`keys` is None when the messages have no key."""

    changes: NativePlan
    keys: NativePlan | None


def form_of(column: PlanColumn) -> NativeForm:
    """The form of a column: its own, or the JSON texts for its reader."""
    native = None if column.reader is None else column.reader.native
    return native or RAW


def native_plans(
    module: NativeModule,
    source: SourceTable,
    columns: Sequence[PlanColumn],
    key_columns: Sequence[PlanColumn],
    *,
    images: bool = False,
) -> NativePlans | None:
    """The plans of a table; None if its messages can only be decoded in Python.

    The key must be comparable, because an update that changes it is two rows; and the table's
    name must be written as it is. With `images` rows before changes are read as a whole.
    """
    if any(not form_of(column).comparable for column in key_columns):
        return None
    names = _source_names(source)
    if names is None:
        return None
    position = [
        *((name, False, INT64_FORM.spec) for name in ("lsn", "pos", "row")),
        *((name, False, _RUNS) for name in ("file", "snapshot")),
    ]
    row = _object(columns, nullable=True, closed=True)
    whole = images or not key_columns
    before = row if whole else _object(key_columns, nullable=True, closed=False)
    fields = (
        ("op", True, ("letter",)),
        (SOURCE, True, ("object", False, False, [*names, *position])),
        (BEFORE, False, before),
        (AFTER, False, row),
    )
    key = _object(key_columns, nullable=False, closed=True, required=True)
    return NativePlans(
        module.Plan(("object", False, False, fields)), module.Plan(key) if key_columns else None
    )


def _source_names(source: SourceTable) -> list[tuple[str, bool, Spec]] | None:
    """What names the table; None if JSON has to escape that."""
    found: list[tuple[str, bool, Spec]] = []
    for field, name in zip(("db", "schema", "table"), source, strict=True):
        if name is None:
            found.append((field, False, _NULL))
        elif any(character in '"\\' or character < " " for character in name):
            return None
        else:
            found.append((field, True, ("literal", f'"{name}"'.encode())))
    return found


def _object(
    columns: Sequence[PlanColumn], *, nullable: bool, closed: bool, required: bool = False
) -> Spec:
    fields = [
        (column.name, required, _NULL if column.reader is None else form_of(column).spec)
        for column in columns
    ]
    return ("object", nullable, closed, fields)
