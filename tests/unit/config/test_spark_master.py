"""Where the tasks of each kind of `spark.master` run."""

import pytest

from ingestd.config.spark_master import has_executors, is_one_machine


@pytest.mark.parametrize(
    ("master", "executors", "one_machine"),
    [
        ("local", False, True),
        ("local[*,4]", False, True),
        ("local-cluster[2,1,1024]", True, True),
        ("spark://local:7077", True, False),
        ("k8s://https://10.0.0.1:443", True, False),
        ("yarn", True, False),
    ],
)
def test_only_local_masters_have_no_executors(
    master: str, executors: bool, one_machine: bool
) -> None:
    assert has_executors(master) == executors
    assert is_one_machine(master) == one_machine
