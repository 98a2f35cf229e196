from ottla.model.errors import ErrorCode
from ottla.protocol.messages import allocate_producer_ids as wire
from ottla.protocol.metadata_records import ProducerIdsRecord
from tests.unit.metadata.controller_driver import ControllerDriver


def test_blocks_never_overlap() -> None:
    deciding = ControllerDriver(brokers=2)
    blocks = [deciding.ask(wire.Request(node, deciding.epochs[node])) for node in (1, 2, 1)]
    assert [(b.producer_id_start, b.producer_id_len) for b in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]


def test_a_broker_of_an_old_epoch_gets_none() -> None:
    response, written = ControllerDriver().decide(wire.Request(1, 999))
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert written == []


def test_ids_end_before_they_overflow() -> None:
    deciding = ControllerDriver()
    deciding.write(ProducerIdsRecord(1, 0, (1 << 63) - 1000))
    response, written = deciding.decide(wire.Request(1, deciding.epochs[1]))
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert written == []
