"""Members of classic groups that rebalance cooperatively (KIP-429).

They keep what they own while they join again, and say what that is. The leader gives nobody what
another still owns; whoever gets less than it has gives that up and joins once more.
"""

from ottla.model.types import TopicPartition
from ottla.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    decode_versioned,
)
from ottla.protocol.messages import join_group
from ottla.simulation.clients.classic_member import ClassicMember


class CooperativeMember(ClassicMember):
    protocol = "cooperative-sticky"

    def prepare(self) -> None:
        """It gives up nothing before it knows what."""

    async def take(self, places: list[TopicPartition], sent_ns: int) -> None:
        lost = self.standing.owned - set(places)
        await super().take(places, sent_ns)
        if lost:
            self.join_again()
            self.hurry()
            await self.give_up(lost)

    def lose(self) -> None:
        """Others may have been given what it owns."""
        self.revoke(list(self.standing.owned))
        super().lose()

    def subscription(self) -> ConsumerProtocolSubscription:
        owned: dict[str, list[int]] = {}
        for topic, partition in sorted(self.standing.owned):
            owned.setdefault(topic, []).append(partition)
        parts = [SubscriptionTopicPartition(*one) for one in owned.items()]
        return ConsumerProtocolSubscription(sorted(self.topics), None, parts, self.epoch)

    async def shares(self, joined: join_group.Response) -> dict[str, list[TopicPartition]]:
        shares = await super().shares(joined)
        owners = owners_of(joined)
        return {
            member: [place for place in places if owners.get(place, member) == member]
            for member, places in shares.items()
        }


def owners_of(joined: join_group.Response) -> dict[TopicPartition, str]:
    """Who owns what, if two say so then the one of the later generation."""
    owners: dict[TopicPartition, tuple[int, str]] = {}
    for member in joined.members:
        said, _ = decode_versioned(ConsumerProtocolSubscription, member.metadata)
        for one in said.owned_partitions:
            for index in one.partitions:
                place, claim = (
                    TopicPartition(one.topic, index),
                    (said.generation_id, member.member_id),
                )
                owners[place] = max(owners.get(place, claim), claim)
    return {place: member for place, (_, member) in owners.items()}
