"""Topics that a source does not find, and groups that have read before, are warned of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ingestd.errors import SourceError
from ingestd.ingest.recovery.start_warnings import source_warnings
from ingestd.ingest.settings.context import SourceSettings
from ingestd.kafka.properties import KafkaSource
from tests.support.registries import pipeline_of

AT = {"bootstrap.servers": "b:1"}
EXISTING = frozenset({"shop.orders", "shop.users", "_schemas"})


@dataclass
class Cluster:
    """A cluster with the topics of the module; `selected` are those of the source."""

    selected: tuple[str, ...] = ()
    committed: Mapping[str, Mapping[int, int]] | None = field(default_factory=dict)

    def existing_topics(self) -> frozenset[str]:
        return EXISTING

    def list_topic_partitions(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(self.selected, (0,))

    def group_offsets(self, group: str, partitions: object) -> Mapping[str, Mapping[int, int]]:
        if self.committed is None:
            raise SourceError("no coordinator")
        return self.committed


def warnings(
    folder: Path, source: KafkaSource, cluster: Cluster, *, is_first: bool = True
) -> list[str]:
    settings = pipeline_of(folder, sources={"shop": SourceSettings(source, "json")})
    return list(source_warnings(settings, {"shop": cluster}, is_first=is_first))  # type: ignore[dict-item]  # only its requests


def test_a_pattern_without_a_match_is_named_with_the_nearest_topics(tmp_path: Path) -> None:
    source = KafkaSource("shop", (), topic_pattern=r"shop\.order")
    [warning] = warnings(tmp_path, source, Cluster())
    assert r"topic-pattern 'shop\.order' has no match among the 2 topics" in warning
    assert "nearest: shop.orders" in warning
    assert "_schemas" not in warning


def test_topics_that_exist_are_not_warned_of(tmp_path: Path) -> None:
    for source in (
        KafkaSource("shop", (), topic_pattern=r"shop\..*"),
        KafkaSource("shop", ("shop.orders",)),
    ):
        assert warnings(tmp_path, source, Cluster(("shop.orders",))) == []


def test_a_named_topic_that_does_not_exist_is_named_with_the_nearest(tmp_path: Path) -> None:
    source = KafkaSource("shop", ("shop.order", "shop.users"), properties=AT)
    [warning] = warnings(tmp_path, source, Cluster(("shop.users",)))
    assert warning == (
        "source shop: no topic shop.order at b:1; it is read from its beginning once it exists, or "
        "did you mean shop.orders?"
    )
    [warning] = warnings(tmp_path, KafkaSource("shop", ("later",), properties=AT), Cluster())
    assert warning.endswith("once it exists")


def test_a_group_with_offsets_is_named_if_the_warehouse_has_no_progress(tmp_path: Path) -> None:
    source = KafkaSource("shop", ("shop.orders",))
    cluster = Cluster(("shop.orders",), {"shop.orders": {0: 7}, "shop.users": {}})
    [warning] = warnings(tmp_path, source, cluster)
    assert f"consumer group {source.group} has offsets of shop.orders, but database db" in warning
    assert warnings(tmp_path, source, cluster, is_first=False) == []
    by_group = KafkaSource("shop", ("shop.orders",), startup_mode="group-offsets")
    assert warnings(tmp_path, by_group, cluster) == []
    [warning] = warnings(tmp_path, source, Cluster(("shop.orders",), None))
    assert "the offsets of its group cannot be read: no coordinator" in warning
