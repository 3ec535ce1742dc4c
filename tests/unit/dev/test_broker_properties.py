"""Properties of a development broker: listeners and other brokers."""

from ingestd.dev.broker import (
    Listener,
    Member,
    broker_properties,
    choose_ports,
    controllers_of,
)


def test_every_listener_has_its_address_its_protocol_and_its_own_properties() -> None:
    listeners = {
        "TLS": Listener("SSL", {"ssl.client.auth": "none"}),
        "FAR": Listener(advertised="127.0.0.1:9"),
    }
    ports = choose_ports(listeners, None)
    told = broker_properties(1, ports, controllers_of(ports, None), listeners)
    assert len(set(ports.values())) == 4
    listening = str(told["listeners"]).split(",")
    assert f"TLS://127.0.0.1:{ports['TLS']}" in listening
    found = str(told["advertised.listeners"]).split(",")
    assert "FAR://127.0.0.1:9" in found
    assert not any(one.startswith("CONTROLLER") for one in found)
    assert "TLS:SSL" in str(told["listener.security.protocol.map"]).split(",")
    assert told["listener.name.tls.ssl.client.auth"] == "none"
    assert told["controller.quorum.voters"] == f"1@127.0.0.1:{ports['CONTROLLER']}"


def test_a_member_has_the_ports_and_the_controllers_of_its_cluster() -> None:
    member = Member("id", 2, (11, 22), {1: 21, 2: 22, 3: 23})
    ports = choose_ports({}, member)
    told = broker_properties(2, ports, controllers_of(ports, member), {})
    assert told["node.id"] == 2
    assert told["advertised.listeners"] == "PLAINTEXT://127.0.0.1:11"
    assert told["controller.quorum.voters"] == "1@127.0.0.1:21,2@127.0.0.1:22,3@127.0.0.1:23"
