"""The commands of transcripts about groups, on a coordinator whose time the transcript moves.

    settings initial_rebalance_delay_ms=0      topics orders=3            restart
    join A [instance=i session=ms rebalance=ms protocols=a,b topics=t version=n id=..]
    sync A [generation=n] [B=orders-0,orders-1 ...]
    heartbeat A [generation=n]      leave A      forget A       pass 500ms | 3s
    consume A [topics=t | regex=r] [owned=orders-0,..] [epoch=n instance=i rebalance=ms id=..]
    commit A orders-0=5 [epoch=n]   commit - orders-0=5          fetch orders-0
    expire    delete-offset orders-0    delete-group    describe

Names are clients; `forget` makes a client lose its member id, as when it is started anew. What was
written comes first, then who was told what; an answer that comes late stands where it came.
"""

from dataclasses import replace
from typing import Any

from ottla.groups.coordinator import DeleteGroup, ExpireOffsets, TopicsChanged
from ottla.groups.settings import GroupSettings
from ottla.groups.turn import GroupCommand
from ottla.model.errors import ErrorCode
from ottla.protocol.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_versioned,
)
from ottla.protocol.messages import (
    consumer_group_heartbeat,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from tests.answers import outcome
from tests.scenarios.group_words import place, reply_text, state_text, written
from tests.unit.groups.consuming import ConsumerWorld, topic_id
from tests.unit.groups.driving import GROUP

# ruff: noqa: ANN401  Requests and replies are of many classes.


class GroupScript:
    def __init__(self) -> None:
        self.world = ConsumerWorld(GroupSettings(), orders=3)
        self.lines: list[str] = []
        self._read_to = 0
        self._ids: dict[str, str] = {}
        self._epochs: dict[str, int] = {}
        self._instances: dict[str, str] = {}
        self._owned: dict[str, list[str]] = {}

    def command(self, line: str) -> list[str]:
        """What comes of a line."""
        self.lines = []
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        getattr(self, f"do_{verb.replace('-', '_')}")(*names, **options)
        self._note_log()
        return self.lines

    # The world around.

    def do_settings(self, **options: str) -> None:
        numbers = {name: int(value) for name, value in options.items()}
        self.world.settings = replace(self.world.settings, **numbers)
        self.do_restart()

    def do_topics(self, **sizes: str) -> None:
        self.world.topics.sizes = {name: int(size) for name, size in sizes.items()}
        self.world.ask(TopicsChanged())

    def do_restart(self) -> None:
        """The coordinator is lost, and loads what is in its log."""
        self.world.reload()

    def do_pass(self, duration: str) -> None:
        for unit, ms in (("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)):
            if duration.endswith(unit) and duration.removesuffix(unit).isdecimal():
                self.world.pass_time(int(duration.removesuffix(unit)) * ms)
                return
        raise ValueError(duration)

    def do_forget(self, name: str) -> None:
        for known in (self._ids, self._epochs, self._owned):
            known.pop(name, None)

    # Classic members.

    def do_join(self, name: str, **options: str) -> None:
        if "instance" in options:
            self._instances[name] = options["instance"]
        metadata = encode_versioned(
            ConsumerProtocolSubscription(options.get("topics", "orders").split(",")), 1
        )
        protocols = options.get("protocols", "range").split(",")
        request = join_group.Request(
            GROUP,
            int(options.get("session", "10000")),
            int(options.get("rebalance", "30000")),
            options.get("id", self._ids.get(name, "")),
            self._instances.get(name),
            options.get("type", "consumer"),
            [join_group.JoinGroupRequestProtocol(protocol, metadata) for protocol in protocols],
        )
        self._ask(name, request, int(options.get("version", "9")))

    def do_sync(self, name: str, generation: str | None = None, **shares: str) -> None:
        assignments = [
            sync_group.SyncGroupRequestAssignment(self._ids[member], _assignment(places))
            for member, places in shares.items()
        ]
        epoch = self._epochs.get(name, -1) if generation is None else int(generation)
        request = sync_group.Request(
            GROUP, epoch, self._ids.get(name, ""), self._instances.get(name)
        )
        request.assignments = assignments
        self._ask(name, request)

    def do_heartbeat(self, name: str, generation: str | None = None) -> None:
        epoch = self._epochs.get(name, -1) if generation is None else int(generation)
        instance = self._instances.get(name)
        self._ask(name, heartbeat.Request(GROUP, epoch, self._ids.get(name, ""), instance))

    def do_leave(self, name: str) -> None:
        if name in self._owned:
            epoch = -1 if name not in self._instances else -2
            self._ask(name, self._consumer(name, epoch))
            return
        one = leave_group.MemberIdentity(self._ids.get(name, ""), self._instances.get(name))
        self._ask(name, leave_group.Request(GROUP, members=[one]))

    # Members of the new protocol.

    def do_consume(self, name: str, **options: str) -> None:
        if "instance" in options:
            self._instances[name] = options["instance"]
        self._ids.setdefault(name, options.get("id", name))
        epoch = int(options.get("epoch", self._epochs.get(name, 0)))
        request = self._consumer(name, epoch)
        if epoch == 0 or "topics" in options or "regex" in options:
            request.subscribed_topic_names = options.get("topics", "orders").split(",")
        if "regex" in options:
            request.subscribed_topic_names = None
            request.subscribed_topic_regex = options["regex"]
        if epoch == 0 or "rebalance" in options:
            request.rebalance_timeout_ms = int(options.get("rebalance", "30000"))
        if epoch == 0:
            request.topic_partitions = []
        elif "owned" in options:
            request.topic_partitions = _reported(options["owned"])
        self._owned.setdefault(name, [])
        self._ask(name, request)

    def _consumer(self, name: str, epoch: int) -> consumer_group_heartbeat.Request:
        instance = self._instances.get(name)
        return consumer_group_heartbeat.Request(GROUP, self._ids.get(name, name), epoch, instance)

    # Offsets, and what administrators do.

    def do_commit(self, name: str, epoch: str | None = None, **offsets: str) -> None:
        topics = []
        for text, offset in offsets.items():
            topic, partition = place(text)
            part = offset_commit.OffsetCommitRequestPartition(partition, int(offset))
            part.committed_metadata = ""
            topics.append(offset_commit.OffsetCommitRequestTopic(topic, topic_id(topic), [part]))
        request = offset_commit.Request(GROUP, topics=topics)
        if name != "-":
            request.member_id = self._ids.get(name, "")
            request.group_instance_id = self._instances.get(name)
            known = self._epochs.get(name, -1)
            request.generation_id_or_member_epoch = known if epoch is None else int(epoch)
        self._ask(name, request, 9)

    def do_fetch(self, *places: str) -> None:
        topics = [
            offset_fetch.OffsetFetchRequestTopics(topic, partition_indexes=[index])
            for topic, index in map(place, places)
        ]
        self._ask("-", offset_fetch.OffsetFetchRequestGroup(GROUP, topics=topics), 9)

    def do_expire(self) -> None:
        self.world.ask(ExpireOffsets())

    def do_delete_offset(self, text: str) -> None:
        topic, index = place(text)
        part = offset_delete.OffsetDeleteRequestPartition(index)
        one = offset_delete.OffsetDeleteRequestTopic(topic, [part])
        self._ask("-", offset_delete.Request(GROUP, [one]))

    def do_delete_group(self) -> None:
        self._ask("-", DeleteGroup(GROUP), 2)

    def do_describe(self) -> None:
        self.lines.append(state_text(self.world.machine))

    # What comes of it.

    def _ask(self, name: str, request: Any, version: int | None = None) -> None:
        if version is None:
            version = type(request).VERSIONS[-1]
        client = "admin" if name == "-" else name
        command = GroupCommand(request, version, client, "/10.0.0.1")
        answer = self.world.host.submit(command)
        answer.then(lambda given: self._told(name, outcome(given)))
        self.world.host.committed(len(self.world.log))

    def _told(self, name: str, reply: Any) -> None:
        self._note_log()
        self.lines.append(f"{name} <- {reply_text(reply)}")
        match reply:
            case join_group.Response():
                if reply.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                    self._ids[name] = reply.member_id
                if reply.error_code == ErrorCode.NONE:
                    self._epochs[name] = reply.generation_id
            case consumer_group_heartbeat.Response():
                self._epochs[name] = reply.member_epoch

    def _note_log(self) -> None:
        log = self.world.log
        self.lines += [f"log: {written(record)}" for record in log[self._read_to :]]
        self._read_to = len(log)


def _assignment(places: str) -> bytes:
    topics: dict[str, AssignmentTopicPartition] = {}
    for text in filter(None, places.split(",")):
        topic, index = place(text)
        topics.setdefault(topic, AssignmentTopicPartition(topic)).partitions.append(index)
    return encode_versioned(ConsumerProtocolAssignment(list(topics.values())), 1)


def _reported(places: str) -> list[consumer_group_heartbeat.TopicPartitions]:
    owned: dict[str, list[int]] = {}
    for text in filter(None, places.split(",")):
        topic, index = place(text)
        owned.setdefault(topic, []).append(index)
    return [
        consumer_group_heartbeat.TopicPartitions(topic_id(topic), indexes)
        for topic, indexes in owned.items()
    ]
