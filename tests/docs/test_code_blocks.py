"""Every block of code that people follow is run by a test that is named here, or says why not."""

import ast
from pathlib import Path

import pytest

from tests.support.code_blocks import ROOT, CodeBlock, code_blocks, followed_pages

ENGINES = "tests/compat/test_engines.py::test_"
ICEBERG = "tests/compat/test_iceberg.py::test_"
READING = "tests/docs/test_newcomer.py::test_every_command_of_the_readme_reads_the_table"
FIRST = "tests/integration/test_newcomer.py::test_"
MAINTENANCE = "tests/docs/test_maintenance_commands.py::test_every_line_of_a_block_does_its_work"
PIPELINES = "tests/docs/test_examples.py::test_pipelines_that_are_shown_are_valid"
SHOWN = "tests/docs/test_shown_commands.py::test_"
DEMO = "tests/integration/test_demo.py::test_the_demo_ends_with_tables_that_hold_what_the_workload"
TUTORIAL = "tests/live/test_tutorial.py::test_rows_of_postgresql_are_queried_with_duckdb_and_spark"

SHOWN_BY = {
    ("README.md", "make demo"): f"{SHOWN}the_newcomer_plays_the_first_commands",
    ("README.md", "21,378 records"): f"{DEMO}_ends_in",
    ("README.md", "# ingestd.yaml"): f"{FIRST}the_first_pipeline_of_the_readme_brings_rows",
    ("README.md", "ingestd init"): f"{FIRST}the_first_pipeline_of_the_readme_brings_rows",
    ("README.md", "ods.orders would be"): f"{FIRST}the_first_pipeline_of_the_readme_brings_rows",
    ("README.md", "ingestd import-"): f"{FIRST}the_other_commands_of_the_first_pipeline_work",
    ("README.md", "ingestd tables"): READING,
    ("README.md", "import ingestd.paimon"): (
        f"{ENGINES}the_program_of_the_readme_runs_with_pandas_polars_and_duckdb"
    ),
    ("README.md", "-- spark-sql"): f"{ENGINES}spark_sql_of_the_readme_reads_the_table",
    ("README.md", "SET 'execution"): f"{ENGINES}flink_sql_of_the_readme_reads_the_table",
    ("README.md", "-- etc/catalog/lake"): (
        "not run: Paimon's plugin for Trino is in no package registry; the page says so"
    ),
    ("README.md", "from pypaimon"): f"{ENGINES}pypaimon_of_the_readme_reads_the_table",
    ("CONTRIBUTING.md", "make setup"): f"{SHOWN}every_make_target_can_be_made",
    ("bench/README.md", "make bench"): f"{SHOWN}measurements_take_the_options_that_are_shown",
    ("paimon/README.md", "import ingestd.paimon"): (
        "tests/docs/test_library_alone.py::test_the_program_of_its_page_reads_and_writes"
    ),
    ("docs/iceberg.md", "tables:"): f"{SHOWN}parts_of_a_configuration_fit_the_rest_of_it",
    ("docs/iceberg.md", "# with deletion"): f"{SHOWN}parts_of_a_configuration_fit_the_rest_of_it",
    ("docs/iceberg.md", "ingestd repair"): (
        "tests/unit/cli/test_repair.py::test_the_commands_of_the_page_repair_and_clean"
    ),
    ("docs/iceberg.md", "from pyiceberg"): f"{ICEBERG}the_program_of_the_page_reads_the_table",
    ("docs/iceberg.md", "-- spark-sql"): f"{ICEBERG}spark_reads_the_tables_as_the_page_says",
    ("docs/iceberg.md", "-- duckdb"): f"{ICEBERG}duckdb_reads_the_table_as_the_page_says",
    ("docs/library.md", ">>> import"): (
        "tests/docs/test_library_page.py::test_the_examples_of_the_page_give_what_it_shows"
    ),
    ("docs/migration.md", "ingestd import-"): f"{SHOWN}a_job_becomes_a_configuration",
    ("docs/migration.md", "pipeline:"): PIPELINES,
    ("docs/compare.md", "ingestd compare"): (
        "tests/integration/test_compare.py::test_the_commands_of_the_page_compare_tables"
    ),
    ("docs/compare.md", "jobs:"): (
        "tests/chart/test_shown_values.py::test_the_comparison_that_the_page_shows_is_scheduled"
    ),
    ("docs/notices.md", "# notices.yaml"): f"{SHOWN}parts_of_a_configuration_fit_the_rest_of_it",
    ("docs/deployment.md", "ENV INGESTD_CLASS"): (
        "tests/docker/test_dockerfile.py::test_the_archive_of_classes_is_made_as_the_page_says"
    ),
    ("docs/deployment.md", "make audit"): f"{SHOWN}every_make_target_can_be_made",
    (
        "docs/catalogs.md",
        "# Alibaba Cloud DLF",
    ): f"{SHOWN}parts_of_a_configuration_fit_the_rest_of_it",
    ("docs/catalogs.md", "catalog:"): f"{SHOWN}parts_of_a_configuration_fit_the_rest_of_it",
    ("docs/catalogs.md", "warehouse:"): f"{SHOWN}parts_of_a_configuration_fit_the_rest_of_it",
    ("docs/operations.md", "telemetry:"): f"{SHOWN}parts_of_a_configuration_fit_the_rest_of_it",
    ("docs/maintenance.md", "tables:"): f"{SHOWN}parts_of_a_configuration_fit_the_rest_of_it",
    ("docs/deployment.md", "executors:"): (
        "tests/chart/test_shown_values.py::test_the_executors_that_the_page_shows_are_created"
    ),
    ("docs/deployment.md", "total = driver"): "not run: a sum, whose parts are measured",
    ("docs/maintenance.md", "ingestd "): MAINTENANCE,
    ("docs/rows.md", "# rows.yaml"): (
        "tests/docs/test_rows_page.py::test_where_keeps_the_rows_that_the_page_says"
    ),
    ("docs/rows.md", "# deletes.yaml"): (
        "tests/docs/test_rows_page.py::test_deleted_rows_stay_as_the_page_says"
    ),
    ("docs/rows.md", "# functions.yaml"): (
        "tests/docs/test_rows_page.py::test_functions_give_what_the_page_says"
    ),
    ("docs/rows.md", "# headers.yaml"): (
        "tests/docs/test_rows_page.py::test_headers_are_in_the_columns_that_the_page_says"
    ),
    ("docs/tutorial.md", "docker compose"): (
        "not run: needs Docker; the tutorial's test runs the services of its file as processes"
    ),
    ("docs/tutorial.md", "export BOOTSTRAP"): (
        "tests/docs/test_compose_file.py::test_the_page_runs_the_same_configuration_without_docker"
    ),
    ("docs/tutorial.md", "UPDATE orders"): TUTORIAL,
    ("docs/tutorial.md", "import ingestd.paimon"): TUTORIAL,
    ("docs/tutorial.md", "-- spark-sql"): TUTORIAL,
    ("docs/security.md", "make sbom"): f"{SHOWN}every_make_target_can_be_made",
    ("helm/ingestd/README.md", "helm install"): (
        "tests/chart/test_shown_values.py::test_the_values_that_the_page_shows_are_installed"
    ),
    ("helm/ingestd/README.md", "config:"): (
        "tests/chart/test_shown_values.py::test_the_values_that_the_page_shows_are_installed"
    ),
}
"""Page and beginning of the first line: the test, or ``not run:`` and why."""


