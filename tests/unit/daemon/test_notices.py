"""Events of a pipeline, and the page that lists them."""

import re
from pathlib import Path

import pytest

from ingestd import log
from ingestd.cdc.format_guess import Guess
from ingestd.daemon.notices import CloudEvent, Notices
from ingestd.errors import IngestdError
from ingestd.ingest.settings.wrong_format import SetAside
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.log import add_secrets
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.table_schema import TableSchema

PAGE = Path(__file__).resolve().parents[3] / "docs" / "notices.md"


def schema(number: int, **columns: str) -> TableSchema:
    fields = tuple(
        DataField(at, name, parse_type(kind)) for at, (name, kind) in enumerate(columns.items())
    )
    return TableSchema(number, fields, len(fields) - 1, primary_keys=("id",))


def events() -> list[CloudEvent]:
    sent: list[CloudEvent] = []
    notices = Notices("shop eu", sent.append, clock=lambda: 7.0)
    before, after = (
        schema(0, id="BIGINT NOT NULL"),
        schema(1, id="BIGINT NOT NULL", n="DECIMAL(3, 1)"),
    )
    notices.table_created("ods.a", after)
    notices.schema_changed("ods.a", before, after)
    guess = Guess(None, 0, 0)
    notices.topic_set_aside(SetAside("s", "t", 100, 99, guess, {0: 5}), "uses planted-pass-1")
    notices.partition_set_aside(OffsetRange("s", "t", 3, 10, 20), "uses planted-pass-1")
    notices.pipeline_stopped(IngestdError("uses a password"), 1)
    return sent


def test_events_state_what_happened_and_where() -> None:
    created, changed, topic, partition, stopped = events()
    assert created.data["columns"] == [
        {"name": "id", "type": "BIGINT NOT NULL"},
        {"name": "n", "type": "DECIMAL(3, 1)"},
    ]
    assert (created.subject, created.data["primary_keys"]) == ("ods.a", ["id"])
    assert changed.data["changes"] == ["added n DECIMAL(3, 1)"]
    assert (topic.subject, topic.data["rejected"]) == ("s/t", 99)
    assert (partition.subject, partition.data["offset"]) == ("s/t/3", 10)
    assert stopped.data == {
        "exit_code": 1,
        "error_type": "IngestdError",
        "message": "uses a password",
    }
    assert {event.source for event in events()} == {"/ingestd/pipelines/shop%20eu"}
    assert len({event.id for event in events()}) == 5


@pytest.mark.parametrize(
    ("error", "kind"), [(None, None), (ZeroDivisionError("x"), "ZeroDivisionError")]
)
def test_a_pipeline_ends_normally_or_by_an_error_that_no_one_foresaw(
    error: BaseException | None, kind: str | None
) -> None:
    sent: list[CloudEvent] = []
    Notices("p", sent.append).pipeline_stopped(error, 0 if error is None else 1)
    assert sent[0].data["error_type"] == kind
    assert sent[0].data["message"] == (None if error is None else "x")


def test_messages_have_secrets_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_secrets", {})
    add_secrets(["planted-pass-1"])
    assert not any(b"planted-pass-1" in event.body() for event in events())
    assert sum(b"******" in event.body() for event in events()) == 2


def test_the_page_lists_every_event_and_the_members_of_its_data() -> None:
    rows = re.findall(
        r"^\| `(ingestd\.[\w.-]+)` \| .*? \| (.*) \|$", PAGE.read_text(), re.MULTILINE
    )
    members = {
        kind: set(re.findall(r"`([a-z_]+)`", text)) - {"name", "type"} for kind, text in rows
    }
    assert members == {event.type: set(event.data) for event in events()}
