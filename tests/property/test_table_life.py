"""Random lives of tables against a dictionary: 45 here, 1,000 with INGESTD_LONG=1."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.table_life import TableLife
from tests.support.oracle import Oracle

LONG = bool(os.environ.get("INGESTD_LONG"))
EXAMPLES = int(os.environ.get("INGESTD_EXAMPLES", "1000" if LONG else "45"))


@pytest.mark.timeout(0 if LONG else 900)
@pytest.mark.compat
def test_a_table_holds_at_every_time_what_a_dictionary_would(
    tmp_path: Path, oracle: Oracle, oracle_2: Oracle
) -> None:
    class Life(TableLife):
        pass

    Life.oracle, Life.oracle_2, Life.folder = oracle, oracle_2, tmp_path / "warehouse"
    run_state_machine_as_test(
        Life, settings=settings(max_examples=EXAMPLES, stateful_step_count=12, deadline=None)
    )
