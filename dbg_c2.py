from tests.unit.ingest.rows.test_kept_deletes import *
def test_x():
    rig = rig_with(POSITIONS, options={"bucket": "1", "merge-engine": "partial-update", **GROUP})
    rig.produce(row(1, position=1, n=1, state="+I"))
    rig.run()
    print(rig.rows("ingestd_dead_letters"), list(rig.tables))
    assert 0
