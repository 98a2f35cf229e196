from ottla.metadata.decisions.context import is_active
from ottla.model.types import NodeId
from tests.unit.metadata.controller_driver import ControllerDriver


def test_only_a_broker_that_is_neither_fenced_nor_stopping_is_active() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 2, 2)
    assert is_active(deciding.image, NodeId(2))
    assert not is_active(deciding.image, NodeId(7))
    deciding.heartbeat(2, want_shut_down=True)
    assert not is_active(deciding.image, NodeId(2))
    deciding.heartbeat(2, want_shut_down=True)
    assert not is_active(deciding.image, NodeId(2))
