"""Keys are looked up by processes that live from call to call."""

from pathlib import Path

from bench.point_reads import answers, summary
from bench.read import make_table


def test_a_process_answers_each_call_with_the_rows_that_it_found(tmp_path: Path) -> None:
    table = make_table(tmp_path, 100, 2)
    assert table.path == str(tmp_path / "db.db" / "t")
    found = answers(["ingestd"], tmp_path, [[1], [2, 3, 1000], list(range(100))])["ingestd"]
    assert [one["rows"] for one in found] == [1, 2, 100]
    assert all(one["cpu"] > 0 for one in found)


def test_the_ratio_is_that_of_the_medians() -> None:
    found = summary({"ingestd": [1.0, 4.0, 2.0], "java": [8.0, 1.0, 6.0]})
    assert (found["n"], found["ratio"]) == (3, 3.0)
    assert found["java"] == {"median": 6.0, "least": 1.0, "most": 8.0}
