import pytest

from ottla.model.types import TopicPartition
from ottla.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    encode_versioned,
)
from ottla.protocol.messages import join_group
from ottla.simulation.clients.cooperative_member import CooperativeMember, owners_of
from ottla.simulation.plans.group_plan import Kind
from ottla.simulation.runs.run import simulate
from tests.unit.simulation.small import group_plan


def joined(**generations: int) -> join_group.Response:
    """Members who all say that they own the same partition."""
    parts = [SubscriptionTopicPartition("topic", [0])]
    return join_group.Response(
        members=[
            join_group.JoinGroupResponseMember(
                name,
                metadata=encode_versioned(
                    ConsumerProtocolSubscription(["topic"], None, parts, generation), 2
                ),
            )
            for name, generation in generations.items()
        ]
    )


def test_of_two_who_own_a_partition_the_later_generation_is_right() -> None:
    assert owners_of(joined(a=3, b=5, c=4)) == {TopicPartition("topic", 0): "b"}
    assert owners_of(join_group.Response()) == {}


@pytest.mark.parametrize("kind", [Kind.CLASSIC, Kind.MIXED])
def test_members_keep_what_stays_theirs_through_a_rebalance(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    take = CooperativeMember.take

    async def watched(self: CooperativeMember, places: list[TopicPartition], sent_ns: int) -> None:
        kept.append(len(self.standing.owned & set(places)))
        await take(self, places, sent_ns)

    monkeypatch.setattr(CooperativeMember, "take", watched)
    commits = 0
    for seed in range(4):
        commits += simulate(seed, group_plan(seed, kinds=(kind,), is_cooperative=True)).commits
    assert commits > 40
    assert max(kept) > 0
