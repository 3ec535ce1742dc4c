"""A broker that lets in only who says who it is: every mechanism, with and without TLS."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # they are public
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ingestd.dev import broker as dev_broker
from ingestd.dev.broker import DevBroker, Listener
from ingestd.dev.jars import cache_folder, fetch, read_pins
from ingestd.dev.java_classes import compiled
from tests.support.certificates import Authority, Certificate

USER = "reader"
PASSWORD = "planted-pass-8d1f"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
REAUTH_MILLISECONDS = 2000
AWS_KEY = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "planted-aws-7c3e"}
_JAVA = Path(__file__).with_name("broker_java")
_MODULE = "org.apache.kafka.common.security"
_LOGINS = {
    "plain": f'{_MODULE}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "scram-sha-256": f"{_MODULE}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_MODULE}.scram.ScramLoginModule required;",
    "oauthbearer": f"{_MODULE}.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";',
}


@dataclass(frozen=True)
class Secured:
    """The broker and its certificates; listeners: SASL, SASLS, TLS, MTLS, MSK, EXPIRED, SHORT."""

    broker: DevBroker
    authority: Authority
    client: Certificate


def sasl(**more: str) -> dict[str, str]:
    """Properties of a listener that knows the user by every mechanism."""
    logins = {f"{name}.sasl.jaas.config": login for name, login in _LOGINS.items()}
    return {"sasl.enabled.mechanisms": ",".join(name.upper() for name in _LOGINS), **logins, **more}


def tls(certificate: Certificate, authority: Authority, *, clients: bool = False) -> dict[str, str]:
    """Properties of a listener with this certificate; whether clients must show one, too."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate.both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.path),
        "ssl.client.auth": "required" if clients else "none",
    }


def short_sessions() -> dict[str, str]:
    """Properties of a SASL listener whose clients have to say again who they are."""
    return sasl(**{"connections.max.reauth.ms": str(REAUTH_MILLISECONDS)})


def amazon_msk() -> dict[str, str]:
    """Properties of a listener that takes tokens of Amazon MSK signed with `AWS_KEY`."""
    login = f"{_MODULE}.oauthbearer.OAuthBearerLoginModule required " + " ".join(
        f'{name}="{value}"'
        for name, value in {
            "unsecuredLoginStringClaim_sub": "broker",
            "access_key": AWS_KEY["AWS_ACCESS_KEY_ID"],
            "secret_key": AWS_KEY["AWS_SECRET_ACCESS_KEY"],
        }.items()
    )
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": f"{login};",
        "oauthbearer.sasl.server.callback.handler.class": "MskTokenValidator",
    }


def _validators() -> Path:
    """The compiled classes of `broker_java`."""
    pins = read_pins(Path(dev_broker.__file__).with_name("kafka_jars.txt"))
    jars = fetch(list(pins), cache_folder() / "kafka", pins=pins)
    return compiled(sorted(_JAVA.glob("*.java")), jars, cache_folder() / "judges")


@contextmanager
def secured_broker(folder: Path) -> Iterator[Secured]:
    """The broker for the block, with certificates in a folder."""
    authority = Authority(folder)
    server = authority.sign("broker")
    listeners = {
        "SASL": Listener("SASL_PLAINTEXT", sasl()),
        "SHORT": Listener("SASL_PLAINTEXT", short_sessions()),
        "SASLS": Listener("SASL_SSL", {**sasl(), **tls(server, authority)}),
        "TLS": Listener("SSL", tls(server, authority)),
        "MSK": Listener("SASL_SSL", {**amazon_msk(), **tls(server, authority)}),
        "MTLS": Listener("SSL", tls(server, authority, clients=True)),
        "EXPIRED": Listener("SSL", tls(authority.sign("old", expired=True), authority)),
        "OTHER": Listener("SSL", tls(authority.sign("other", host="kafka.test"), authority)),
    }
    with DevBroker(listeners=listeners, classes=[_validators()]) as broker:
        add_scram_user(broker)
        yield Secured(broker, authority, authority.sign(USER, password=PASSWORD))


def add_scram_user(broker: DevBroker, user: str = USER, password: str = PASSWORD) -> None:
    """Make a user known by both kinds of SCRAM."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 4096)
        wanted = UserScramCredentialUpsertion(user, info, password.encode())
        for future in admin.alter_user_scram_credentials([wanted]).values():
            future.result(30)
