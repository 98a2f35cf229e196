"""How the settings about addresses fit together."""

import pytest

from ottla.broker.settings.settings import Settings, SettingsError, zero_configuration


def load(**changes: str | None) -> Settings:
    properties = zero_configuration("data")
    for name, value in changes.items():
        key = name.replace("_", ".")
        properties.pop(key, None)
        if value is not None:
            properties[key] = value
    return Settings.load(properties, host_name=lambda: "here.example")


def advertised(listeners: str, **more: str) -> list[str]:
    return [str(endpoint) for endpoint in load(listeners=listeners, **more).advertised_listeners]


CONTROLLER = "CONTROLLER://127.0.0.1:9093"


def test_what_a_listener_names_is_advertised() -> None:
    assert advertised(f"PLAINTEXT://[::1]:9092,{CONTROLLER}") == [
        "PLAINTEXT://[::1]:9092",
        CONTROLLER,
    ]


def test_a_listener_without_a_host_advertises_the_machines_name() -> None:
    assert advertised(f"PLAINTEXT://:9092,{CONTROLLER}")[0] == "PLAINTEXT://here.example:9092"


def test_a_container_listens_everywhere_and_advertises_what_clients_can_reach() -> None:
    settings = load(
        listeners=f"INSIDE://0.0.0.0:9092,OUTSIDE://0.0.0.0:19092,{CONTROLLER}",
        advertised_listeners="INSIDE://broker:9092,OUTSIDE://localhost:19092",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        inter_broker_listener_name="INSIDE",
    )
    assert [str(e) for e in settings.advertised_listeners] == [
        "INSIDE://broker:9092",
        "OUTSIDE://localhost:19092",
        CONTROLLER,
    ]
    assert [e.name for e in settings.client_listeners] == ["INSIDE", "OUTSIDE"]
    assert [e.name for e in settings.controller_listeners] == ["CONTROLLER"]
    assert settings.inter_broker_listener_name == "INSIDE"


def test_a_controller_listener_that_nobody_mapped_speaks_plain_text() -> None:
    settings = load(listener_security_protocol_map=None)
    assert settings.listener_security_protocol_map["CONTROLLER"] == "PLAINTEXT"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"listeners": f"PLAINTEXT://0.0.0.0:9092,{CONTROLLER}"}, "set advertised.listeners"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:9092"}, "name a real address"),
        ({"advertised_listeners": "PLAINTEXT://:9092"}, "names no host"),
        ({"advertised_listeners": "OTHER://a:1"}, "listener.security.protocol.map"),
        ({"advertised_listeners": "CONTROLLER://a:1"}, "no listener for clients"),
        ({"listeners": "PLAINTEXT://a:1"}, "no listener for the controller"),
        ({"listeners": CONTROLLER}, "no listener for clients"),
        ({"listeners": "PLAINTEXT://a:1,CONTROLLER://a:1"}, "port 1 twice"),
        ({"listeners": f"PLAINTEXT://a,{CONTROLLER}"}, "host:port"),
        ({"listeners": f"SSL://a:1,{CONTROLLER}", "listener_security_protocol_map": None}, "SSL"),
        ({"controller_listener_names": None}, "controller.listener.names is missing"),
        ({"process_roles": None}, "process.roles is missing"),
        ({"process_roles": "broker"}, "this node is no controller"),
        ({"process_roles": "controller"}, "this is no broker"),
        ({"inter_broker_listener_name": "CONTROLLER"}, "must be one of the listeners for clients"),
        ({"controller_quorum_voters": "2@a:9093"}, "must list this node"),
        ({"controller_quorum_voters": "1:a:1"}, "id@host:port"),
        ({"ottla_metrics_listener": "9100"}, "host:port"),
    ],
)
def test_addresses_that_cannot_work_are_refused(
    changes: dict[str, str | None], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        load(**changes)


def test_one_port_may_serve_both_families() -> None:
    both = "PLAINTEXT://127.0.0.1:9092,V6://[::1]:9092"
    protocols = "PLAINTEXT:PLAINTEXT,V6:PLAINTEXT,CONTROLLER:PLAINTEXT"
    settings = load(listeners=f"{both},{CONTROLLER}", listener_security_protocol_map=protocols)
    assert len(settings.client_listeners) == 2


def test_a_static_voter_makes_the_quorum_static() -> None:
    assert load(controller_quorum_voters="1@localhost:9093").is_quorum_static
    assert load().metadata_log_dir == "data"


def test_a_node_may_be_a_broker_alone_if_it_knows_where_the_controllers_are() -> None:
    alone = {"process_roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9092"}
    settings = load(**alone, controller_quorum_bootstrap_servers="c1:9093,c2:9093")
    assert (settings.is_broker, settings.is_controller) == (True, False)
    assert settings.controller_listeners == []
    with pytest.raises(SettingsError, match=r"say where the controllers are"):
        load(**alone)
    with pytest.raises(SettingsError, match=r"which is no controller"):
        load(**alone, controller_quorum_voters="1@a:1")


def test_a_node_may_be_a_controller_alone() -> None:
    settings = load(process_roles="controller", listeners=CONTROLLER)
    assert (settings.is_broker, settings.is_controller) == (False, True)
    assert settings.client_listeners == []


def test_static_voters_may_be_many() -> None:
    voters = load(controller_quorum_voters="1@a:1,2@b:1,3@c:1").controller_quorum_voters
    assert [voter.node_id for voter in voters] == [1, 2, 3]
