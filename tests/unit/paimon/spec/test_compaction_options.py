import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec.compaction_options import OffPeak, compaction_options, lookup_rules
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema


def schema(keys: list[str] | None = None, **options: str) -> TableSchema:
    given = {name.replace("__", ".").replace("_", "-"): v for name, v in options.items()}
    columns = [("k", parse_type("INT")), ("v", parse_type("STRING"))]
    names = ["k"] if keys is None else keys
    return new_schema(columns, names, [], {"bucket": "1", "bucket-key": "k", **given}, 0)


def test_defaults_are_those_of_the_specification() -> None:
    found = compaction_options(schema())
    assert (found.trigger, found.stop_trigger, found.num_levels) == (5, 8, 6)
    assert (found.max_size_amplification, found.size_ratio) == (200, 1)
    assert found.full_interval_ms is found.total_size is found.incremental_size is None
    assert not (found.forces_level_0 or found.rewrites_all)
    assert (found.min_file_num, found.delete_ratio, found.open_file_cost) == (5, 0.2, 4 << 20)


def test_numbers_follow_the_trigger_unless_they_are_given() -> None:
    found = compaction_options(schema(num_sorted_run__compaction_trigger="3"))
    assert (found.stop_trigger, found.num_levels) == (6, 4)
    given = {"num-sorted-run.stop-trigger": "1", "num-levels": "9"}
    found = compaction_options(schema(num_sorted_run__compaction_trigger="3", **given))
    assert (found.stop_trigger, found.num_levels) == (3, 9)


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({}, False),
        ({"merge-engine": "first-row"}, True),
        ({"deletion-vectors.enabled": "true"}, True),
        ({"force-lookup": "true"}, True),
        ({"changelog-producer": "lookup"}, True),
        ({"changelog-producer": "full-compaction"}, False),
    ],
)
def test_lookups_are_needed_where_the_older_row_counts(
    options: dict[str, str], needed: bool
) -> None:
    table = schema(**options)
    assert lookup_rules(table).needed is needed
    assert compaction_options(table).forces_level_0 is needed
    if "changelog-producer" not in options:
        assert lookup_rules(schema(keys=[], **options)).needed is False


def test_gentle_lookups_wait_for_some_files() -> None:
    lookup = {"changelog-producer": "lookup", "lookup-compact": "gentle"}
    assert compaction_options(schema(**lookup)).min_level_0_runs == 10
    few = {"lookup-compact.max-interval": "2"}
    assert compaction_options(schema(**lookup, **few)).min_level_0_runs == 5
    assert compaction_options(schema(changelog_producer="lookup")).min_level_0_runs == 1


def test_off_peak_hours_need_a_beginning_and_an_end() -> None:
    start = {"compaction.offpeak.start.hour": "20"}
    assert compaction_options(schema(**start)).off_peak is None
    both = {**start, "compaction.offpeak.end.hour": "4", "compaction.offpeak-ratio": "9"}
    assert compaction_options(schema(**both)).off_peak == OffPeak(20, 4, 9)
    with pytest.raises(ConfigError, match="hours from 0 to 23"):
        compaction_options(schema(**{**both, "compaction.offpeak.end.hour": "24"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num-levels", "1"), ("lookup-compact", "wild"), ("compaction.size-ratio", "x"),
        ("compaction.delete-ratio-threshold", "much"), ("compaction.total-size-threshold", "9 y"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_are_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        compaction_options(schema(changelog_producer="lookup", **{name: value}))


@pytest.mark.parametrize(
    "other", [{"merge-engine": "first-row"}, {"changelog-producer": "full-compaction"}]
)
def test_deletion_vectors_do_not_go_with_everything(other: dict[str, str]) -> None:
    with pytest.raises(UnsupportedError, match="deletion-vectors"):
        lookup_rules(schema(**{"deletion-vectors.enabled": "true"}, **other))


def test_columns_may_be_left_out_of_the_comparison() -> None:
    given = {
        "changelog-producer.row-deduplicate": "true",
        "changelog-producer.row-deduplicate-ignore-fields": "v, w",
    }
    found = lookup_rules(schema(changelog_producer="lookup", **given))
    assert (found.deduplicates, found.ignored) == (True, ("v", "w"))
