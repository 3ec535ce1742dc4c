"""Page, plots and stored session follow from the records."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from bench import plots
from bench.journal import Journal, Slot
from bench.report import (
    PAGE,
    PLOTS,
    SESSIONS,
    Stored,
    all_figures,
    failures,
    figures,
    from_journal,
    goals_table,
    load_sessions,
    page,
    runs_table,
    store,
)
from tests.support.bench_session import line, run, session


def test_the_published_page_is_what_the_stored_sessions_say() -> None:
    stored = load_sessions()
    text = PAGE.read_text()
    assert page(text, stored) == text, "run `python -m bench.report`"
    assert {path.stem for path in PLOTS.glob("*.svg")} == set(all_figures(stored))
    assert {path.stem for path in SESSIONS.iterdir()} == {one.header["date"] for one in stored}


def test_goals_show_median_range_and_verdict_of_each_session() -> None:
    first = Stored({"date": "2026-11-21", "processor": "A"}, session())
    second = Stored({"date": "2026-11-22", "processor": "B"}, [])
    table = goals_table([first, second])
    assert table.startswith("| measure | against | goal | 2026-11-21, A | 2026-11-22, B |")
    assert "| at least 4.00 x | 5.00 [5.00–5.00], n = 2, met |  |" in table
    assert "|  | not measured |" in table
    assert "not built yet" in goals_table([first])


def test_runs_that_failed_are_counted_and_named() -> None:
    failed = {**line("ingest", "flink", "main", 2), "failed": "BenchError: no\nmore"}
    table = runs_table([*session(), failed])
    assert "| ingest flink | 2 of 3 |" in table
    assert "ingest flink main round 2: BenchError: no" in failures([failed])


def test_a_wrong_table_is_shown() -> None:
    wrong = {**run("ingest", "java", "main", 2), "correct": False}
    assert "**no**, 1 of 3" in runs_table([*session(), wrong])


def test_generated_parts_are_replaced_and_prose_stays() -> None:
    names = ("goals", "runs", "cores", "machine", "plots")
    text = "Before.\n" + "".join(
        f"<!-- generated: {n} -->\nstale figures\n<!-- end -->\n" for n in names
    )
    header = {"date": "2026-11-21", "cores": 2, "versions": {"pyarrow": "21"}}
    new = page(text, [Stored(header, session())])
    assert new.startswith("Before.\n")
    assert "stale figures" not in new
    assert "* versions: pyarrow 21" in new
    assert "plots/rate.svg" in new


def test_plots_are_well_formed_and_show_every_program() -> None:
    drawn = figures(session())
    assert {"rate", "cpu", "memory", "growth-events", "growth-files"} == set(drawn)
    for text in drawn.values():
        assert ElementTree.fromstring(text).tag.endswith("svg")
    for name in ("ingestd", "flink", "java", "pypaimon"):
        assert f">{name}<" in drawn["rate"]


def test_a_line_of_slope_one_is_straight() -> None:
    drawn = plots.lines("t", "x", "y", {"a": [(1, 1), (10, 10), (100, 100)]})
    places = next(part for part in drawn.split('"') if part.count(",") == 3)
    (x1, y1), (x2, y2), (x3, y3) = (map(float, word.split(",")) for word in places.split())
    assert abs((x2 - x1) - (x3 - x2)) < 0.2
    assert abs((y2 - y1) - (y3 - y2)) < 0.2


def test_a_stored_session_comes_back(tmp_path: Path) -> None:
    later, earlier = (Stored({"date": f"2026-11-2{day}"}, session()) for day in (2, 1))
    store(later, tmp_path / "sessions")
    store(earlier, tmp_path / "sessions")
    assert load_sessions(tmp_path / "sessions") == [earlier, later]


def test_an_interrupted_log_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log.jsonl")
    journal.add({"session": {"date": "today"}})
    journal.add({**line("floors", "ingestd"), "failed": "once"})
    assert not journal.holds(Slot("floors", "ingestd", "main", 0))
    journal.add({**line("floors", "ingestd"), "per_s": 1.0})
    with journal.path.open("a") as file:
        file.write('{"measure": "cut o')
    assert journal.holds(Slot("floors", "ingestd", "main", 0))
    session = from_journal(journal)
    assert session.header == {"date": "today"}
    assert [record["per_s"] for record in session.records] == [1.0]
