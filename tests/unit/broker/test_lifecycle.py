from ottla.metadata.cluster import Endpoint
from ottla.model.types import NodeId
from tests.unit.broker.serving import CONTROLLER, LISTENER, serving

ONE = NodeId(1)


def test_a_broker_that_serves_is_registered_and_unfenced() -> None:
    with serving(broker_rack="r") as world:
        broker = world.broker.image.brokers[ONE]
        assert broker.is_active
        assert broker.rack == "r"
        assert broker.endpoints == {LISTENER: Endpoint("broker", 9092, 0)}
        assert broker.epoch == world.broker.lifecycle.broker_epoch
        assert list(broker.directories) == world.broker.directories.ids()


def test_its_controller_is_registered_with_its_own_listener() -> None:
    with serving() as world:
        endpoint = world.broker.image.controllers[ONE].endpoints[CONTROLLER]
        assert endpoint.port == world.broker.addresses[CONTROLLER].port


def test_every_start_is_a_new_incarnation_with_a_higher_epoch() -> None:
    with serving() as world:
        first = world.broker.image.brokers[ONE]
        world.restart()
        second = world.broker.image.brokers[ONE]
        assert second.epoch > first.epoch
        assert second.incarnation_id != first.incarnation_id


def test_a_clean_stop_hands_the_partitions_back() -> None:
    with serving() as world:
        world.topic("t", 2)
        world.stop()
        image = world.broker.image
        assert image.brokers[ONE].is_fenced
        assert {p.leader for p in image.topics_by_name["t"].partitions.values()} == {-1}
        world.start()
        assert world.partition("t", 1).log.end_offset == 0
