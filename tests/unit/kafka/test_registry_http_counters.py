"""What is counted of look-ups, with a registry that fails at first."""

import pytest

from ingestd.errors import SourceError
from ingestd.kafka.registry_http import (
    FAILURES,
    HITS,
    OUTAGE_MS,
    REQUESTS,
    RegistryHttp,
    note,
    take_figures,
)
from ingestd.kafka.registry_settings import RegistrySettings
from ingestd.kafka.schema_registry import SchemaRegistry, forget_schemas
from tests.support.registry_server import RegistryServer

DOCUMENT = {"ids": {"1": {"schema": '"string"'}}, "subjects": {}}


def test_figures_are_taken_once() -> None:
    take_figures()
    note(HITS)
    note(HITS, 2)
    assert take_figures() == {HITS: 3}
    assert not take_figures()


def test_requests_failures_outages_and_hits_are_counted() -> None:
    forget_schemas()
    take_figures()
    with RegistryServer(DOCUMENT, fail_first=2) as server:
        registry = SchemaRegistry(RegistrySettings((server.url,), retry_seconds=5.0))
        assert registry.find(1) == registry.find(1) is not None
    figures = take_figures()
    assert (figures[REQUESTS], figures[FAILURES], figures[HITS]) == (3, 2, 1)
    assert figures[OUTAGE_MS] >= 100
    forget_schemas()


def test_an_outage_that_is_not_waited_out_counts_as_long_as_it_was_waited_for() -> None:
    take_figures()
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    settings = RegistrySettings(("http://127.0.0.1:9",), retry_seconds=3.0)
    with pytest.raises(SourceError):
        RegistryHttp(settings, sleep=sleep, clock=lambda: now[0]).get("/schemas/ids/1")
    figures = take_figures()
    assert figures[REQUESTS] == figures[FAILURES] > 2
    assert figures[OUTAGE_MS] == int(now[0] * 1000) > 0
