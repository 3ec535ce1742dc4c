"""Updates of a key in messages that have only the columns that changed."""

from pathlib import Path

from tests.property.test_key_changes import OPTIONS, TOPIC, found, new_pipeline, run


def test_an_update_in_one_message_that_has_only_changed_columns(tmp_path: Path) -> None:
    pipeline = new_pipeline(tmp_path, OPTIONS["fixed buckets"])
    pipeline.data_format = "ogg-json"
    for position, key, operation, before, after in [
        (101, 0, "I", None, {"id": 0, "n": 1, "big": "inserted"}),
        (102, 0, "U", {"id": 0, "n": 1}, {"id": 0, "n": 2}),
        (103, 1, "U", {"id": 0}, {"id": 1}),
    ]:
        head = {"table": "shop.orders", "op_type": operation, "pos": f"{position:020}"}
        images = {"primary_keys": ["id"], "before": before, "after": after}
        pipeline.kafka.send(TOPIC, {"id": key}, head | images)
        run(pipeline)
    assert found(pipeline) == [(1, 2, "inserted", None)]
    assert pipeline.unknown == 0