def blocks() -> list[CodeBlock]:
    return [block for page in followed_pages() for block in code_blocks(page)]


def fits(key: tuple[str, str], block: CodeBlock) -> bool:
    return block.page == key[0] and block.first.startswith(key[1])


def test_every_block_has_a_test_or_a_reason() -> None:
    bare = [
        f"{block.page}, {block.heading}: {block.first}"
        for block in blocks()
        if sum(fits(key, block) for key in SHOWN_BY) != 1
    ]
    assert bare == [], "write a test that runs the block and name it here"


def test_no_test_is_named_for_a_block_that_is_gone() -> None:
    found = blocks()
    assert [key for key in SHOWN_BY if not any(fits(key, block) for block in found)] == []


@pytest.mark.parametrize("named", sorted(set(SHOWN_BY.values())))
def test_a_test_that_is_named_exists_and_takes_blocks_from_the_page(named: str) -> None:
    if named.startswith("not run: "):
        assert len(named) > 20
        return
    file, _, name = named.partition("::")
    text = (ROOT / file).read_text()
    names = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    assert name in names
    readers = ("code_blocks", "tests.support.readme", 're.findall(r"```yaml')
    assert any(reader in text for reader in readers), "it does not read the page"


def test_only_few_blocks_are_not_run() -> None:
    assert sum(value.startswith("not run") for value in SHOWN_BY.values()) <= 4


def test_blocks_are_found_as_readers_see_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n\n    indented\n\n    more\n\ntext\n    no code\n\n- item\n\n    of the item\n\n"
        "## Two\n    at once\n\n```sql\nSELECT 1;\n\n    x\n```\n~~~\nplain\n~~~\n"
    )
    found = [
        (code_block.heading, code_block.language, code_block.text)
        for code_block in code_blocks(page)
    ]
    assert found == [
        ("One", "", "indented\n\nmore\n"),
        ("Two", "", "at once\n"),
        ("Two", "sql", "SELECT 1;\n\n    x\n"),
        ("Two", "-", "plain\n"),
    ]
