"""A stream whose outcome is known without keeping it: accounts (keyed) and entries (keyless).

Every account change carries its number, so the last one of an account is its final row; every
entry carries its own number, so a lost or doubled one shows.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from ingestd.dev.broker import DevBroker
from tests.support.kafka_broker import Reachable, admin

PARTITIONS = 4


@dataclass(frozen=True)
class Ledger:
    """`events` changes, four of five of `accounts` keys, the others entries without a key."""

    prefix: str
    events: int
    accounts: int = 5_000
    seed: int = 11

    @property
    def pattern(self) -> str:
        """The topics, as a pattern."""
        return rf"{self.prefix}\.bank\..*"

    @cached_property
    def _changes(self) -> list[tuple[int, str, int]]:
        random = Random(self.seed)
        live: set[int] = set()
        changes: list[tuple[int, str, int]] = []
        for number in range(self.events):
            if number % 5 == 4:
                changes.append((number, "entry", 0))
                continue
            account = random.randrange(self.accounts)
            gone = account in live and random.random() < 0.1
            operation = "d" if gone else ("u" if account in live else "c")
            live.discard(account) if gone else live.add(account)
            changes.append((number, operation, account))
        return changes

    def produce(self, broker: DevBroker, first: int = 0, until: int | None = None) -> None:
        """Put the changes with numbers in [first, until) into their topics."""
        if first == 0:
            client = admin(broker)
            topics = [NewTopic(f"{self.prefix}.bank.{t}", PARTITIONS, 1) for t in TABLES]
            for future in client.create_topics(topics).values():
                future.result(30)
        self.append(broker, first, until)

    def append(self, broker: Reachable, first: int, until: int | None = None) -> None:
        """Put the changes with numbers in [first, until) into topics that are there."""
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "enable.idempotence": True}
        )
        for topic, key, value, partition in self._messages(first, until or self.events):
            while True:
                try:
                    producer.produce(topic, value, key, partition)
                    break
                except BufferError:
                    producer.poll(0.2)
        assert producer.flush(60) == 0

    def final_accounts(self) -> dict[int, int]:
        """Account -> number of its last change, of the accounts that are left."""
        final: dict[int, int] = {}
        for number, operation, account in self._changes:
            if operation == "d":
                del final[account]
            elif operation != "entry":
                final[account] = number
        return final

    def entries(self) -> list[int]:
        """Numbers of all entries."""
        return [number for number, operation, _ in self._changes if operation == "entry"]

    def _messages(self, first: int, until: int) -> Iterator[tuple[str, bytes | None, bytes, int]]:
        for number, operation, account in self._changes[first:until]:
            if operation == "entry":
                row = {"number": number, "text": f"entry {number}"}
                yield self._message("entry", None, "c", row, number % PARTITIONS, number)
            else:
                row = {"account": account, "number": number, "note": "n" * (number % 40)}
                after = None if operation == "d" else row
                key = json.dumps({"account": account}).encode()
                part = account % PARTITIONS
                yield self._message("account", key, operation, after, part, number)

    def _message(
        self,
        table: str,
        key: bytes | None,
        operation: str,
        after: dict[str, object] | None,
        partition: int,
        number: int,
    ) -> tuple[str, bytes | None, bytes, int]:
        source = {"connector": "postgresql", "name": self.prefix, "ts_ms": number, "db": "bank"}
        source |= {"schema": "bank", "table": table, "lsn": 1000 + number, "snapshot": "false"}
        event = {"before": None, "after": after, "source": source, "op": operation}
        topic = f"{self.prefix}.bank.{table}"
        return topic, key, json.dumps(event).encode(), partition


TABLES = ("account", "entry")
