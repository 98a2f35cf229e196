"""The groups and offsets of a coordinator: what the records of its log add up to.

A group is of one kind at a time: the records of one kind end the other. A group that is not
recorded at all is a classic one, empty, as long as it has offsets or someone wants to join it.

Offsets of a transaction are pending until its marker, and count by the place of their own record,
as in Kafka: a later commit of the same partition stays, whenever the marker comes.
"""

from typing import Any

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.groups import ClassicGroups
from ottla.groups.consumer.groups import ConsumerGroups
from ottla.groups.kind import Groups
from ottla.groups.offsets.offsets import Committed
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Producer, Verdict
from ottla.model.types import Offset, ProducerId, TopicPartition
from ottla.protocol.consumer_group_records import ConsumerGroupMetadataKey
from ottla.protocol.group_records import (
    GroupMetadataKey,
    GroupRecord,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)

# ruff: noqa: ANN401  Values are of the class that the type of their record has.

Place = tuple[str, TopicPartition]  # Of a committed offset: its group and partition.
Pending = tuple[Offset, OffsetCommitValue]  # With the offset of its record.


class GroupTable:
    def __init__(self) -> None:
        self.offsets: dict[str, Committed] = {}
        self.pending: dict[ProducerId, dict[Place, Pending]] = {}
        self.classics = ClassicGroups(self.offsets)
        self.consumers = ConsumerGroups()
        self.kinds: tuple[Groups, ...] = (self.classics, self.consumers)
        self._just_ended: str | None = None  # The consumer group whose end was the last record.

    @property
    def classic(self) -> dict[str, ClassicGroup]:
        return self.classics.by_id

    def apply(self, offset: Offset, record: GroupRecord, producer: Producer | None) -> None:
        key, value = record
        just_ended, self._just_ended = self._just_ended, None
        match key:
            case OffsetCommitKey() | LegacyOffsetCommitKey():
                place = key.group, TopicPartition(key.topic, key.partition)
                if producer is not None and value is not None:
                    self.pending.setdefault(producer.id, {})[place] = offset, value
                else:
                    self._apply_offset(offset, place, value)
            case GroupMetadataKey():
                self.classics.apply(key, value)
                if value is not None:
                    # The last thing a coordinator did was to make it of a consumer group: then its
                    # members have what they had, and what the others had belongs to nobody.
                    is_converted = just_ended == key.group and bool(value.members)
                    self.classic[key.group].is_converted = is_converted
            case _:
                self.consumers.apply(key, value)
                if value is not None:
                    self.classic.pop(key.group_id, None)
                elif isinstance(key, ConsumerGroupMetadataKey):
                    self._just_ended = key.group_id
                    if key.group_id in self.offsets:
                        self.group_or_new(key.group_id)

    def ended(self, producer: Producer, verdict: Verdict) -> None:
        """The transaction's offsets count from now on, or never did."""
        pending = self.pending.pop(producer.id, {})
        if verdict is Verdict.COMMIT:
            for place, (offset, value) in pending.items():
                self._apply_offset(offset, place, value)

    def group_or_new(self, group_id: str) -> ClassicGroup:
        return self.classics.get_or_new(group_id)

    def kind_of(self, group_id: str) -> Groups:
        """The kind that a group is of; Refusal if there is no such group."""
        for groups in reversed(self.kinds):  # A classic group may be there without a record.
            if group_id in groups.by_id:
                return groups
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND)

    def _apply_offset(self, offset: Offset, place: Place, value: Any) -> None:
        for pending in self.pending.values():
            if place in pending and pending[place][0] < offset:
                del pending[place]
        group_id, partition = place
        if value is not None:
            if group_id not in self.consumers.by_id:
                self.group_or_new(group_id)
            self.offsets.setdefault(group_id, {})[partition] = value
            return
        committed = self.offsets.get(group_id)
        if committed is not None:
            committed.pop(partition, None)
            if not committed:
                del self.offsets[group_id]
                if group_id in self.classic:
                    self.classics.drop_if_void(self.classic[group_id])
