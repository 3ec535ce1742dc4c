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

from ingestd.dev.broker import DevBroker, Listener
from tests.support.certificates import Authority, Certificate

USER = "reader"
PASSWORD = "planted-pass-8d1f"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
REAUTH_MILLISECONDS = 2000
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
    """The broker and its certificates; listeners are SASL, SASLS, TLS, MTLS, EXPIRED, SHORT."""

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
        "MTLS": Listener("SSL", tls(server, authority, clients=True)),
        "EXPIRED": Listener("SSL", tls(authority.sign("old", expired=True), authority)),
        "OTHER": Listener("SSL", tls(authority.sign("other", host="kafka.test"), authority)),
    }
    with DevBroker(listeners=listeners) as broker:
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
