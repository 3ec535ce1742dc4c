"""What the bench makes of figures: ratios of one round, verdicts, and what was not measured."""

import pytest

from bench.goals import GOALS, Outcome, number, outcomes
from tests.support.bench_session import line, run, session


def by_key(records: list[dict[str, object]]) -> dict[str, Outcome]:
    return {outcome.goal.key: outcome for outcome in outcomes(records)}


def test_ratios_are_of_runs_of_one_round() -> None:
    records = [run("ingest", "ingestd", "main", 0), run("ingest", "ingestd", "main", 1, 0.5)]
    records += [run("ingest", "flink", "main", 0), run("ingest", "flink", "main", 1, 0.5)]
    assert by_key(records)["rate/flink/main"].values == pytest.approx((5.0, 5.0))


def test_the_cdc_actions_are_compared_at_both_checkpoint_intervals() -> None:
    places = {"ingestd": 1.0, "action": 0.2, "action-1s": 0.1}
    lines = [
        {**run("ingest", "ingestd", "main", 0, factor), "measure": "changing", "subject": subject}
        for subject, factor in places.items()
    ]
    found = by_key(lines)
    assert found["rate/changing/action"].values == pytest.approx((5.0,))
    assert found["rate/changing/action-1s"].values == pytest.approx((10.0,))
    assert found["cpu/changing/action"].values == pytest.approx((0.2,))
    assert found["rate/changing-tables/action"].verdict == "not measured"


def test_two_executors_are_compared_with_the_local_master_of_their_round() -> None:
    points = [
        {"master": "local[2,4]", "records_per_second": 600_000.0, "cpu_us": {"all": 3.0}},
        {"master": "local-cluster[2,1,1024]", "records_per_second": 540e3, "cpu_us": {"all": 3.6}},
    ]
    found = by_key([{**run("executors", "ingestd", "main", 0), "points": points}])
    assert found["executors/rate"].values == pytest.approx((0.9,))
    assert found["executors/cpu"].values == pytest.approx((1.2,))
    verdicts = [found[f"executors/{name}"].verdict for name in ("rate", "cpu")]
    assert verdicts == ["met", "**missed**"]


def test_a_run_without_its_peer_of_the_same_round_is_left_out() -> None:
    records = [run("ingest", "ingestd", "main", 0), run("ingest", "flink", "main", 1)]
    assert by_key(records)["rate/flink/main"].verdict == "not measured"


def test_a_run_with_a_wrong_table_counts_for_nothing() -> None:
    wrong = {**run("ingest", "ingestd", "main", 0), "correct": False}
    assert by_key([wrong, run("ingest", "flink", "main", 0)])["rate/flink/main"].values == ()


def test_verdicts_follow_the_side_of_the_target_that_is_good() -> None:
    found = by_key(session())
    assert found["rate/flink/main"].verdict == "met"
    assert found["cpu/flink/main"].verdict == "met"
    assert found["cpu/java/main"].verdict == "met"
    assert found["cold/small"].verdict == "met"
    slow = [run("ingest", "ingestd", "main", 0, 0.5), run("ingest", "flink", "main", 0)]
    assert by_key(slow)["rate/flink/main"].verdict == "**missed**"
    assert by_key(slow)["cpu/flink/main"].verdict == "**missed**"


def test_what_the_product_refuses_is_not_built_yet() -> None:
    assert by_key(session())["changelog-lookup"].verdict == "not built yet"
    assert by_key(session())["changelog-input"].verdict == "not measured"


def test_the_share_of_the_floor_prefers_the_rate_after_the_first_batch() -> None:
    assert by_key(session())["floor"].values == pytest.approx((0.8, 0.88))
    warm = [{**one, "warm_per_s": 250_000.0} for one in session() if one["measure"] == "ingest"]
    floors = [one for one in session() if one["measure"] == "floors"]
    assert by_key([*warm, *floors])["floor"].values == pytest.approx((0.5, 0.5))


def growth(**dimensions: dict[int, list[float]]) -> list[dict[str, object]]:
    points = [
        {"dimension": name, "size": size, "cpu_ms_per_batch": 1.0, "samples": samples}
        for name, sizes in dimensions.items()
        for size, samples in sizes.items()
    ]
    return [{**line("growth", "ingestd"), "points": points}]


def test_growth_compares_cost_with_size() -> None:
    found = by_key(session())
    assert found["growth/events"].values == pytest.approx((0.5,))
    assert found["growth/files"].values == ()
    assert found["growth/full"].values == pytest.approx((1.2,))


def test_the_worst_tenfold_growth_is_judged_sample_by_sample() -> None:
    sizes = {10: [1.0, 2.0, 4.0], 100: [2.0, 4.0, 8.0], 500: [9.0] * 3, 1_000: [22.0, 44.0, 80.0]}
    outcome = by_key(growth(keys=sizes))["growth/keys"]
    assert outcome.values == pytest.approx((1.1, 1.1, 1.0))
    assert outcome.verdict == "**missed**"


def test_growth_from_nothing_is_no_growth_by_ten() -> None:
    found = by_key(growth(files={0: [2.0, 2.0], 5_000: [2.0, 2.0], 50_000: [3.2, 2.8]}))
    assert found["growth/files"].values == pytest.approx((0.16, 0.14))
    assert found["growth/full"].values == pytest.approx((1.6, 1.4))


def test_reading_and_compaction_are_rows_of_the_table() -> None:
    place = {"subject": "ingestd", "scale": "main", "round": 0}
    read = {"measure": "read", "times_faster": {"java": 1.2, "pypaimon": 2.5}, **place}
    sides = {"ingestd": {"peak_mb": 300.0}}
    compacted = {"measure": "compaction", "times_faster": {"java": 0.9}, "compactors": sides}
    found = by_key([read, {**compacted, **place}])
    assert found["read/java"].verdict == "met"
    assert found["read/pypaimon"].verdict == "**missed**"
    assert found["compaction/java"].verdict == "**missed**"
    assert found["compaction/memory"].verdict == "met"


def test_every_goal_has_a_key_of_its_own() -> None:
    assert len({goal.key for goal in GOALS}) == len(GOALS)


def test_numbers_show_three_digits() -> None:
    assert [number(one) for one in (1234.5, 12.34, 1.234)] == ["1,234", "12.3", "1.23"]
