"""Rows ordered by source position are the same to Java, before and after it compacts."""

from pathlib import Path

from ingestd.ingest.settings.context import TableSettings
from tests.property.test_ordering import KeylessRig, Message
from tests.support.oracle import Oracle


def test_java_merges_by_source_position_as_well(tmp_path: Path, oracle: Oracle) -> None:
    rig = KeylessRig(
        defaults=TableSettings(
            primary_keys=("id",), options={"bucket": "1"}, ordering="source-position"
        ),
        data_format="debezium-json",
    )
    for key, value, place, snapshot in (
        (1, 1, 900, False),
        (2, 2, 900, False),
        (1, 3, 5, False),
        (2, None, 5, False),
        (3, 4, 20, True),
        (3, 5, 20, False),
        (3, 6, 20, True),
    ):
        rig.produce(Message(key, value, place, snapshot).as_bytes(binlog=False))
        rig.run()
    for path, data in rig.io.files.items():
        if path.startswith("/warehouse/lake.t/"):
            file = tmp_path / "lake.db" / "t" / path.removeprefix("/warehouse/lake.t/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    wanted = [(1, 1), (2, 2), (3, 5)]
    assert [(row["id"], row["v"]) for row in rig.rows("t")] == wanted
    assert sorted((row["id"], row["v"]) for row in oracle.read(tmp_path, "lake", "t")) == wanted
    oracle.compact(tmp_path, "lake", "t")
    assert sorted((row["id"], row["v"]) for row in oracle.read(tmp_path, "lake", "t")) == wanted
