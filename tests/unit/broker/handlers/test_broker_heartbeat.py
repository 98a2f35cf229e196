"""Heartbeats reach the controller, and their connection is watched."""

from ottla.protocol.messages import broker_heartbeat as wire
from tests.unit.broker.serving import serving


def test_the_connection_of_a_brokers_heartbeats_is_watched_until_it_closes() -> None:
    with serving() as world:
        client, watch = world.client("CONTROLLER"), world.broker.death_watch
        epoch = world.broker.broker_epoch
        for _ in range(2):
            assert client.ask(wire.Request(1, epoch, 999), 1).error_code == 0
        assert list(watch._brokers.values()) == [1]
        client.close()
        assert not watch._brokers
