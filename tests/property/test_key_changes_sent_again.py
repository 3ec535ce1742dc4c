"""Updates that change a key, of which the source sends a part again before the rest is read."""

from pathlib import Path

import pytest

from tests.property.test_key_changes import OPTIONS, Database, found, new_pipeline, run, wanted


@pytest.mark.parametrize("options", ["fixed buckets", "order of the source"])
@pytest.mark.parametrize("another", [False, True], ids=["key deleted", "key inserted again"])
def test_a_value_is_not_that_before_a_delete_that_was_sent_again(
    options: str, *, another: bool, tmp_path: Path
) -> None:
    """The insert of key 5 is read after the delete of key 4, of which it has the value.

    The table then lacks key 4, or has another row with this key.
    """
    pipeline = new_pipeline(tmp_path, OPTIONS[options], 2)
    pipeline.batch_rows = 2
    database = Database(pipeline.kafka)
    database.put(0, "first")
    database.put(4, "moved")
    run(pipeline)
    database.put(3, "slows its partition down")
    database.put(3, "once more")
    database.move(4, 5)
    if another:
        database.put(4, "another")
    database.move(5, 2)
    database.again(7 if another else 6)
    run(pipeline)
    assert found(pipeline) == wanted(database)
    assert pipeline.unknown == 0
