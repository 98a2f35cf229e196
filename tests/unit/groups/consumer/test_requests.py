"""Heartbeats that say too little, or what cannot be."""

import pytest

from ottla.groups.consumer.requests import check_request, new_metadata, updated_metadata
from ottla.groups.turn import GroupCommand
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import consumer_group_heartbeat as wire


def request(**fields: object) -> wire.Request:
    made = wire.Request("g", "m", 0, None, None, 30_000, ["t"], None, None, [])
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": ""},
        {"member_id": ""},
        {"member_id": "  "},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": [wire.TopicPartitions(bytes(16), [0])]},
        {"subscribed_topic_names": None},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"server_assignor": "sticky"},
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(Refusal) as refused:
        check_request(request(**fields), ("uniform", "range"))
    wanted = ErrorCode.INVALID_REQUEST
    if "server_assignor" in fields:
        wanted = ErrorCode.UNSUPPORTED_ASSIGNOR
    assert refused.value.code == wanted


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"subscribed_topic_names": None, "subscribed_topic_regex": "t.*"},
        {"member_epoch": 5, "rebalance_timeout_ms": -1, "topic_partitions": None},
        {"member_epoch": -1},
        {"member_epoch": -2, "instance_id": "one"},
        {"server_assignor": "range"},
    ],
)
def test_what_can_be_is_taken(fields: dict[str, object]) -> None:
    check_request(request(**fields), ("uniform", "range"))


def test_what_is_not_said_stays_as_it_was() -> None:
    first = updated_metadata(new_metadata(), GroupCommand(request(rack_id="r"), 1, "c", "/h"))
    said = request(
        subscribed_topic_names=None, rebalance_timeout_ms=-1, topic_partitions=None, member_epoch=1
    )
    assert updated_metadata(first, GroupCommand(said, 1, "c", "/h")) == first
    assert (first.rack_id, first.subscribed_topic_names) == ("r", ["t"])
    assert first.rebalance_timeout_ms == 30_000
