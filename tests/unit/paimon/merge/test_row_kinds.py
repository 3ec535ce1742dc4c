"""Row kinds as a writer takes them."""

import pyarrow as pa
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.row_kinds import kinds_of, retraction_refusal, rows_to_write
from ingestd.paimon.spec.merge_rules import FieldFunction, MergeRules, SequenceGroup
from tests.support.merges import rows_of

ROWS = [
    {"k": kind, "op": symbol, "_kind": kind} for kind, symbol in enumerate(["+U", "-D", "+I", "-U"])
]


def written(rules: MergeRules) -> list[tuple[int, int]]:
    rows = rows_to_write(rows_of(ROWS, {"op": "STRING"}), rules)
    kinds = rows.column("_VALUE_KIND").to_pylist()
    return list(zip(rows.column("k").to_pylist(), kinds, strict=True))


def test_kinds_are_kept_unless_the_options_say_otherwise() -> None:
    assert written(MergeRules()) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert written(MergeRules(ignore_delete=True)) == [(0, 0), (2, 2)]
    assert written(MergeRules(ignore_update_before=True)) == [(0, 0), (2, 2), (3, 3)]


def test_kinds_come_from_a_column_before_any_is_ignored() -> None:
    assert written(MergeRules(rowkind_field="op")) == [(0, 2), (1, 3), (2, 0), (3, 1)]
    assert written(MergeRules(rowkind_field="op", ignore_delete=True)) == [(0, 2), (2, 0)]


def test_what_is_no_kind_is_marked_and_refused() -> None:
    assert kinds_of(pa.array(["+I", "+i", None, ""])).tolist() == [0, -1, -1, -1]
    with pytest.raises(UnsupportedError, match=r"column 'op' of 'rowkind\.field'"):
        rows_to_write(
            rows_of([{"k": 1, "op": "c"}], {"op": "STRING"}), MergeRules(rowkind_field="op")
        )


@pytest.mark.parametrize(
    ("rules", "refused"),
    [
        (MergeRules(), None),
        (MergeRules("first-row"), "'first-row' takes no deleted rows"),
        (MergeRules("first-row", ignore_delete=True), None),
        (MergeRules("partial-update"), "'partial-update' takes no deleted rows"),
        (MergeRules("partial-update", remove_on_delete=True), None),
        (MergeRules("partial-update", groups=(SequenceGroup(("s",), ("v",)),)), None),
        (MergeRules("aggregation", functions={"v": FieldFunction("sum")}), None),
        (MergeRules("aggregation", functions={"v": FieldFunction("max")}), "'max' of column 'v'"),
        (MergeRules("aggregation", functions={"v": FieldFunction("max", True)}), None),
    ],
)  # fmt: skip
def test_deleted_rows_are_refused_where_files_with_them_could_not_be_read(
    rules: MergeRules, refused: str | None
) -> None:
    message = retraction_refusal(rules)
    assert (message is None) == (refused is None)
    if refused is not None:
        assert refused in str(message)
        with pytest.raises(UnsupportedError, match=refused):
            rows_to_write(rows_of(ROWS, {"op": "STRING"}), rules)
