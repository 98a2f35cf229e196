"""Members of consumer groups (KIP-848): they report what they own, and become what they are told.

What a member shall give up it stops reading and commits at once, then reports without it. After
an answer that never came it says everything again, as real clients do.
"""

from ottla.client.errors import check
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition, Uuid, uuid_text
from ottla.protocol.messages import consumer_group_heartbeat as wire
from ottla.simulation.clients.group_member import Fenced, GroupMember

LEFT, LEFT_FOR_A_WHILE = -1, -2
REJOIN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)


class ConsumerMember(GroupMember):
    _id = ""
    _epoch = 0
    _is_all_said = False  # The coordinator knows what this member is, and owns.

    @property
    def epoch(self) -> int:
        return self._epoch if self._epoch > 0 else -1

    @property
    def member_id(self) -> str:
        return self._id

    async def join(self) -> None:
        self._id = self._id or uuid_text(self.chance.randbytes(16))
        self._epoch = 0
        await self._heartbeat()

    async def stay(self) -> None:
        await self._heartbeat()

    async def leave(self) -> None:
        """A static member says that it will be back."""
        member_id, self._id = self._id, ""
        epoch = LEFT if self.instance is None else LEFT_FOR_A_WHILE
        was_in = self.standing.is_in
        self.abandon()
        if was_in:
            request = wire.Request(self.plan.name, member_id, epoch, self.instance)
            answer = await self.ask(request, wire.Response)
            check(answer.error_code, about=f"{self.name} leaves")

    def fetch_as(self) -> tuple[str | None, int]:
        return (self._id, self._epoch) if self._epoch > 0 else (None, -1)

    def refused_commit(self, code: int) -> None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.abandon()

    async def _heartbeat(self) -> None:
        names = {(await self.cluster.topic(name)).id: name for name in self.topics}
        request = wire.Request(self.plan.name, self._id, self._epoch, self.instance)
        if not self._is_all_said or self._epoch == 0:
            request.rebalance_timeout_ms = self.plan.rebalance_ms
            request.subscribed_topic_names = sorted(self.topics)
            request.topic_partitions = self._report(names)
        self._is_all_said = False
        sent = self.history.now_ns()
        answer = await self.ask(request, wire.Response)
        if answer.error_code in REJOIN:
            self._epoch = 0
            self.abandon()
        if answer.error_code == ErrorCode.FENCED_INSTANCE_ID:
            self.abandon()
            raise Fenced
        if answer.error_code == ErrorCode.UNRELEASED_INSTANCE_ID:
            await self.pause()
            return
        check(answer.error_code, answer.error_message, about=self.name)
        self._epoch = answer.member_epoch
        self._is_all_said = True
        if answer.assignment is None:
            self.standing.heard(sent)
        else:
            await self._become(answer.assignment, names, sent)

    def _report(self, names: dict[Uuid, str]) -> list[wire.TopicPartitions]:
        owned: dict[str, list[int]] = {}
        for name, partition in sorted(self.standing.owned):
            owned.setdefault(name, []).append(partition)
        return [
            wire.TopicPartitions(topic_id, owned[name])
            for topic_id, name in names.items()
            if name in owned
        ]

    async def _become(
        self, assignment: wire.Assignment, names: dict[Uuid, str], sent_ns: int
    ) -> None:
        wanted = {
            TopicPartition(names[one.topic_id], index)
            for one in assignment.topic_partitions
            if one.topic_id in names
            for index in one.partitions
        }
        owned = self.standing.owned
        lost = owned - wanted
        if wanted != owned:
            self._is_all_said = False
        if wanted != owned and not (lost and self.is_stubborn):
            self.hurry()  # The coordinator is to hear of it at once.
        self.standing.heard(sent_ns, is_settled=not lost)
        self.history.given(self.standing, wanted - owned, sent_ns)
        if lost and not self.is_stubborn:
            await self.give_up(lost)
