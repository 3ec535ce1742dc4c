"""Fingerprints of the positions that a batch reaches."""

from ingestd.ingest.tables.batch_span import BatchSpan, where_less, with_fingerprints
from ingestd.ingest.tables.log_positions import (
    UNKNOWN,
    Position,
    fingerprint_at,
    offset_in,
    record_offset_of,
)
from ingestd.kafka.offset_ranges import SourcePartition

CHECKSUM = 0xABCDEF12


def test_a_position_knows_its_last_record_also_before_markers() -> None:
    until = {"id": {0: Position(10, 2), 1: Position(10, 2), 2: Position(10, 2), 3: Position(0)}}
    records = {
        SourcePartition("s", "t", 0): (9, CHECKSUM),
        SourcePartition("s", "t", 1): (6, CHECKSUM),
        SourcePartition("s", "u", 0): (1, CHECKSUM),
    }
    keys = {("s", "t"): "id", ("s", "u"): "other id"}
    span = with_fingerprints(BatchSpan({}, until), records, keys)
    found = span.until["id"]
    assert [record_offset_of(found[one]) for one in (0, 1)] == [9, 6]
    assert found[0].fingerprint != found[1].fingerprint
    assert found[0]._replace(fingerprint=UNKNOWN) == until["id"][0]
    assert [found[2], found[3]] == [until["id"][2], until["id"][3]]


def test_a_fingerprint_has_the_distance_and_fits_in_32_bits() -> None:
    fingerprints = [fingerprint_at(1000, 1000 - distance, CHECKSUM) for distance in range(258)]
    assert fingerprints[0] == UNKNOWN
    assert fingerprints[256:] == [UNKNOWN, UNKNOWN]
    known = fingerprints[1:256]
    assert len(set(known)) == 255
    assert all(0 < one < 1 << 32 for one in known)
    records = [record_offset_of(Position(1000, 0, one)) for one in known]
    assert records == [1000 - distance for distance in range(1, 256)]
    assert fingerprint_at(10, 9, CHECKSUM) != fingerprint_at(10, 9, CHECKSUM + 1)


def test_the_start_of_a_batch_is_recorded_for_logs_of_which_it_has_records() -> None:
    start = {"id": {0: 3, 1: 9}, "idle": {0: 5}}
    end = {"id": {0: Position(9), 1: Position(9)}, "idle": {0: Position(5)}}
    assert where_less(start, end) == {"id": {0: 3}}


def test_a_log_that_a_vector_lacks_is_at_its_beginning() -> None:
    vector = {"id": {1: Position(7)}}
    offsets = [offset_in(vector, key, 1) for key in ("id", "other id")]
    assert [*offsets, offset_in(vector, "id", 0), offset_in(vector, "id", 0, 5)] == [7, 0, 0, 5]
