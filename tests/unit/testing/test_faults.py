import pytest

from ottla.broker.wire.faults import Delay, Drop, Fail, LoseAnswer
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.testing.faults import FaultOrder, api_key, error_code


@pytest.mark.parametrize("name", ["ListOffsets", "listoffsets", "list_offsets", "LIST_OFFSETS"])
def test_an_api_goes_by_any_spelling_of_its_name(name: str) -> None:
    assert api_key(name) is ApiKey.LIST_OFFSETS


def test_every_api_is_found_by_kafkas_own_spelling() -> None:
    for key in ApiKey:
        assert api_key(key.name.title().replace("_", "")) is key


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="not an API"):
        api_key("Produse")
    with pytest.raises(ValueError, match="not an error"):
        error_code("NOT_LEADER")
    with pytest.raises(ValueError, match="not a fault"):
        FaultOrder("explode", "Produce").fault()
    with pytest.raises(ValueError, match="not an API"):
        FaultOrder("drop", "Produse").fault()


def test_errors_go_by_kafkas_names() -> None:
    assert error_code("not_leader_or_follower") is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("order", "kind"),
    [
        (FaultOrder("fail", "Produce", error="NOT_CONTROLLER"), Fail),
        (FaultOrder("delay", "Fetch", delay_ms=10), Delay),
        (FaultOrder("drop", "Metadata"), Drop),
        (FaultOrder("lose", "Produce"), LoseAnswer),
    ],
)
def test_an_order_becomes_a_fault(order: FaultOrder, kind: type) -> None:
    assert isinstance(order.fault(), kind)
