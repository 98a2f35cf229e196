"""UnregisterBroker through a broker."""

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import unregister_broker as wire
from tests.unit.broker.replicating import replicating
from tests.unit.broker.serving import serving


def test_a_broker_that_is_not_there_is_not_forgotten() -> None:
    with serving() as world:
        answer = world.client().ask(wire.Request(77))
        assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_is_gone_is_forgotten() -> None:
    with replicating() as cluster:
        gone = cluster.nodes[3]
        gone.kill()
        assert cluster.ask(cluster.nodes[1], wire.Request(3), wire.Response).error_code == 0
        assert sorted(cluster.log.image.brokers) == [1, 2]
