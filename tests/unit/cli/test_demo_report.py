from pathlib import Path

from rich.console import Console

from ingestd.cli.demo import Timings, between_commits, table_of_rows, where_next
from ingestd.cli.demo import table_of_snapshots as drawn
from ingestd.paimon.spec.snapshot import CommitKind, Snapshot


def snapshot(number: int, time_millis: int) -> Snapshot:
    return Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list="base",
        delta_manifest_list="delta",
        commit_user="user",
        commit_identifier=number,
        commit_kind=CommitKind.APPEND,
        time_millis=time_millis,
        total_record_count=1000 * number,
        delta_record_count=1000,
    )


def text(thing: object) -> str:
    console = Console(width=160, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(thing)
    return capture.get()


def test_the_first_rows_are_shown_and_the_rest_is_hinted_at() -> None:
    shown = text(
        table_of_rows("shop.t", ["id", "note"], [{"id": n, "note": None} for n in range(8)])
    )
    assert "8 rows" in shown
    assert "\n 4 " in shown
    assert "\n 5 " not in shown
    assert "…" in shown


def test_an_empty_table_is_shown_as_such() -> None:
    assert "0 rows" in text(table_of_rows("shop.t", ["id"], []))


def test_snapshots_of_all_tables_stand_in_the_order_of_their_commits() -> None:
    shown = text(drawn([("orders", snapshot(2, 3000)), ("customers", snapshot(1, 1500))]))
    assert shown.index("00:00:01.500") < shown.index("00:00:03.000")
    assert "2,000" in shown


def test_the_rate_after_the_first_batch_leaves_that_batch_out() -> None:
    history = [("orders", snapshot(n, 1000 * n)) for n in (1, 2, 3, 4, 5)]
    assert "200 a second" in between_commits(history, Timings(records=1000))
    assert between_commits(history[:1], Timings(records=1000)) == ""


def test_the_commands_to_try_name_the_warehouse(tmp_path: Path) -> None:
    console = Console(width=40, force_terminal=False)
    with console.capture() as capture:
        where_next(console, tmp_path)
    assert f"ingestd read {tmp_path}/warehouse shop.orders\n" in capture.get()


def test_timestamps_are_shown_to_the_second() -> None:
    rows = [{"at": "2025-10-09T08:53:20.123456Z", "day": "2025-10-09"}]
    shown = text(table_of_rows("shop.t", ["at", "day"], rows))
    assert "2025-10-09 08:53:20 " in shown
