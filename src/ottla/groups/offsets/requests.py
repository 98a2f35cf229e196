"""OffsetCommit, OffsetFetch and OffsetDelete, to groups of either kind; offsets that are gone."""

from ottla.groups.classic.rebalance import expect_heartbeat
from ottla.groups.group_table import GroupTable
from ottla.groups.offsets import offsets
from ottla.groups.turn import GroupCommand, Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Ticket
from ottla.protocol.messages import offset_commit, offset_delete, offset_fetch

GROUP_NOT_FOUND_SINCE = 9  # In OffsetCommit.


def answer_commit(table: GroupTable, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
    request: offset_commit.Request = command.request
    group = table.classic.get(request.group_id)
    if request.group_id in table.consumers.by_id:
        table.consumers.check_commit(request, command.version)
    elif group is not None:
        offsets.check_classic_commit(group, request)
        member = group.members.get(request.member_id)
        if member is not None:
            expect_heartbeat(turn, group, member)
    elif request.generation_id_or_member_epoch >= 0:
        is_new = command.version >= GROUP_NOT_FOUND_SINCE
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION)
    turn.reply(ticket, offsets.commit(turn, request))


def answer_fetch(table: GroupTable, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
    request: offset_fetch.OffsetFetchRequestGroup = command.request
    table.consumers.check_fetch(request)
    turn.reply(ticket, offsets.fetch(request, table.offsets.get(request.group_id, {})))


def answer_delete(table: GroupTable, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
    request: offset_delete.Request = command.request
    committed = table.offsets.get(request.group_id, {})
    consumers = table.consumers.by_id.get(request.group_id)
    if consumers is not None:
        reads = consumers.subscribed_topics().__contains__
        turn.reply(ticket, offsets.delete(turn, request, committed, reads))
        return
    group = table.classics.get(request.group_id, ErrorCode.GROUP_ID_NOT_FOUND)
    if not group.is_empty and not group.is_consumers:
        raise Refusal(ErrorCode.NON_EMPTY_GROUP)
    subscribed = group.subscribed_topics()

    def is_subscribed(topic: str) -> bool:
        return topic in subscribed if subscribed is not None else group.is_consumers

    turn.reply(ticket, offsets.delete(turn, request, committed, is_subscribed))


def expire(table: GroupTable, turn: Turn, ticket: Ticket, _: GroupCommand) -> None:
    turn.decision.is_atomic = False
    for groups in table.kinds:
        for group_id in groups.by_id:
            groups.expire(turn, group_id, table.offsets.get(group_id, {}))
    turn.reply(ticket, None)


def forget_topics(table: GroupTable, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
    """The topics are deleted, and with them all that was committed for them."""
    topics = command.request.topics
    turn.decision.is_atomic = False
    created_again = {name: turn.around.topics.named(name) for name in topics}
    for group_id, committed in table.offsets.items():
        for partition, value in committed.items():
            if partition.topic in topics:
                now = created_again[partition.topic]
                if now is None or value.topic_id != now.id:
                    offsets.forget(turn, group_id, partition.topic, partition.partition)
    turn.reply(ticket, None)
