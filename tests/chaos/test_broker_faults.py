"""One stream through everything that brokers and networks do: every record is there once.

The daemon shows who it is by OAuth over TLS, with tokens that live for seconds, so that it has to
show it again and again meanwhile. Between it and the broker is a network that a test can cut.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ingestd.dev.broker import DevBroker, Listener
from tests.chaos.tcp_proxy import TcpProxy
from tests.support.certificates import HAS_OPENSSL, Authority
from tests.support.daemon import Daemon, run_daemon
from tests.support.daemon_progress import Watched
from tests.support.kafka_broker import delete_topic, produce_transaction
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import pipeline
from tests.support.secured_broker import short_sessions, tls
from tests.support.token_endpoint import CLIENT, CLIENT_SECRET, TokenEndpoint

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not HAS_OPENSSL, reason="makes certificates with openssl"),
]
PIECE = 1_000
PIECES = 8
TOKEN_SECONDS = 6.0
LOST_TOPIC = 3


@dataclass(frozen=True)
class Scene:
    """All that takes part."""

    broker: DevBroker
    network: TcpProxy
    tokens: TokenEndpoint
    ledger: Ledger
    daemon: Daemon

    @property
    def watched(self) -> Watched:
        """How far the daemon got."""
        return Watched(self.daemon, "shop")

    def produce(self, piece: int) -> None:
        """Put a piece of the ledger into its topics, past the network."""
        self.ledger.produce(self.broker, piece * PIECE, (piece + 1) * PIECE)

    def await_pieces(self, pieces: int) -> None:
        """Return when at least `pieces` pieces are in the tables."""
        self.watched.await_offsets(pieces * PIECE)

    def await_silence(self) -> None:
        """Return when the daemon says that its brokers are silent, and why."""
        self.watched.await_silence(self.network.address)


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    authority = Authority(folder / "tls")
    guarded = {**short_sessions(), **tls(authority.sign("broker"), authority)}
    with TcpProxy() as network, TokenEndpoint(TOKEN_SECONDS) as tokens:
        outside = Listener("SASL_SSL", guarded, advertised=network.address)
        with DevBroker(listeners={"OUTSIDE": outside}) as broker:
            network.target = broker.address("OUTSIDE")
            ledger = Ledger(f"f{uuid.uuid4().hex[:8]}", PIECE * PIECES)
            config = pipeline(folder, network.address, ledger.pattern, batch_rows=PIECE // 2)
            (folder / "secret").write_text(CLIENT_SECRET)
            config["sources"]["shop"]["kafka"] |= {
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(authority.path),
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": CLIENT,
                "sasl.oauthbearer.client.secret": "${file:secret}",
                "sasl.oauthbearer.token.endpoint.url": tokens.url,
            }
            ledger.produce(broker, 0, PIECE)
            with run_daemon(config, folder) as daemon:
                yield Scene(broker, network, tokens, ledger, daemon)


def test_a_stream_goes_on_after_every_fault_of_broker_and_network(
    tmp_path: Path, oracle: Oracle
) -> None:
    with scene(tmp_path) as one:
        one.await_pieces(1)

        one.network.cut()
        one.produce(1)
        one.await_silence()
        one.network.heal()
        one.await_pieces(2)

        one.network.freeze()
        one.produce(2)
        one.await_silence()
        one.network.heal()
        one.await_pieces(3)

        one.network.slow(200_000, 0.05)
        one.produce(3)
        one.await_pieces(4)
        one.network.heal()

        one.produce(4)
        one.broker.restart()
        one.produce(5)
        one.await_pieces(6)

        transactions_keep_out(one)
        one.produce(7)
        one.await_pieces(8)
        given = one.tokens.given
        one.daemon.wait_until(lambda: one.tokens.given >= given + 3)

        # A commit between Java's listing and its look at the hint is a finding, for once.
        one.daemon.wait_until(lambda: not judge(one.ledger, tmp_path / "warehouse", oracle))
        assert one.daemon.get("/readyz")[0] == 200
        no_secret_is_seen(one, tmp_path)
        delete_topic(one.broker, f"{one.ledger.prefix}.bank.entry")
        assert one.daemon.wait() == LOST_TOPIC, one.daemon.tail()
        # Planning notices it, or the start after a request that met the deletion half done.
        said = one.daemon.tail()
        assert "no longer exist" in said or "the topic was deleted" in said
    assert judge(one.ledger, tmp_path / "warehouse", oracle) == []


def transactions_keep_out(one: Scene) -> None:
    """What is aborted never counts, and after what is open nothing is read until it is decided."""
    topic = f"{one.ledger.prefix}.bank.entry"
    wrong = [(None, b'{"op":"c","after":{"number":-1,"text":"never"}}')] * 5
    produce_transaction(one.broker, topic, wrong, 1, commit=False)
    open_one = Producer(
        {"bootstrap.servers": one.broker.bootstrap, "transactional.id": uuid.uuid4().hex}
    )
    open_one.init_transactions(30)
    open_one.begin_transaction()
    for partition in range(4):
        open_one.produce(topic, wrong[0][1], partition=partition)
    open_one.flush(30)
    before = one.watched.reached()
    one.produce(6)
    entries = PIECE // 5
    one.daemon.wait_until(lambda: one.watched.reached() >= before + PIECE - entries)
    time.sleep(2)
    assert one.watched.reached() < before + PIECE, "records after an open transaction were read"
    open_one.abort_transaction(30)
    one.await_pieces(7)


def no_secret_is_seen(one: Scene, folder: Path) -> None:
    """The client's secret is in its file and nowhere else."""
    pages = "".join(one.daemon.get(page)[1] for page in ("/", "/status", "/metrics"))
    for text in (pages, one.daemon.log.read_text(), *one.daemon.family().values()):
        assert CLIENT_SECRET not in text
    holders = [
        path
        for path in folder.rglob("*")
        if path.is_file() and CLIENT_SECRET.encode() in path.read_bytes()
    ]
    assert holders == [folder / "secret"]
